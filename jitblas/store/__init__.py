"""The artifact store: where compiled artifacts live, whom it trusts, and what it tells people."""

"""SHA-256 as the interpreter has it built in.

hashlib is the same behind OpenSSL, whose loading takes longer than hashing all that a first call hashes. The standard
library's `random` takes this way, too.
"""

from __future__ import annotations

try:
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # Python 3.12 and newer
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore,no-redef]
    except ImportError:
        from hashlib import sha256  # an interpreter without either

__all__ = ["hex_digest", "sha256"]


def hex_digest(data: bytes) -> str:
    digest: str = sha256(data).hexdigest()
    return digest

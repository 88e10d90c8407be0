"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import threading


def write_whole(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file, or replace it, so that nobody ever reads half of it. OSError leaves what was there."""
    private = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
        os.replace(private, path)
    except OSError:
        try:
            os.unlink(private)
        except OSError:
            pass  # it was never made
        raise

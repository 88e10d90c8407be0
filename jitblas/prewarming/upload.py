"""Signing entries and putting them into a remote store."""

from __future__ import annotations

import os

from jitblas import config
from jitblas.errors import CacheError, Error
from jitblas.store.entry import Entry
from jitblas.store.remote import Remote, Unreachable
from jitblas.store.signatures import Refused, Signer


class Uploader:
    """Uploads entries to a remote store, signed with one key; those that are there already stay."""

    def __init__(self, url: str, key: str | os.PathLike[str] | None) -> None:
        if key is None:
            raise Error(
                f"uploading to {url} needs a key: nobody accepts what is not signed. Give --key FILE (key=); "
                f"`jitblas cache keygen FILE` makes one"
            )
        self._signer = Signer(os.fspath(key))
        self._remote = Remote(url, config.remote_timeout(), {self._signer.public.text: ""})
        self._unreachable: Unreachable | None = None

    def __call__(self, entry: Entry) -> bool:
        """Raises CacheError if the remote store does not take it; one that did not answer is not asked again."""
        try:
            if self._unreachable is not None:
                raise self._unreachable
            try:
                there = self._remote.get(entry.key) is not None
            except Refused:
                there = False  # unsigned, damaged or somebody else's: ours takes its place
            if not there:
                self._remote.put(entry._replace(meta=self._signer.sign(entry.meta)))
        except Unreachable as reason:
            self._unreachable = reason
            raise CacheError(f"the remote store {self._remote.url} does not take {entry.key}: {reason}") from None
        return True

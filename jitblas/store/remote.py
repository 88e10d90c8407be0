"""Remote stores: signed entries on any file system that fsspec knows. Reading one never holds a call up for long.

An entry is one object, `<url>/v1/ab/<what>/<how>.tar.gz`: object stores put objects in place whole.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from jitblas import config
from jitblas.errors import CacheError
from jitblas.files import write_whole
from jitblas.store import archive, signatures
from jitblas.store.archive import Packed
from jitblas.store.entry import Entry, Key, headers_changed
from jitblas.store.folders import FORMAT
from jitblas.store.signatures import Refused
from jitblas.store.store import Store

SUFFIX = ".tar.gz"

WITH_FOLDERS = {"file", "sftp", "ssh", "ftp", "hdfs", "webhdfs", "smb"}
"""File systems in which a folder must be there before a file can be."""

MOST_CANDIDATES = 64
"""Entries of one kernel, by different compilers, that are downloaded to choose from."""

Answer = TypeVar("Answer")


class Unreachable(Exception):
    """A remote store that does not answer, or not as one should; the text says how."""


class Remote:
    """A remote store.

    Parameters
    ----------
    url : as fsspec takes it, such as "s3://bucket/kernels" or "file:///shared/kernels"
    timeout : seconds for one answer
    trusted : public keys (base64) and comments whose signatures count
    """

    def __init__(self, url: str, timeout: float, trusted: Mapping[str, str]) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise CacheError(f"remote stores need the package fsspec ({error}): pip install 'jitblas[fleet]'") from None
        self.url = url
        self._timeout = timeout
        self._trusted = trusted
        try:
            self._files, top = self._answer(lambda: url_to_fs(url, use_listings_cache=False, skip_instance_cache=True))
        except Unreachable as reason:
            raise CacheError(f"the remote store {url} cannot be used: {reason}") from None
        self._top = f"{top.rstrip('/')}/{FORMAT}"

    def _folder(self, what: str) -> str:
        return f"{self._top}/{what[:2]}/{what}"

    def get(self, key: Key) -> Packed | None:
        """The checked entry of a key, None if there is none. Raises Refused, Unreachable."""
        path = f"{self._folder(key.what)}/{key.how}{SUFFIX}"
        data = self._answer(lambda: self._read(path))
        if data is None:
            return None
        packed = list(archive.unpack(io.BytesIO(data), lambda meta: signatures.check(meta, self._trusted)))
        if [one.key for one in packed] != [key]:
            raise Refused(f"it holds {', '.join(str(one.key) for one in packed) or 'nothing'} and not {key}")
        return packed[0]

    def _read(self, path: str) -> bytes | None:
        try:
            data: bytes = self._files.cat_file(path, start=0, end=archive.MOST_BYTES)
        except FileNotFoundError:
            return None
        return data

    def keys(self, what: str) -> list[Key]:
        """Keys of the entries of a *what*, whoever compiled them. Raises Unreachable."""

        def names() -> list[str]:
            try:
                return [str(name) for name in self._files.ls(self._folder(what), detail=False)]
            except FileNotFoundError:
                return []

        found = [os.path.basename(name) for name in self._answer(names)]
        return [Key(what, name.removesuffix(SUFFIX)) for name in sorted(found) if name.endswith(SUFFIX)]

    def put(self, entry: Entry) -> None:
        """Store an entry in place of whatever is there. Raises Unreachable."""
        buffer = io.BytesIO()
        archive.pack([entry], buffer)
        folder = self._folder(entry.key.what)

        def write() -> None:
            path = f"{folder}/{entry.key.how}{SUFFIX}"
            protocols = _protocols(self._files)
            if set(protocols) & WITH_FOLDERS:
                self._files.makedirs(folder, exist_ok=True)  # elsewhere this would make a bucket that is misspelt
            if "file" not in protocols:
                self._files.pipe_file(path, buffer.getvalue())
                return
            write_whole(self._files._strip_protocol(path), buffer.getvalue(), 0o644)

        self._answer(write)

    def _answer(self, ask: Callable[[], Answer]) -> Answer:
        """What `ask` returns within the timeout; file systems have timeouts and retries of their own, often long."""
        answers: list[Answer] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                answers.append(ask())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, name="jitblas-remote", daemon=True)
        thread.start()
        thread.join(self._timeout)
        if errors:
            raise Unreachable(f"{type(errors[0]).__name__}: {errors[0]}")
        if not answers:
            raise Unreachable(f"it did not answer within {self._timeout:g} s")
        return answers[0]


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)


# ---- What a process knows of its remote store -----------------------------------------------------------------------

_given_up: set[tuple[int, str]] = set()
"""(process, URL) of remote stores that did not answer: one timeout is enough."""


_opening = threading.Lock()


def _after_fork_in_child() -> None:
    global _opening
    _opening = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork_in_child)


@functools.cache
def _opened(process: int, url: str) -> Remote | None:
    """This process's connection; None, told once, where there can be none. Connections do not survive a fork."""
    try:
        signatures.require()
        trusted = signatures.read_trusted(config.trusted_keys_file())
        if not trusted:
            raise CacheError("no key is trusted here; `jitblas cache trust KEY` makes one so")
        return Remote(url, config.remote_timeout(), trusted)
    except CacheError as error:
        _tell(f"the remote store {url} is not asked: {error}")
        return None


def download(store: Store, key: Key) -> Entry | None:
    """Place the remote store's entry of a key in ours.

    Whatever is wrong with the remote store or its entries is told on stderr, and then there is nothing to place.
    """
    for packed in _fetched(lambda _: [key]):
        if headers_changed(packed.meta["headers"]) is None:  # else it is as good as absent
            return _placed(store, packed)
    return None


def download_best(store: Store, what: str, fitness: Callable[[Mapping[str, Any]], int | None]) -> Entry | None:
    """The same for the fittest entry of a *what*, whoever compiled it. `fitness` is of a meta.json; None: unfit."""
    found = [
        (fit, packed)
        for packed in _fetched(lambda remote: remote.keys(what)[:MOST_CANDIDATES])
        if (fit := fitness(packed.meta)) is not None
    ]
    return _placed(store, max(found, key=lambda item: item[0])[1]) if found else None


def _placed(store: Store, packed: Packed) -> Entry:
    return store.place(packed.key, packed.files)._replace(origin="downloaded")


def _fetched(choose: Callable[[Remote], list[Key]]) -> Iterator[Packed]:
    """The remote store's entries of some keys, checked. What is wrong is told and left out."""
    url = config.remote()
    with _opening:
        remote = None if (os.getpid(), url) in _given_up else _opened(os.getpid(), url)
    if remote is None:
        return
    try:
        for key in choose(remote):
            try:
                packed = remote.get(key)
            except Refused as reason:
                _tell(f"an entry of the remote store {url} is refused: {reason}")
                continue
            if packed is not None:
                yield packed
    except Unreachable as reason:
        with _opening:
            if (os.getpid(), url) in _given_up:
                return  # another thread has told
            _given_up.add((os.getpid(), url))
        _tell(f"the remote store {url} is not asked any more: {reason}")


def _tell(text: str) -> None:
    print(f"jitblas: {text}", file=sys.stderr)

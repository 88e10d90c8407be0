"""Keys, signed stores and archives for tests of what comes from elsewhere."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jitblas.store import archive, signatures
from jitblas.store.entry import Entry, verify
from jitblas.store.folders import root_of
from jitblas.store.signatures import PublicKey, Signer
from jitblas.store.store import Store

Files = dict[str, bytes]


class Person:
    """Somebody with a pair of keys."""

    def __init__(self, folder: Path, name: str) -> None:
        self.secret = folder / f"{name}.key"
        self.public: PublicKey = signatures.generate(str(self.secret), name)
        self.signer = Signer(str(self.secret))
        self.trusted = {self.public.text: name}


def stored(cache: Path) -> list[Entry]:
    store = Store(str(cache), [])
    return [entry for key, _ in store.entries() if (entry := verify(root_of(str(cache)), key)) is not None]


def sign_all(cache: Path, person: Person) -> list[Entry]:
    store = Store(str(cache), [])
    for entry in stored(cache):
        store.replace_meta(entry, person.signer.sign(entry.meta))
    return stored(cache)


def packed(*entries: Entry) -> bytes:
    buffer = io.BytesIO()
    archive.pack(entries, buffer)
    return buffer.getvalue()


def members(data: bytes) -> Files:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def tarred(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def with_file(name: str, change: Callable[[bytes], bytes]) -> Callable[[bytes, Person], bytes]:
    """A change of one file of a packed entry."""

    def changed(data: bytes, _: Person) -> bytes:
        return tarred({path: change(old) if path.endswith(name) else old for path, old in members(data).items()})

    return changed


def with_meta(change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes, Person], bytes]:
    def changed(data: bytes) -> bytes:
        meta = json.loads(data)
        change(meta)
        return json.dumps(meta).encode()

    return with_file("meta.json", changed)


def under_another_key(data: bytes, _: Person) -> bytes:
    """The same files, their names telling another first half of the key."""
    return tarred({"0" * 64 + path[64:]: old for path, old in members(data).items()})


def signed_by_another(data: bytes, stranger: Person) -> bytes:
    def sign(old: bytes) -> bytes:
        meta = json.loads(old)
        del meta["signatures"]
        return json.dumps(stranger.signer.sign(meta)).encode()

    return with_file("meta.json", sign)(data, stranger)


def appended(data: bytes) -> bytes:
    return data + b"\0"


def flipped(data: bytes) -> bytes:
    return data[:-200] + bytes([data[-200] ^ 1]) + data[-199:]


FORGERIES: dict[str, tuple[Callable[[bytes, Person], bytes], str]] = {
    "not signed": (with_meta(lambda meta: meta.pop("signatures")), "it is not signed"),
    "signed by a stranger": (signed_by_another, "signed by nobody who is trusted here"),
    "with somebody else's signature under a trusted key": (
        with_meta(lambda meta: meta.update(signatures=dict.fromkeys(meta["signatures"], "A" * 86 + "=="))),
        "its signature is not valid",
    ),
    "with a signature that is no text": (
        with_meta(lambda meta: meta.update(signatures=dict.fromkeys(meta["signatures"], 7))),
        "its signature is not valid",
    ),
    "altered in its object": (with_file("kernel.so", flipped), "kernel.so was altered"),
    "longer": (with_file("kernel.so", appended), "kernel.so was altered"),
    "altered in its source": (with_file("kernel.cpp", appended), "kernel.cpp was altered"),
    "with another digest": (
        with_meta(lambda meta: meta["files"]["kernel.so"].update(sha256="0" * 64)),
        "its signature is not valid",
    ),
    "for another CPU": (with_meta(lambda meta: meta.update(cpu=[])), "its signature is not valid"),
    "with another key inside": (with_meta(lambda meta: meta.update(what="0" * 64)), "belongs to another key"),
    "under another key": (under_another_key, "belongs to another key"),
    "cut short": (lambda data, _: data[: len(data) // 2], "is no archive of kernels"),
    "no archive": (lambda *_: b"nothing of the kind", "is no archive of kernels"),
    "with a file more": (
        lambda data, _: tarred({**members(data), f"{next(iter(members(data)))[:129]}/extra.so": b""}),
        "is none of a kernel's files",
    ),
    "with a file less": (
        lambda data, _: tarred({path: old for path, old in members(data).items() if not path.endswith(".so")}),
        "its files are not those that its meta.json lists",
    ),
}
"""What somebody may do to a signed entry, given (packed, stranger), and how the refusal says so."""

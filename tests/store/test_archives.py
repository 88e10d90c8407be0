"""Archives: signed or refused, whole or nothing, and never a file beside the store."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitblas import cli
from jitblas.store import archive, signatures
from jitblas.store.signatures import Refused
from tests.store.fleet import FORGERIES, Person, members, packed, sign_all, stored, tarred


@pytest.fixture
def signer(tmp_path: Path) -> Person:
    return Person(tmp_path, "signer")


@pytest.fixture
def stranger(tmp_path: Path) -> Person:
    return Person(tmp_path, "stranger")


@pytest.fixture
def imports(tmp_path: Path, signer: Person, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports an archive into an empty store that trusts the signer; returns the exit code."""
    monkeypatch.setenv("JITBLAS_TRUSTED_KEYS", str(tmp_path / "trusted"))
    monkeypatch.setenv("JITBLAS_CACHE_DIR", str(tmp_path / "new"))
    signatures.trust(str(tmp_path / "trusted"), signer.public)

    def run(data: bytes) -> int:
        (tmp_path / "archive").write_bytes(data)
        return cli.main(["cache", "import", str(tmp_path / "archive")])

    return run


def unpacked(data: bytes, person: Person) -> list[archive.Packed]:
    return list(archive.unpack(io.BytesIO(data), lambda meta: signatures.check(meta, person.trusted)))


def test_an_archive_comes_back_as_it_was_and_the_same_entries_give_the_same_bytes(
    full_store: Path, signer: Person
) -> None:
    entries = sign_all(full_store, signer)
    assert len(entries) == 2
    data = packed(*entries)
    assert packed(*entries) == data
    for entry, one in zip(entries, unpacked(data, signer), strict=True):
        assert one.key == entry.key
        for name, content in one.files.items():
            assert (Path(entry.folder) / name).read_bytes() == content


@pytest.mark.parametrize("forgery", list(FORGERIES))
def test_a_forged_entry_is_refused_with_the_reason_and_nothing_is_placed(
    full_store: Path, tmp_path: Path, signer: Person, stranger: Person, imports: Any, capsys: Any, forgery: str
) -> None:
    forge, reason = FORGERIES[forgery]
    good, bad = sign_all(full_store, signer)
    with pytest.raises(Refused, match=reason):
        unpacked(forge(packed(bad), stranger), signer)
    both = {**members(packed(good)), **(members(forge(packed(bad), stranger)) if "archive" not in reason else {})}
    data = tarred(both) if "archive" not in reason else packed(good)[:-50]
    assert imports(data) == 1
    told = capsys.readouterr().err
    assert reason in told and "nothing of" in told
    assert ("jitblas cache trust" in told) == ("nobody who is trusted" in reason)
    assert not (tmp_path / "new").exists()


KINDS = {
    "file": tarfile.REGTYPE,
    "link": tarfile.SYMTYPE,
    "hard link": tarfile.LNKTYPE,
    "pipe": tarfile.FIFOTYPE,
    "folder": tarfile.DIRTYPE,
    "device": tarfile.CHRTYPE,
}


def test_no_flipped_bit_of_an_archive_gets_through_or_is_more_than_a_refusal(full_store: Path, signer: Person) -> None:
    data = packed(*sign_all(full_store, signer))
    whole = [one.key for one in unpacked(data, signer)]
    random = np.random.default_rng(7)
    for at, bit in zip(random.integers(0, len(data), 200), random.integers(0, 8, 200), strict=True):
        damaged = bytearray(data)
        damaged[at] ^= 1 << bit
        try:
            assert [one.key for one in unpacked(bytes(damaged), signer)] == whole
        except Refused:
            pass


def meddled(kind: str, name: str) -> bytes:
    """An archive with one member of a kind that has no place there."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.type = KINDS[kind]
        member.linkname = "/etc/passwd"
        tar.addfile(member, io.BytesIO(b""))
    return buffer.getvalue()


INSIDE = f"{'a' * 64}/{'b' * 64}"
MEDDLED = [
    *(("file", name) for name in ("/etc/jitblas", "../../x", f"{INSIDE}/../../../x", f"./{INSIDE}/kernel.so",
                                  f"{INSIDE}/kernel.so/x", f"{INSIDE}//kernel.so", f"{INSIDE}/kernel.so\n", "x")),
    *((kind, f"{INSIDE}/kernel.so") for kind in KINDS if kind != "file"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), MEDDLED)
def test_names_that_lead_elsewhere_links_and_devices_are_refused(
    tmp_path: Path, imports: Any, capsys: Any, kind: str, name: str
) -> None:
    before = sorted(os.listdir(tmp_path))
    assert imports(meddled(kind, name)) == 1
    assert "is none of a kernel's files" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "archive"])


def test_a_member_larger_than_any_kernel_is_refused_before_it_is_read(imports: Any, capsys: Any) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(f"{INSIDE}/kernel.so")
        member.size = 1 << 40
        tar.fileobj.write(member.tobuf())  # type: ignore[union-attr]
    assert imports(buffer.getvalue()) == 1
    assert "more than any kernel" in capsys.readouterr().err


def test_a_file_that_is_there_twice_is_refused(full_store: Path, signer: Person) -> None:
    entry = sign_all(full_store, signer)[0]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for _ in range(2):
            tar.add(f"{entry.folder}/kernel.so", f"{entry.key}/kernel.so")
    with pytest.raises(Refused, match="is there twice"):
        unpacked(buffer.getvalue(), signer)


def test_what_is_imported_is_used_without_a_compiler(
    python: Any, compute: str, full_store: Path, tmp_path: Path, signer: Person, imports: Any, capsys: Any
) -> None:
    data = packed(*sign_all(full_store, signer))
    assert imports(data) == 0 and "2 taken in, 0 were there" in capsys.readouterr().out
    assert imports(data) == 0 and "0 taken in, 2 were there" in capsys.readouterr().out
    settings = {"JITBLAS_CACHE_DIR": tmp_path / "new", "JITBLAS_MODE": "load", "PATH": "/nowhere"}
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")


def test_an_import_mends_a_damaged_entry(full_store: Path, tmp_path: Path, signer: Person, imports: Any) -> None:
    data = packed(*sign_all(full_store, signer))
    assert imports(data) == 0
    path = Path(stored(tmp_path / "new")[0].folder) / "kernel.so"
    os.truncate(path, 100)
    assert imports(data) == 0
    assert len(stored(tmp_path / "new")) == 2 and path.stat().st_size > 100


def headers(kind: bytes, size: int, count: int, body: bytes) -> bytes:
    """Headers before a member that tell of its name: another way to be long."""
    member = tarfile.TarInfo("p")
    member.type, member.size = kind, size
    return gzip.compress((member.tobuf(tarfile.GNU_FORMAT) + body) * count + b"\0" * 1024)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "an endless chain of headers": lambda: headers(b"x", 12, 3000, b"12 path=abc\n".ljust(512, b"\0")),
    "an endless chain of names": lambda: headers(b"L", 12, 3000, b"name".ljust(512, b"\0")),
    "a header of 512 MiB": lambda: headers(b"x", 512 << 20, 1, b"\0" * (1 << 20)),
    "a header without end": lambda: headers(b"x", 1 << 87, 1, b"\0" * 512),
    "another compression": lambda: lzma.compress(b"x" * 10_000),
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("kind", list(HOSTILE))
def test_a_hostile_archive_is_refused_in_little_time_and_memory(imports: Any, capsys: Any, kind: str) -> None:
    started = time.monotonic()
    assert imports(HOSTILE[kind]()) == 1
    assert "nothing of" in capsys.readouterr().err
    assert time.monotonic() - started < 2


def test_facts_nested_to_the_last_level_are_refused(full_store: Path, signer: Person) -> None:
    entry = sign_all(full_store, signer)[0]
    for depth in range(900, 1000, 7):
        text = json.dumps({**entry.meta, "deep": 0}).replace('"deep": 0', f'"deep": {"[" * depth}{"]" * depth}')
        with pytest.raises(Refused):
            unpacked(tarred({**members(packed(entry)), f"{entry.key}/meta.json": text.encode()}), signer)


# ---- Signatures and keys --------------------------------------------------------------------------------------------


def test_a_signature_does_not_depend_on_the_spelling_of_meta_json(full_store: Path, signer: Person) -> None:
    meta = signer.signer.sign(stored(full_store)[0].meta)
    respelled = json.loads(json.dumps(dict(reversed(list(meta.items()))), indent=7))
    assert signatures.check(respelled, signer.trusted) == signer.public.text


def test_several_people_can_sign_and_any_of_them_suffices(full_store: Path, signer: Person, stranger: Person) -> None:
    meta = stranger.signer.sign(signer.signer.sign(stored(full_store)[0].meta))
    for person in (signer, stranger):
        assert signatures.check(meta, person.trusted) == person.public.text


def test_keys_are_private_and_never_overwritten(tmp_path: Path, signer: Person) -> None:
    assert signer.secret.stat().st_mode & 0o777 == 0o600
    before = signer.secret.read_bytes()
    for there in ("signer.key", "other.key"):
        (tmp_path / "other.key.pub").write_text("")
        with pytest.raises(Exception, match="is there already; keys are never overwritten"):
            signatures.generate(str(tmp_path / there), "")
    assert signer.secret.read_bytes() == before


@pytest.mark.parametrize("text", ["", "ed25519", "ed25519 AAAA", "rsa " + "A" * 43 + "=", "ed25519 " + "!" * 44])
def test_what_is_no_public_key_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("JITBLAS_TRUSTED_KEYS", str(tmp_path / "trusted"))
    (tmp_path / "file.pub").write_text(text)
    assert cli.main(["cache", "trust", str(tmp_path / "file.pub")]) == 1
    assert not (tmp_path / "trusted").exists()


@pytest.mark.parametrize("place", ["trusted", "."])
def test_trusted_keys_that_others_can_write_do_not_count(
    tmp_path: Path, full_store: Path, signer: Person, imports: Any, capsys: Any, place: str
) -> None:
    data = packed(*sign_all(full_store, signer))
    (tmp_path / place).chmod(0o777)
    assert imports(data) == 1
    assert "do not count" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    (tmp_path / place).chmod(0o700)


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\n", b"\xff"])
def test_a_secret_key_that_is_none_is_an_error(tmp_path: Path, full_store: Path, content: bytes, capsys: Any) -> None:
    (tmp_path / "key").write_bytes(content)
    assert cli.main(["cache", "sign", "--key", str(tmp_path / "key")]) == 1
    assert "is no ed25519 secret key; `jitblas cache keygen FILE` makes one" in capsys.readouterr().err
    assert cli.main(["cache", "sign", "--key", "/nowhere/key"]) == 1


def test_signing_changes_no_key_and_spoils_no_hit(
    python: Any, compute: str, full_store: Path, signer: Person, compiler: Any
) -> None:
    keys = [entry.key for entry in stored(full_store)]
    sign_all(full_store, signer)
    assert [entry.key for entry in stored(full_store)] == keys
    answer = python(compute, JITBLAS_CACHE_DIR=full_store)
    assert (answer.stdout, answer.stderr) == ("right\n", "")

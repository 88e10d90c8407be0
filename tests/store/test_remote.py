"""Remote stores: found, checked, placed; refused with the reason; and never in the way for long."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jitblas
from jitblas.prewarming.upload import Uploader
from jitblas.store import signatures
from jitblas.store.remote import Remote, Unreachable
from tests.store.fleet import FORGERIES, Person, packed, sign_all, stored

needs_s3 = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("s3fs", "moto")), reason="s3fs or moto is missing"
)


@pytest.fixture
def signer(tmp_path: Path) -> Person:
    return Person(tmp_path, "signer")


@pytest.fixture
def settings(tmp_path: Path, signer: Person, compiler: Any) -> dict[str, Any]:
    """Of a process with an empty store, that trusts the signer and asks a remote store in a folder."""
    signatures.trust(str(tmp_path / "trusted"), signer.public)
    return {
        "JITBLAS_CACHE_DIR": tmp_path / "new",
        "JITBLAS_TRUSTED_KEYS": tmp_path / "trusted",
        "JITBLAS_REMOTE": f"file://{tmp_path}/remote",
        **compiler.setting,
    }


@pytest.fixture
def like_ours(python: Any, compute: str, tmp_path: Path, compiler: Any) -> Path:
    """A store filled by the very compiler that the tests use."""
    store = tmp_path / "like-ours"
    assert python(compute, JITBLAS_CACHE_DIR=store, **compiler.setting).stdout == "right\n"
    compiler.forget()
    return store


def upload(cache: Path, signer: Person, url: str) -> list[Any]:
    """Upload every entry of a store; their paths below the URL."""
    uploader = Uploader(url, signer.secret)
    entries = sign_all(cache, signer)
    for entry in entries:
        uploader(entry)
    return [
        Path(url.removeprefix("file://"), "v1", one.key.what[:2], one.key.what, f"{one.key.how}.tar.gz")
        for one in entries
    ]


def test_what_another_machine_uploaded_is_not_compiled_here(
    python: Any, compute: str, like_ours: Path, signer: Person, settings: dict[str, Any], compiler: Any
) -> None:
    for path in upload(like_ours, signer, str(settings["JITBLAS_REMOTE"])):
        assert path.is_file()
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr, compiler.compiled) == ("right\n", "", [])
    assert [entry.key for entry in stored(Path(settings["JITBLAS_CACHE_DIR"]))] == [e.key for e in stored(like_ours)]
    without_remote = python(compute, **{**settings, "JITBLAS_REMOTE": "file:///nowhere"})
    assert (without_remote.stdout, without_remote.stderr, compiler.compiled) == ("right\n", "", [])


def test_without_a_compiler_the_best_entry_of_the_remote_store_is_used(
    python: Any, compute: str, full_store: Path, signer: Person, settings: dict[str, Any]
) -> None:
    upload(full_store, signer, str(settings["JITBLAS_REMOTE"]))
    alone = {**settings, "JITBLAS_CXX": "/nowhere/g++", "PATH": "/nowhere"}
    answer = python(compute, **alone)
    assert (answer.stdout, answer.stderr) == ("right\n", "")


def test_an_empty_remote_store_is_a_miss_without_a_word(
    python: Any, compute: str, settings: dict[str, Any], compiler: Any
) -> None:
    answer = python(compute, **settings)
    assert (answer.stdout, answer.stderr) == ("right\n", "")
    assert len(compiler.compiled) == 2


@pytest.mark.parametrize("forgery", ["not signed", "altered in its object", "under another key"])
def test_a_process_tells_a_refusal_and_compiles_for_itself(
    python: Any, compute: str, tmp_path: Path, like_ours: Path, signer: Person, settings: dict[str, Any],
    compiler: Any, forgery: str,
) -> None:  # fmt: skip
    for path in upload(like_ours, signer, str(settings["JITBLAS_REMOTE"])):
        forge, reason = FORGERIES[forgery]
        path.write_bytes(forge(path.read_bytes(), Person(tmp_path, f"stranger-{path.name[:9]}-{path.parent.name[:9]}")))
    answer = python(compute, **settings)
    assert answer.stdout == "right\n" and len(compiler.compiled) == 2
    assert answer.stderr.count("is refused: ") == answer.stderr.count(reason) == len(answer.stderr.splitlines()) == 2


def test_a_good_entry_copied_to_another_key_is_refused(tmp_path: Path, full_store: Path, signer: Person) -> None:
    """Replay: its signature is valid, its key is not the one asked for."""
    url = f"file://{tmp_path}/remote"
    first, second = upload(full_store, signer, url)
    keys = [entry.key for entry in stored(full_store)]
    second.write_bytes(first.read_bytes())
    remote = Remote(url, 5, signer.trusted)
    assert remote.get(keys[0]) is not None
    with pytest.raises(signatures.Refused, match=f"it holds {keys[0]} and not {keys[1]}"):
        remote.get(keys[1])


def test_an_upload_replaces_what_nobody_would_accept_and_leaves_what_is_good(
    tmp_path: Path, full_store: Path, signer: Person
) -> None:
    url = f"file://{tmp_path}/remote"
    path = upload(full_store, signer, url)[0]
    good, written = path.read_bytes(), path.stat().st_mtime_ns
    upload(full_store, signer, url)
    assert path.stat().st_mtime_ns == written
    path.write_bytes(good[:-50])
    upload(full_store, signer, url)
    assert path.read_bytes() == good
    assert not [name for name in os.listdir(path.parent) if name != path.name]


# ---- Remote stores that are not there -------------------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                pass  # closed

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        for connection in kept:
            connection.close()
        server.shutdown(socket.SHUT_RDWR)


@needs_s3
def test_a_remote_store_that_never_answers_costs_one_timeout(
    python: Any, compute: str, settings: dict[str, Any], compiler: Any, silent: int
) -> None:
    settings |= {"JITBLAS_REMOTE": "s3://bucket/kernels", "JITBLAS_REMOTE_TIMEOUT": "1.5"}
    settings |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent}", "AWS_ACCESS_KEY_ID": "x"}
    settings |= {"AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    started = time.monotonic()
    answer = python(compute, **settings)
    assert time.monotonic() - started < 10
    assert answer.stdout == "right\n" and len(compiler.compiled) == 2
    assert answer.stderr.splitlines() == [
        "jitblas: the remote store s3://bucket/kernels is not asked any more: it did not answer within 1.5 s"
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"JITBLAS_REMOTE": "nonsense://x"}, "the remote store nonsense://x is not asked: "),
        ({"JITBLAS_TRUSTED_KEYS": "/nowhere/trusted"}, "no key is trusted here; `jitblas cache trust KEY`"),
    ],
)
def test_a_remote_store_that_cannot_be_asked_is_told_once(
    python: Any, compute: str, settings: dict[str, Any], compiler: Any, change: dict[str, str], told: str
) -> None:
    answer = python(compute, **{**settings, **change})
    assert answer.stdout == "right\n" and len(compiler.compiled) == 2
    assert len(answer.stderr.splitlines()) == 1 and told in answer.stderr


def test_an_upload_that_does_not_get_through_is_told_and_waits_once(
    tmp_path: Path, full_store: Path, signer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITBLAS_REMOTE_TIMEOUT", "0.3")
    uploader = Uploader(f"file://{tmp_path}/remote", signer.secret)
    monkeypatch.setattr(uploader._remote, "_read", lambda _: threading.Event().wait())
    started = time.monotonic()
    for entry in sign_all(full_store, signer):
        with pytest.raises(jitblas.CacheError, match=f"does not take {entry.key}: it did not answer within 0.3 s"):
            uploader(entry)
    assert time.monotonic() - started < 0.6


def test_a_timeout_does_not_wait_for_the_file_system(tmp_path: Path) -> None:
    remote = Remote(f"file://{tmp_path}", 0.2, {})
    released = threading.Event()
    started = time.monotonic()
    with pytest.raises(Unreachable, match="did not answer within"):
        remote._answer(released.wait)
    assert time.monotonic() - started < 2
    released.set()
    with pytest.raises(Unreachable, match="PermissionError: no"):
        remote._answer(lambda: (_ for _ in ()).throw(PermissionError("no")))


def test_fsspec_or_cryptography_missing_is_told_and_compiled_without(
    python: Any, compute: str, settings: dict[str, Any], like_ours: Path, signer: Person, tmp_path: Path
) -> None:
    upload(like_ours, signer, str(settings["JITBLAS_REMOTE"]))
    for name in ("fsspec", "cryptography"):
        settings["JITBLAS_CACHE_DIR"] = tmp_path / f"without-{name}"
        answer = python(f"import sys; sys.modules[{name!r}] = None\n{compute}", **settings)
        assert answer.stdout == "right\n"
        assert f"the package {name}" in answer.stderr and "pip install 'jitblas[fleet]'" in answer.stderr
        assert len(answer.stderr.splitlines()) == 1


def test_uploading_without_a_key_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    with pytest.raises(jitblas.Error, match="nobody accepts what is not signed"):
        jitblas.prewarm(["axpy_ex:n=9"], store=f"file://{tmp_path}/remote")


# ---- Other file systems ---------------------------------------------------------------------------------------------


def round_trip(url: str, full_store: Path, signer: Person) -> None:
    """Uploaded entries come back byte for byte, listed by their first half."""
    upload(full_store, signer, url)
    remote = Remote(url, 20, signer.trusted)
    for entry in sign_all(full_store, signer):
        assert remote.keys(entry.key.what) == [entry.key]
        found = remote.get(entry.key)
        assert (
            found is not None and {name: Path(entry.folder, name).read_bytes() for name in found.files} == found.files
        )
        absent = entry.key._replace(how="0" * 64)
        assert remote.get(absent) is None and remote.keys("0" * 64) == []


def test_a_remote_store_in_memory(full_store: Path, signer: Person) -> None:
    round_trip("memory://kernels", full_store, signer)


def test_a_remote_store_in_a_folder(tmp_path: Path, full_store: Path, signer: Person) -> None:
    round_trip(f"file://{tmp_path}/a folder/ü", full_store, signer)


@needs_s3
def test_a_remote_store_on_s3(
    python: Any, compute: str, full_store: Path, tmp_path: Path, signer: Person, settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        s3 = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
        s3["AWS_DEFAULT_REGION"] = "us-east-1"
        for name, value in s3.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket="bucket")
        round_trip("s3://bucket/kernels", full_store, signer)
        with pytest.raises(jitblas.CacheError, match="s3://no-bucket/kernels does not take"):
            upload(full_store, signer, "s3://no-bucket/kernels")
        assert [one["Name"] for one in boto3.client("s3").list_buckets()["Buckets"]] == ["bucket"]
        alone = {**settings, **s3, "JITBLAS_REMOTE": "s3://bucket/kernels", "JITBLAS_CXX": "/nowhere/g++"}
        answer = python(compute, **alone)
        assert (answer.stdout, answer.stderr) == ("right\n", "")
    finally:
        server.stop()


def test_an_upload_is_one_archive_with_one_entry(full_store: Path, tmp_path: Path, signer: Person) -> None:
    paths = upload(full_store, signer, f"file://{tmp_path}/remote")
    for path, entry in zip(paths, sign_all(full_store, signer), strict=True):
        assert path.read_bytes() == packed(entry)


def test_uploading_writes_nothing_into_the_store_or_a_tier(tmp_path: Path, full_store: Path, signer: Person) -> None:
    before = [(path, path.read_bytes()) for path in sorted(full_store.rglob("meta.json"))]
    for entry in stored(full_store):
        assert Uploader(f"file://{tmp_path}/remote", signer.secret)(entry)
    assert [(path, path.read_bytes()) for path in sorted(full_store.rglob("meta.json"))] == before


def test_mode_off_asks_no_remote_store(
    python: Any, compute: str, like_ours: Path, signer: Person, settings: dict[str, Any], compiler: Any
) -> None:
    upload(like_ours, signer, str(settings["JITBLAS_REMOTE"]))
    assert python(compute, **settings, JITBLAS_MODE="off").stdout == "right\n"
    assert len(compiler.compiled) == 2

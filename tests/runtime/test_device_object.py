"""A kernel library is loaded only if its device code is for the chip."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from jitblas.errors import ArchMismatch, Status
from jitblas.hardware import ELF_FLAGS, ELF_MACHINE
from jitblas.runtime.device_object import HEADER_BYTES, check_device_object

X86_64 = 62
VECTOR, CUBE = ELF_FLAGS["vector"], ELF_FLAGS["cube"]


def header(flags: int, machine: int = ELF_MACHINE, bits: int = 2) -> bytes:
    identity = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9)
    return identity + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 0, flags, HEADER_BYTES, 0, 0, 0, 0, 0)


def library(*images: bytes, gap: int = 100) -> bytes:
    """A host library with device images at odd offsets."""
    return header(0, X86_64) + b"".join(bytes(gap + i) + image for i, image in enumerate(images)) + bytes(gap)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("vector", [VECTOR]),
        ("vector", [VECTOR, VECTOR]),
        ("cube", [CUBE]),
        ("mixed", [CUBE]),
        ("mixed", [VECTOR]),
        ("mixed", [CUBE, VECTOR]),
    ],
)
def test_device_code_of_the_right_kind_is_accepted(kind: str, flags: list[int]) -> None:
    check_device_object(library(*map(header, flags)), kind)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("vector", [CUBE]),
        ("vector", [VECTOR, CUBE]),
        ("vector", [0x930000]),
        ("cube", [VECTOR]),
        ("mixed", [VECTOR, 0x940000]),
        ("vector", [VECTOR | 1]),
    ],
)
def test_one_wrong_image_is_enough_to_refuse(kind: str, flags: list[int]) -> None:
    with pytest.raises(ArchMismatch) as caught:
        check_device_object(library(*map(header, flags)), kind)
    assert caught.value.status is Status.ARCH_MISMATCH


def test_the_message_says_what_was_found_and_what_is_accepted() -> None:
    with pytest.raises(ArchMismatch, match=r"910 family, e_flags 0x930000.*e_flags 0x990000.*dav-3510"):
        check_device_object(library(header(0x930000)), "vector")
    with pytest.raises(ArchMismatch, match=r"Ascend 950 vector, e_flags 0x990000.*accepted.*0x9a0000"):
        check_device_object(library(header(VECTOR)), "cube")
    with pytest.raises(ArchMismatch, match=r"an unknown chip, e_flags 0x123.*0x990000 or 0x9a0000"):
        check_device_object(library(header(0x123)), "mixed")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", header(VECTOR, X86_64), bytes(1000), b"\x7f" * 100])
def test_a_library_without_device_code_is_refused(data: bytes) -> None:
    with pytest.raises(ArchMismatch, match="no device code"):
        check_device_object(data, "vector")


@pytest.mark.parametrize("length", range(HEADER_BYTES))
def test_a_header_cut_off_anywhere_never_counts(length: int) -> None:
    with pytest.raises(ArchMismatch):
        check_device_object(library() + header(VECTOR)[:length], "vector")


@pytest.mark.parametrize("length", [20, 48, 52, 63])
def test_a_cut_off_image_spoils_a_good_one(length: int) -> None:
    with pytest.raises(ArchMismatch, match="damaged"):
        check_device_object(library(header(VECTOR)) + header(VECTOR)[:length], "vector")


def test_the_magic_number_alone_spoils_nothing() -> None:
    check_device_object(library(header(VECTOR)) + b"\x7fELF", "vector")
    check_device_object(b"\x7fELF\x7fELF" + header(VECTOR), "vector")


def test_a_32_bit_image_is_damaged() -> None:
    with pytest.raises(ArchMismatch, match="damaged"):
        check_device_object(library(header(VECTOR, bits=1)), "vector")


def test_a_file_is_named_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "kernel.so"
    path.write_bytes(library(header(VECTOR)))
    check_device_object(path, "vector")
    check_device_object(str(path), "mixed")
    with pytest.raises(ArchMismatch, match=str(path)):
        check_device_object(path, "cube")


def test_a_large_library_takes_no_time() -> None:
    data = bytes(200 << 20) + header(VECTOR)
    start = time.perf_counter()
    check_device_object(data, "vector")
    assert time.perf_counter() - start < 2

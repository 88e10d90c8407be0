"""Which chip a kernel library was built for, read from its bytes before it is loaded.

bisheng embeds the device code in the host's shared object as ELF images of their own.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from jitblas.errors import ArchMismatch
from jitblas.hardware import ELF_FLAGS, ELF_MACHINE

MAGIC = b"\x7fELF"
HEADER_BYTES = 64
"""Size of an ELF64 header; e_machine is a half word at offset 18, e_flags a word at offset 48."""
IDENTIFIED_BYTES = 20
"""A header cut off before here does not even say what machine it is for."""
CLASS64_LITTLE = b"\x02\x01"

OTHER_FAMILIES = {0x930000: "910 family", 0x940000: "910 family"}
"""e_flags of chips that users may have and these kernels are not for; they only make messages clearer."""

ACCEPTED = {"vector": ("vector",), "cube": ("cube",), "mixed": ("vector", "cube")}
"""Kind of kernel -> kinds of device code its library may hold."""


class Image(NamedTuple):
    """An embedded device image: where it starts and its e_flags (None: a header cut off or malformed)."""

    offset: int
    flags: int | None


def device_images(data: bytes) -> Iterator[Image]:
    """Every ELF image for the Ascend machine that `data` holds, at any offset."""
    at = data.find(MAGIC)
    while at >= 0:
        header = data[at : at + HEADER_BYTES]
        if len(header) >= IDENTIFIED_BYTES and struct.unpack_from("<H", header, 18)[0] == ELF_MACHINE:
            whole = len(header) == HEADER_BYTES and header[4:6] == CLASS64_LITTLE
            yield Image(at, struct.unpack_from("<I", header, 48)[0] if whole else None)
        at = data.find(MAGIC, at + 1)


def check_device_object(path_or_bytes: str | os.PathLike[str] | bytes, kind: str) -> None:
    """Refuse a kernel library that was not built for the Ascend 950.

    Parameters
    ----------
    path_or_bytes : the shared object, or its contents
    kind : which cores the kernel runs on: "vector", "cube" or "mixed"

    Raises
    ------
    ArchMismatch
        Unless the library holds device code and all of it has flags that `kind` allows.
    """
    accepted = {ELF_FLAGS[name] for name in ACCEPTED[kind]}
    if isinstance(path_or_bytes, bytes):
        data, what = path_or_bytes, "kernel library"
    else:
        with open(path_or_bytes, "rb") as file:
            data, what = file.read(), os.fspath(path_or_bytes)
    images = list(device_images(data))
    if images and all(image.flags in accepted for image in images):
        return
    found = ", ".join(dict.fromkeys(_describe(image.flags) for image in images)) or "no device code"
    wanted = " or ".join(f"{flags:#x}" for flags in sorted(accepted))
    raise ArchMismatch(
        f"{what} holds {found}; accepted for a {kind} kernel of the Ascend 950 is device code with e_flags "
        f"{wanted}: compile it with --npu-arch=dav-3510"
    )


def _describe(flags: int | None) -> str:
    if flags is None:
        return "a damaged device image"
    kinds = {value: f"Ascend 950 {name}" for name, value in ELF_FLAGS.items()}
    family = kinds.get(flags) or OTHER_FAMILIES.get(flags) or "an unknown chip"
    return f"device code for {family}, e_flags {flags:#x}"

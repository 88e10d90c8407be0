"""Numbers of the hardware: the only place they stand.

A *target* is what a kernel is compiled for; a *tiling profile* is the set of numbers that tilings are computed from.
They are apart because a host build can be tiled like the chip (that is how kernels are checked for the chip).
Sources: CANN's public documentation and headers for arch35 (dav-3510); host numbers were tuned by `jitblas bench`.
"""

from __future__ import annotations

from typing import NamedTuple

HOST = "host"
ASCEND950PR = "ascend950pr"
TARGETS = (ASCEND950PR, HOST)

ARCHITECTURE = 3510
"""Architecture number of the 950 family, as `aclrtGetDeviceInfo` and `__NPU_ARCH__` give it."""

ELF_MACHINE = 0x1029
"""e_machine of Ascend device objects."""

ELF_FLAGS = {"vector": 0x990000, "cube": 0x9A0000}
"""e_flags of device objects for the 950: vector-only kernels, and cube or mixed ones."""

VECTOR_REGISTER_BYTES = 256
COPY_UNIT = 64
"""Bytes that copies from device memory to device memory start and end at a multiple of."""


class Profile(NamedTuple):
    """What a tiling is computed from.

    Attributes
    ----------
    vector_cores : most blocks a vector kernel is launched with
    ub_bytes : unified buffer that a SIMD kernel may fill, in bytes
    tile_bytes : preferred size of one streaming buffer, in bytes (0: as large as fits)
    tile_unit : tiles are whole multiples of this many elements, what is left over is a tile of its own (1: any tile)
    min_elements_per_core : a block below this many elements is not worth its start
    simt_max_threads : most SIMT threads of one block
    simt_warp : SIMT threads are started in units of this many
    """

    name: str
    vector_cores: int
    ub_bytes: int
    tile_bytes: int
    tile_unit: int
    min_elements_per_core: int
    simt_max_threads: int
    simt_warp: int


PROFILES = {
    # 248 of 256 KiB of UB are usable by default; 56 vector cores on the 957x bin, the runtime is asked for the real
    # number. 512 SIMT threads leave 64 registers each.
    ASCEND950PR: Profile(
        ASCEND950PR,
        vector_cores=56,
        ub_bytes=248 * 1024,
        tile_bytes=0,
        tile_unit=1,
        min_elements_per_core=1024,
        simt_max_threads=512,
        simt_warp=32,
    ),
    # A block must outweigh the handing out of it (microseconds if a thread has to wake). UB is ordinary memory here and
    # tiles are as large as it holds, because nearly all of them are bound and not copied; what is left over after whole
    # registers is copied, so it is kept apart and small. One SIMT thread per block walks memory in order, which is what
    # caches and prefetchers want.
    HOST: Profile(
        HOST,
        vector_cores=64,
        ub_bytes=1024 * 1024,
        tile_bytes=0,
        tile_unit=128,
        min_elements_per_core=64 * 1024,
        simt_max_threads=1,
        simt_warp=1,
    ),
}

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
CACHE_LINE = 64
"""Bytes, of a CPU."""

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
    dot_one_core : most elements of a dot product that one core takes alone, in one launch
    simt_max_threads : most SIMT threads of one block
    simt_warp : SIMT threads are started in units of this many
    thread_floats : numbers that a SIMT thread holds in registers (0: the compiler knows the machine's)
    cube_cores : most blocks a cube or mixed kernel is launched with
    cores_at_once : cube cores that run at the same time
    l1_bytes, l0a_bytes, l0b_bytes, l0c_bytes : buffers of a cube core, in bytes
    tile_m, tile_n : largest tile of a matrix product, in elements; two of them fit L0C
    least_tile : tiles are not made smaller than this to keep more cores busy
    chunk_k : most of k that is in L1 at a time; two chunks of both operands fit
    step_k : most of k that is in L0A and L0B at a time; two steps fit
    narrow_columns, narrow_depth : largest n and k of products that SIMT threads compute, without the cube
    narrow_gathered_columns : the same n where B is read along its columns
    strip_rows, least_strip : most rows of C that one of these threads computes, and fewest to keep more cores busy
    syrk_tile : largest tile of a symmetric product, in elements; three sums of it fit L0C
    syrk_blocks : (least n, rows and columns of the blocks that such a tile is computed in), n descending; blocks beyond
        the triangle are left out
    syrk_unit : such tiles are whole multiples of this many elements
    syrk_small : largest n and k of symmetric products that SIMT threads compute, without the cube
    segment_k : most of k that the cube adds up; vector cores add the sums
    register_bytes : width of the registers of kernels whose results do not depend on it
    fft_radix : points of the largest codelet of vector functions
    fft_tiny : most points of a transform that a SIMT thread does alone, by one codelet
    fft_whole_bytes : largest transform done in one pass, in bytes (0: as large as fits)
    fft_tile_bytes : largest task of a pass of several, in bytes (0: as large as fits)
    fft_together_bytes : largest transform of several passes that one core makes alone, its workspace in a cache
    fft_run_bytes : bytes that such a task reads or writes in one run, at least
    fix_pipe_unit : rows of a matrix that the fix-pipe writes are a multiple of this many elements apart
    """

    name: str
    vector_cores: int
    ub_bytes: int
    tile_bytes: int
    tile_unit: int
    min_elements_per_core: int
    dot_one_core: int
    simt_max_threads: int
    simt_warp: int
    thread_floats: int
    cube_cores: int
    cores_at_once: int
    l1_bytes: int
    l0a_bytes: int
    l0b_bytes: int
    l0c_bytes: int
    tile_m: int
    tile_n: int
    least_tile: int
    chunk_k: int
    step_k: int
    narrow_columns: int
    narrow_gathered_columns: int
    narrow_depth: int
    strip_rows: int
    least_strip: int
    syrk_tile: int
    syrk_blocks: tuple[tuple[int, int], ...]
    syrk_unit: int
    syrk_small: int
    segment_k: int
    fix_pipe_unit: int
    register_bytes: int
    fft_radix: int
    fft_tiny: int
    fft_whole_bytes: int
    fft_tile_bytes: int
    fft_together_bytes: int
    fft_run_bytes: int


CUBE_BUFFERS = ("l1_bytes", "l0a_bytes", "l0b_bytes", "l0c_bytes")

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
        dot_one_core=32 * 1024,
        simt_max_threads=512,
        simt_warp=32,
        thread_floats=32,
        cube_cores=28,
        cores_at_once=28,
        l1_bytes=512 * 1024,
        l0a_bytes=64 * 1024,
        l0b_bytes=64 * 1024,
        l0c_bytes=256 * 1024,
        tile_m=128,
        tile_n=128,
        least_tile=64,
        chunk_k=256,
        step_k=64,
        narrow_columns=16,
        narrow_gathered_columns=16,
        narrow_depth=16,
        strip_rows=16,
        least_strip=16,
        syrk_tile=128,
        syrk_blocks=((0, 128),),
        syrk_unit=16,
        syrk_small=32,
        segment_k=512,
        fix_pipe_unit=8,
        register_bytes=VECTOR_REGISTER_BYTES,
        fft_radix=16,
        fft_tiny=32,
        fft_whole_bytes=0,
        fft_tile_bytes=0,
        fft_together_bytes=1024 * 1024,
        fft_run_bytes=512,
    ),
    # A block must outweigh the handing out of it (microseconds if a thread has to wake). UB is ordinary memory here and
    # tiles are as large as it holds, because nearly all of them are bound and not copied; what is left over after whole
    # registers is copied, so it is kept apart and small. One SIMT thread per block walks memory in order, which is what
    # caches and prefetchers want. The cube's buffers are ordinary memory, too: tiles are as large as keeps packed
    # operands in the second-level cache.
    HOST: Profile(
        HOST,
        vector_cores=64,
        ub_bytes=16 * 1024 * 1024,
        tile_bytes=256 * 1024,
        tile_unit=256,
        min_elements_per_core=64 * 1024,
        dot_one_core=128 * 1024,
        simt_max_threads=1,
        simt_warp=1,
        thread_floats=0,
        cube_cores=64,
        cores_at_once=1,
        l1_bytes=4 * 1024 * 384 * 4,
        l0a_bytes=2 * 1024 * 384 * 4,
        l0b_bytes=2 * 1024 * 384 * 4,
        l0c_bytes=3 * 1024 * 1024 * 4,
        tile_m=1024,
        tile_n=512,
        least_tile=128,
        chunk_k=384,
        step_k=384,
        narrow_columns=32,
        narrow_gathered_columns=16,
        narrow_depth=384,
        strip_rows=512,
        least_strip=64,
        syrk_tile=864,
        syrk_blocks=((640, 144), (96, 48), (0, 32)),
        syrk_unit=48,
        syrk_small=16,
        segment_k=1024 * 1024,
        fix_pipe_unit=1,
        register_bytes=64,
        fft_radix=16,
        fft_tiny=32,
        fft_whole_bytes=256 * 1024,
        fft_tile_bytes=512 * 1024,
        fft_together_bytes=1024 * 1024,
        fft_run_bytes=128,
    ),
}

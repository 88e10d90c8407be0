"""What the compiler is given, what the store keeps, and what is never loaded."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.ascend.conftest import Scenario
from tests.standins.build import PROJECT, Cann

FLAGS = "-x asc -std=c++17 -O3 -DNDEBUG -DASCENDC_DUMP=0 -shared -fPIC --npu-arch=dav-3510"
AXPY = """
x, y = np.arange(5, dtype="float32"), np.ones(5, "float32")
"""
RIGHT = """
assert (jitblas.axpy_ex(2.0, x, y) == [1, 3, 5, 7, 9]).all()
"""
WATCHED = """
opened, started = [], []
def watch(event, arguments):
    if event == "ctypes.dlopen": opened.append(str(arguments[0]))
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork"): started.append(arguments)
sys.addaudithook(watch)
"""


def runs(log: Path) -> list[str]:
    """Compiles of kernels that the compiler was run for, without its probes."""
    return [line for line in log.read_text().splitlines() if "JITBLAS_KEY" in line]


def entries(store: str) -> list[Path]:
    """The folders of the store's kernels for the chip."""
    return [meta.parent for meta in Path(store, "v1").glob("??/*/*/meta.json") if '"ascend950pr"' in meta.read_text()]


# ---- what the compiler is given --------------------------------------------------------------------------------------


def test_the_command_is_the_documented_one(scenario: Scenario, cann: Cann) -> None:
    finished = scenario("""
        for exact in (False, True):
            found = jitblas.specialize("axpy_ex:n=1000,dtype=bf16,incx=2", "ascend950pr", exact=exact)
            print(*found.command, sep="\\n")
            assert f'-DJITBLAS_KEY="{found.key}"' in found.command
    """, report=None, JITBLAS_TARGET="host")  # fmt: skip
    words = finished.stdout.splitlines()
    for command in (words[: len(words) // 2], words[len(words) // 2 :]):
        assert command[0] == str(cann.bisheng)
        define = command[-5]
        assert define.startswith('-DJITBLAS_KEY="')
        tail = f"{define} -I{PROJECT / 'kernels_src'} kernel.cpp -o kernel.so"
        assert " ".join(command[1:]) == f"{FLAGS} {tail}"


def test_the_compiler_gets_the_command_that_was_shown(scenario: Scenario, empty_store: str, compiler_log: Path) -> None:
    code = """
        shown = jitblas.specialize("axpy_ex:n=5").command
        jitblas.axpy_ex(2.0, x, y)
        print(*shown[1:])
    """
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    shown = scenario(AXPY + code.replace("\n        ", "\n"), **settings).stdout.split()
    (ran,) = (line.split() for line in runs(compiler_log))
    assert [os.path.basename(word) for word in ran] == [os.path.basename(word) for word in shown]


@pytest.mark.parametrize(
    ("line", "baked"),
    [
        ("axpy_ex:n=1000", ["uint64_t n = 1000"]),
        ("axpy_ex:n=1000,incx=2,incy=-3", ["uint64_t n = 1000", "int64_t incx = -2", "int64_t incy = 3"]),
    ],
)
def test_an_exact_kernel_has_its_sizes_baked_in(
    scenario: Scenario, empty_store: str, line: str, baked: list[str]
) -> None:
    code = """
        line = sys.argv[1]
        problem = jitblas.Problem.parse(line)
        x = jitblas.array(numbers("fp32", 1000 * abs(problem.value("incx")), 1))[:: problem.value("incx")]
        start = numbers("fp32", 1000 * abs(problem.value("incy")), 2)
        exact, plain = jitblas.plan(line), jitblas.plan(line, exact=False)
        assert exact.specialization.exact and not plain.specialization.exact
        expected = axpy(-2.0, x.numpy(), start[:: problem.value("incy")])
        for plan in (exact, plain):
            y = jitblas.array(start)
            plan(-2.0, x, y[:: problem.value("incy")])
            assert_same_bits(y[:: problem.value("incy")].numpy(), expected)
            plan(x, y[:: problem.value("incy")])  # alpha of the problem: 1
            y.numpy()
    """
    scenario(code, line, JITBLAS_CACHE_DIR=empty_store)
    texts = [(folder / "kernel.cpp").read_text() for folder in entries(empty_store)]
    assert len(texts) == 2
    (exact,) = (text for text in texts if "static constexpr" in text.split("namespace spec")[0])
    for member in baked:
        assert f"static constexpr {member};" in exact
        assert all(f"{member};" not in text for text in texts if text is not exact)


def test_an_exact_plan_runs_its_own_kernel_on_numpy_arrays_too(
    scenario: Scenario, empty_store: str, compiler_log: Path
) -> None:
    code = """
        plan = jitblas.plan("axpy_ex:n=1000")
        y = np.ones(1000, "float32")
        assert (plan(1.0, y, y) == 2).all()
    """
    scenario(code, JITBLAS_CACHE_DIR=empty_store, STANDIN_BISHENG_LOG=str(compiler_log))
    assert len(runs(compiler_log)) == 1


@pytest.mark.parametrize("cores", [8, 56, 72])
def test_the_device_is_asked_for_its_vector_cores(scenario: Scenario, tmp_path: Path, cores: int) -> None:
    launches = tmp_path / "launches"
    code = """
        for n in (100, 504 * 1024):  # 504 = 7 * 8 * 9: equal runs of whole registers
            for step in (1, 2):
                x, y = jitblas.zeros(n * step), jitblas.zeros(n * step)
                jitblas.axpy_ex(1.0, x[::step], y[::step])
                jitblas.plan(f"axpy_ex:n={n},incx={step},incy={step}", exact=False)(x[::step], y[::step])
                y.numpy()
    """
    scenario(code, STANDIN_VECTOR_CORES=str(cores), STANDIN_LAUNCHES=str(launches))
    assert launches.read_text().split() == ["1"] * 4 + [str(cores)] * 4


def test_kernels_serve_chips_of_any_core_count(scenario: Scenario, empty_store: str, compiler_log: Path) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    for cores in ("8", "72"):
        scenario(AXPY + RIGHT, STANDIN_VECTOR_CORES=cores, **settings)
    assert len(runs(compiler_log)) == 1


# ---- the store -------------------------------------------------------------------------------------------------------


def test_a_second_process_starts_no_compiler(scenario: Scenario, empty_store: str, compiler_log: Path) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    scenario(AXPY + RIGHT, **settings)
    assert len(runs(compiler_log)) == 1
    before = compiler_log.read_text()
    scenario(WATCHED + AXPY + RIGHT + "assert not started, started", **settings)
    assert compiler_log.read_text() == before
    (folder,) = entries(empty_store)
    assert sorted(path.name for path in folder.iterdir()) == ["kernel.cpp", "kernel.so", "meta.json"]


def test_mode_load_needs_no_compiler(
    scenario: Scenario, empty_store: str, cann: Cann, compiler_log: Path, no_programs: str
) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    scenario(AXPY + RIGHT, **settings)
    before = compiler_log.read_text()
    frozen = {**settings, "JITBLAS_BISHENG": "/nonexistent/bisheng", "PATH": no_programs}
    scenario(WATCHED + AXPY + RIGHT + "assert not started, started", JITBLAS_MODE="load", **frozen)
    scenario(AXPY + RIGHT, **frozen)  # in the default mode too
    tiers = {**frozen, "JITBLAS_CACHE_DIR": empty_store + "-other", "JITBLAS_CACHE_PATH": empty_store}
    scenario(AXPY + RIGHT, JITBLAS_MODE="load", **tiers)
    code = """
        half = np.ones(5, "float16")
        try:
            jitblas.axpy_ex(2.0, half, half)
        except jitblas.MissingKernelError as error:
            assert "jitblas prewarm axpy_ex:n=5,dtype=fp16 --target ascend950pr" in str(error), error
        else:
            raise AssertionError("no error")
        assert (half == 1).all()
    """
    scenario(code, JITBLAS_MODE="load", **frozen)
    code = code.replace("MissingKernelError", "CompilerNotFound").replace(
        "jitblas prewarm axpy_ex:n=5,dtype=fp16 --target ascend950pr", "set_env.sh"
    )
    scenario(code, **frozen)
    assert compiler_log.read_text() == before


def test_mode_off_leaves_no_trace(scenario: Scenario, empty_store: str, compiler_log: Path) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    for _ in range(2):
        scenario(AXPY + RIGHT, JITBLAS_MODE="off", **settings)
    assert len(runs(compiler_log)) == 2
    assert not os.path.exists(empty_store)


def test_another_toolkit_version_is_another_kernel(
    scenario: Scenario, empty_store: str, cann: Cann, compiler_log: Path, tmp_path: Path
) -> None:
    settings = {"JITBLAS_CACHE_DIR": empty_store, "STANDIN_BISHENG_LOG": str(compiler_log)}
    scenario(AXPY + RIGHT, **settings)
    moved = tmp_path / "moved"
    subprocess.run(["cp", "-a", str(cann.root), str(moved)], check=True)
    scenario(AXPY + RIGHT, ASCEND_HOME_PATH=str(moved), **settings)
    assert len(runs(compiler_log)) == 1  # the same toolkit, elsewhere
    (info,) = moved.glob("*-linux/ascend_toolkit_install.info")
    info.write_text(info.read_text().replace("version=9.1.0", "version=9.2.0"))
    scenario(AXPY + RIGHT, ASCEND_HOME_PATH=str(moved), **settings)
    assert len(runs(compiler_log)) == 2

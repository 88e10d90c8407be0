"""Problem lines: what is read is what is printed, and what cannot be read is refused with what could."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitblas import Problem, ProblemSyntaxError
from jitblas.problem import expand

MOST = 2**31 - 1  # the C interface counts in int

increments = st.integers(-MOST, MOST)
alphas = st.floats() | st.integers(-1000, 1000).map(float)


@given(
    st.fixed_dictionaries(
        {"n": st.integers(0, MOST)},
        optional={
            "dtype": st.sampled_from(["fp32", "fp16", "bf16"]),
            "incx": increments,
            "incy": increments,
            "alpha": alphas,
            "scalar": st.sampled_from(["host", "device"]),
        },
    )
)
def test_every_problem_survives_being_printed_and_read(given: dict[str, Any]) -> None:
    problem = Problem.make("axpy_ex", given)
    again = Problem.parse(str(problem))
    assert str(again) == str(problem)
    assert repr(again) == repr(problem)  # to the sign of zero, and with NaN equal to itself


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("axpy_ex:n=1e6,dtype=bf16", "axpy_ex:n=1000000,dtype=bf16"),
        ("axpy_ex:dtype=bf16,n=1e6", "axpy_ex:n=1000000,dtype=bf16"),
        (" axpy_ex: n = 7 , incx = -2 ", "axpy_ex:n=7,incx=-2"),
        ("axpy_ex:n=5,dtype=fp32,incx=1,alpha=1.0,scalar=host", "axpy_ex:n=5"),
        ("axpy_ex:n=5,alpha=-2.50", "axpy_ex:n=5,alpha=-2.5"),
        ("axpy_ex:n=5,alpha=nan", "axpy_ex:n=5,alpha=nan"),
        ("axpy_ex:n=5,alpha=-inf", "axpy_ex:n=5,alpha=-inf"),
        ("axpy_ex:n=0", "axpy_ex:n=0"),
    ],
)
def test_a_line_is_printed_in_one_form_without_defaults(line: str, printed: str) -> None:
    assert str(Problem.parse(line)) == printed


def test_equal_problems_are_equal_and_hash_alike() -> None:
    one, other = Problem.parse("axpy_ex:n=1e3"), Problem.parse("axpy_ex:n=1000,dtype=fp32")
    assert one == other and hash(one) == hash(other)
    assert one.value("n") == 1000 and one.value("alpha") == 1.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "unknown operator ''; known are axpy_ex"),
        ("saxpy:n=4", "unknown operator 'saxpy'; known are axpy_ex"),
        ("axpy_ex", "n= is missing"),
        ("axpy_ex:dtype=fp16", "n= is missing"),
        ("axpy_ex:n=4,m=3", "unknown name 'm'; axpy_ex takes n=, dtype="),
        ("axpy_ex:NT,n=4", "unknown name 'NT'"),
        ("axpy_ex:n=4,n=5", "n is given twice"),
        ("axpy_ex:n=-1", "at least 0"),
        ("axpy_ex:n=2147483648", "at most 2147483647"),
        ("axpy_ex:n=4,incx=-1e10", "2147483647"),
        ("axpy_ex:n=1.5", "a whole number is needed"),
        ("axpy_ex:n=1e-3", "a whole number is needed"),
        ("axpy_ex:n=inf", "a whole number is needed"),
        ("axpy_ex:n=nan", "a whole number is needed"),
        ("axpy_ex:n=four", "not a number"),
        ("axpy_ex:n=", "not a number"),
        ("axpy_ex:n=4,alpha=x", "not a number"),
        ("axpy_ex:n=4,dtype=fp64", "accepted are fp32, fp16, bf16"),
        ("axpy_ex:n=4,scalar=gpu", "accepted are host, device"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_could(line: str, said: str) -> None:
    with pytest.raises(ProblemSyntaxError) as caught:
        Problem.parse(line)
    assert said in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("axpy_ex:n=4", ["axpy_ex:n=4"]),
        ("axpy_ex:n={1,2,8}", ["axpy_ex:n=1", "axpy_ex:n=2", "axpy_ex:n=8"]),
        ("axpy_ex:n={1e3..1e5:*10}", ["axpy_ex:n=1000", "axpy_ex:n=10000", "axpy_ex:n=100000"]),
        ("axpy_ex:n={1..7:+2}", ["axpy_ex:n=1", "axpy_ex:n=3", "axpy_ex:n=5", "axpy_ex:n=7"]),
        ("axpy_ex:n={1..8:+5}", ["axpy_ex:n=1", "axpy_ex:n=6"]),
        (
            "axpy_ex:n={4..64:*4},dtype={fp32,bf16}",
            [f"axpy_ex:n={n},dtype={dtype}" for n in (4, 16, 64) for dtype in ("fp32", "bf16")],
        ),
        ("axpy_ex:n=3,incx={-2..2:+2}", ["axpy_ex:n=3,incx=-2", "axpy_ex:n=3,incx=0", "axpy_ex:n=3,incx=2"]),
    ],
)
def test_ranges_expand_with_the_first_brace_slowest(line: str, lines: list[str]) -> None:
    assert expand(line) == lines


@given(st.integers(1, 10**6), st.integers(1, 20), st.integers(2, 10))
def test_a_multiplied_range_reaches_its_end_exactly(first: int, steps: int, by: int) -> None:
    last = first * by**steps
    if last < 2**50:
        values = [int(line.partition("=")[2]) for line in expand(f"axpy_ex:n={{{first}..{last}:*{by}}}")]
        assert values == [first * by**k for k in range(steps + 1)]
        assert math.isclose(values[-1], last)


@pytest.mark.parametrize(
    "line",
    [
        "axpy_ex:n={1..8:*1}",
        "axpy_ex:n={1..8:+0}",
        "axpy_ex:n={1..8:+-1}",
        "axpy_ex:n={0..8:*2}",
        "axpy_ex:n={1..8}",
        "axpy_ex:n={}",
        "axpy_ex:n={1..x:+1}",
        "axpy_ex:n={1,2",
        "axpy_ex:n=1,2}",
        "axpy_ex:n={1..inf:*2}",
        "axpy_ex:n={nan..9:+1}",
        "axpy_ex:n={1..nan:+1}",
    ],
)
@pytest.mark.timeout(10)
def test_ranges_that_are_none_or_never_end_are_refused(line: str) -> None:
    with pytest.raises(ProblemSyntaxError):
        expand(line)


def test_words_of_bare_parameters_stand_alone() -> None:
    problem = Problem.parse("sgemm_strided_batched: TN, m=4,n=5,k=6")
    assert problem == Problem.parse("sgemm_strided_batched:m=4,n=5,k=6,trans=TN")
    assert str(problem) == "sgemm_strided_batched:TN,m=4,n=5,k=6"
    assert Problem.parse(str(problem)) == problem
    for wrong in ("TN,NT,m=1,n=1,k=1", "XX,m=1,n=1,k=1", "m=1,n=1,k=1,fp32"):
        with pytest.raises(ProblemSyntaxError):
            Problem.parse(f"sgemm_strided_batched:{wrong}")
    with pytest.raises(ProblemSyntaxError, match=r"NN \| NT \| TN \| TT, m="):
        Problem.parse("sgemm_strided_batched:XX,m=1,n=1,k=1")


scalars = st.complex_numbers(allow_nan=False) | st.floats(allow_nan=False) | st.integers(-1000, 1000).map(float)


@given(
    st.fixed_dictionaries(
        {"n": st.integers(0, MOST), "k": st.integers(0, MOST)},
        optional={
            "form": st.sampled_from(["LN", "LT", "UN", "UT"]),
            "order": st.sampled_from(["row", "col"]),
            "alpha": scalars,
            "beta": scalars,
            "algorithm": st.sampled_from(["auto", "4m", "3m"]),
        },
    )
)
def test_complex_scalars_survive_being_printed_and_read(given: dict[str, Any]) -> None:
    problem = Problem.make("csyrk", given)
    again = Problem.parse(str(problem))
    assert Problem.parse(str(again)) == again
    for name in ("alpha", "beta"):
        assert complex(again.value(name)) == complex(problem.value(name))


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("csyrk:LN,n=4,k=3,alpha=1,beta=0", "csyrk:n=4,k=3"),
        ("csyrk:n=4,k=3,alpha=1+0j,beta=0j", "csyrk:n=4,k=3"),
        ("csyrk:UT,n=4,k=3,alpha=2,beta=0.5-1j", "csyrk:UT,n=4,k=3,alpha=2,beta=0.5-1j"),
        ("csyrk:n=4,k=3,alpha=1j", "csyrk:n=4,k=3,alpha=1j"),
        ("csyrk:n=4,k=3,alpha=(1.50-2j)", "csyrk:n=4,k=3,alpha=1.5-2j"),
        ("csyrk:n=4,k=3,alpha=1e3,beta=inf", "csyrk:n=4,k=3,alpha=1000,beta=inf"),
        ("csyrk:n=512,k=64,form=LT,beta=1", "csyrk:LT,n=512,k=64,beta=1"),
        ("csyrk:n=4,k=3,algorithm=3m,order=col", "csyrk:n=4,k=3,order=col,algorithm=3m"),
    ],
)
def test_a_complex_scalar_is_printed_as_it_can_be_read(line: str, printed: str) -> None:
    assert str(Problem.parse(line)) == printed
    assert Problem.parse(printed) == Problem.parse(line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("csyrk:n=4", "k= is missing"),
        ("csyrk:n=4,k=3,alpha=x", "alpha=x: no complex number; 2, 0.5-1j and 1j are some"),
        ("csyrk:n=4,k=3,beta=1+i", "beta=1+i: no complex number"),
        ("csyrk:n=4,k=3,alpha=", "no complex number"),
        ("csyrk:n=4,k=3,alpha=1 + 1j", "no complex number"),
        ("csyrk:LC,n=4,k=3", "unknown name 'LC'; csyrk takes LN | LT | UN | UT, n=, k="),
        ("csyrk:LN,UT,n=4,k=3", "form is given twice"),
        ("csyrk:n=4,k=-3", "at least 0"),
        ("csyrk:n=1j,k=3", "not a number"),
        ("csyrk:n=4,k=3,algorithm=2m", "accepted are auto, 4m, 3m"),
    ],
)
def test_what_is_no_problem_of_csyrk_is_refused_with_what_could_be(line: str, said: str) -> None:
    with pytest.raises(ProblemSyntaxError) as caught:
        Problem.parse(line)
    assert said in str(caught.value)

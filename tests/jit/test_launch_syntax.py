"""Launches are found by tokens and become calls; nothing else in a source changes, and no line moves."""

from __future__ import annotations

import pytest

from jitblas.jit.launch_syntax import LaunchSyntaxError, rewrite_launches

UNTOUCHED = [
    "int x = a << b >> c;",
    "a <<= 2; b >>= 3;",
    "if (a < b && c > d) {}",
    "std::cout << x << std::endl;",
    "// k<<<1, nullptr, s>>>(x);",
    "/* k<<<1, nullptr, s>>>(x); \n over lines */",
    'const char* t = "k<<<1, nullptr, s>>>(x)";',
    'const char* t = "escaped \\" k<<<1, 0, s>>>(x)";',
    'const char* t = R"(k<<<1, 0, s>>>(x) " )";',
    'const char* t = R"fence(k<<<1)" <<< )fence";',
    'const char* t = u8R"(say "k<<<1, 0, s>>>(x)")";',
    'auto t = LR"x(" <<< )x";',
    "char c = '<'; char d = '\"'; char e = '\\'';",
    "int n = 1'000'000 << 2;",
    "#error don't <here>",
    "Map<int, List<List<int>>> m;",
    "A<B<C<D>>> deep;",
    "template <typename T, int N = (3 > 2)> struct S;",
    "auto f = [](int a) { return a << 1 >> 2; };",
    "",
]


@pytest.mark.parametrize("source", UNTOUCHED)
def test_what_is_no_launch_is_left_alone(source: str) -> None:
    assert rewrite_launches(source) == source


LAUNCHES = {
    "k<<<1, nullptr, s>>>(x);": '::twin::Launch(k, "k", 1, nullptr, s)(x);',
    "k <<< 1, nullptr, s >>> (x);": '::twin::Launch(k, "k",  1, nullptr, s ) (x);',
    "ns::k<<<b, 0, s>>>(x, y);": '::twin::Launch(ns::k, "ns::k", b, 0, s)(x, y);',
    "a::b::k<<<b, 0, s>>>();": '::twin::Launch(a::b::k, "a::b::k", b, 0, s)();',
    "::k<<<b, 0, s>>>();": '::twin::Launch(::k, "::k", b, 0, s)();',
    "return k<<<b, 0, s>>>();": 'return ::twin::Launch(k, "k", b, 0, s)();',
    "k<T><<<b, 0, s>>>(x);": '::twin::Launch(k<T>, "k<T>", b, 0, s)(x);',
    "k<T, 3><<<b, 0, s>>>(x);": '::twin::Launch(k<T, 3>, "k<T, 3>", b, 0, s)(x);',
    "ns::k<A<B>, 3><<<b, 0, s>>>(x);": '::twin::Launch(ns::k<A<B>, 3>, "ns::k<A<B>, 3>", b, 0, s)(x);',
    "k<A<B>><<<b, 0, s>>>(x);": '::twin::Launch(k<A<B>>, "k<A<B>>", b, 0, s)(x);',
    "k<A<B<C>>><<<b, 0, s>>>(x);": '::twin::Launch(k<A<B<C>>>, "k<A<B<C>>>", b, 0, s)(x);',
    "k<(N > 3)><<<b, 0, s>>>(x);": '::twin::Launch(k<(N > 3)>, "k<(N > 3)>", b, 0, s)(x);',
    "k<T  ,\t3><<<b, 0, s>>>(x);": '::twin::Launch(k<T  ,\t3>, "k<T , 3>", b, 0, s)(x);',
    "k<'\"'><<<b, 0, s>>>(x);": "::twin::Launch(k<'\"'>, \"k<'\\\"'>\", b, 0, s)(x);",
    "k<<<f(a, (b)), g[h(1)], s>>>(x);": '::twin::Launch(k, "k", f(a, (b)), g[h(1)], s)(x);',
    "k<<<(a >> b), c << d, s>>>(x);": '::twin::Launch(k, "k", (a >> b), c << d, s)(x);',
    "k<<<n >> 2, 0, s>>>(x);": '::twin::Launch(k, "k", n >> 2, 0, s)(x);',
    "k<<<(a >>> b), 0, s>>>(x);": '::twin::Launch(k, "k", (a >>> b), 0, s)(x);',
    "k<<<f(\">>>\"), ')', s>>>(x);": '::twin::Launch(k, "k", f(">>>"), \')\', s)(x);',
    "k<<<b /* >>> */, 0, s>>>(x);": '::twin::Launch(k, "k", b /* >>> */, 0, s)(x);',
    "a<<<1, 0, s>>>(x); b<<<2, 0, s>>>(y);": (
        '::twin::Launch(a, "a", 1, 0, s)(x); ::twin::Launch(b, "b", 2, 0, s)(y);'
    ),
    "#define L(k, ...) k<<<1, 0, s>>>(__VA_ARGS__)": ('#define L(k, ...) ::twin::Launch(k, "k", 1, 0, s)(__VA_ARGS__)'),
}


@pytest.mark.parametrize("source", list(LAUNCHES))
def test_a_launch_becomes_a_call_of_the_twin(source: str) -> None:
    assert rewrite_launches(source) == LAUNCHES[source]


def without_blanks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    "source",
    [
        "k\n    <<<1, 0, s>>>(x);\nmore();",
        "k<T,\n  3>\n<<<1,\n 0,\n s\n>>>(\n x);\nmore();",
        "ns::\nk<<<1, 0, s>>>(x);",
        "k<<<1, 0, s // the stream\n>>>(x);",
        '/* one\n two */ k<<<1, 0, s>>>(R"(\n)");\nmore();',
    ],
)
def test_no_line_moves(source: str) -> None:
    rewritten = rewrite_launches(source)
    assert "::twin::Launch(" in rewritten
    assert rewritten.count("\n") == source.count("\n")
    last = source.splitlines()[-1]
    assert rewritten.splitlines()[-1].endswith(last[-3:])


def test_a_comment_after_the_kernel_s_name_swallows_nothing() -> None:
    rewritten = rewrite_launches("k // which kernel\n<<<1, 0, s>>>(x);")
    code = "\n".join(line.partition("//")[0] for line in rewritten.splitlines())
    assert without_blanks(code) == '::twin::Launch(k,"k",1,0,s)(x);'


KERNELS = """
extern "C" __global__ __aicore__ void split(GM_ADDR a, Tiling tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    if (tiling.n > 3) { Split(a); }
}
template <int n>
__global__ __aicore__ void multiply(GM_ADDR a) {
    // KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    KERNEL_TASK_TYPE_DEFAULT(  KERNEL_TYPE_MIX_AIC_1_2 /* a cube, two vectors */ );
}
extern "C" __global__ __aicore__ void untyped(GM_ADDR a) {}
"""


@pytest.mark.parametrize(
    ("launch", "rewritten"),
    [
        ("split<<<1, 0, s>>>(x);", '::twin::Launch<::AscendC::KERNEL_TYPE_AIV_ONLY>(split, "split", 1, 0, s)(x);'),
        (
            "multiply <<<n, 0, s>>>(x);",
            '::twin::Launch<::AscendC::KERNEL_TYPE_MIX_AIC_1_2>(multiply, "multiply", n, 0, s)(x);',
        ),
        ("untyped<<<1, 0, s>>>(x);", '::twin::Launch(untyped, "untyped", 1, 0, s)(x);'),
        ("other<<<1, 0, s>>>(x);", '::twin::Launch(other, "other", 1, 0, s)(x);'),
        ("ns::split<<<1, 0, s>>>(x);", '::twin::Launch(ns::split, "ns::split", 1, 0, s)(x);'),
    ],
)
def test_a_launch_says_which_cores_a_kernel_of_the_same_source_runs_on(launch: str, rewritten: str) -> None:
    """Whether the kernel stands before its launch or behind it; of others the build knows."""
    assert rewrite_launches(KERNELS + launch) == KERNELS + rewritten
    assert rewrite_launches(launch + KERNELS) == rewritten + KERNELS


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("\n\nk<<<1, 0, s(x);\n", 3, "without its >>>"),
        ("k<<<(1, 0, s>>>(x);", 1, "without its >>>"),
        ("k<<<1), 0, s>>>(x);", 1, "without its >>>"),
        ("k<<<a[1, 0, s)>>>(x);", 1, "without its >>>"),
        ("\n  <<<1, 0, s>>>(x);", 2, "no kernel name"),
        ("int a;\n= 3 + <<<1, 0, s>>>(x);", 2, "no kernel name"),
        ("/* one\ntwo */\n(k)<<<1, 0, s>>>(x);", 3, "no kernel name"),
    ],
)
def test_errors_name_the_line(source: str, line: int, said: str) -> None:
    with pytest.raises(LaunchSyntaxError, match=f"^line {line}: .*{said}"):
        rewrite_launches(source)

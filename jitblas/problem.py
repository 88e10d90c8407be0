"""The problem line: one grammar for tests, benchmarks and the command line.

    operator:name=value,...        axpy_ex:n=1e6,dtype=bf16

Names, types and defaults are each operator's own (:data:`jitblas.operators.OPERATORS`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jitblas.errors import ProblemSyntaxError

Value = int | float | complex | str

MOST_CHOICES = 100_000
"""Values of one range; more is a slip of the pen."""


class Parameter(NamedTuple):
    """One name of an operator's problem line.

    Attributes
    ----------
    kind : "int", "float", "complex", or the tuple of accepted words
    default : None when the name must be given
    bare : its words may stand without `name=`
    """

    name: str
    kind: str | tuple[str, ...]
    default: Value | None = None
    minimum: int | None = None
    maximum: int = 2**31 - 1
    bare: bool = False

    def parse(self, text: str) -> Value:
        """The value that `text` means; ProblemSyntaxError says what is accepted."""
        if isinstance(self.kind, tuple):
            if text in self.kind:
                return text
            raise ProblemSyntaxError(f"{self.name}={text}: accepted are {', '.join(self.kind)}")
        if self.kind == "complex":
            return self._complex(text)
        try:
            number = float(text) if self.kind == "float" or not re.fullmatch(r"[+-]?\d+", text) else int(text)
        except ValueError:
            raise ProblemSyntaxError(f"{self.name}={text}: not a number") from None
        if self.kind == "float":
            return number
        if number != number or number in (float("inf"), float("-inf")) or number != int(number):
            raise ProblemSyntaxError(f"{self.name}={text}: a whole number is needed, such as 1000 or 1e3")
        if self.minimum is not None and number < self.minimum:
            raise ProblemSyntaxError(f"{self.name}={text}: at least {self.minimum} is needed")
        if abs(number) > self.maximum:
            raise ProblemSyntaxError(f"{self.name}={text}: at most {self.maximum} is accepted")
        return int(number)

    def _complex(self, text: str) -> Value:
        """A complex number; a float where there is no imaginary part."""
        try:
            number = complex(text)
        except ValueError:
            raise ProblemSyntaxError(f"{self.name}={text}: no complex number; 2, 0.5-1j and 1j are some") from None
        return number if number.imag else number.real


class Problem(NamedTuple):
    """Sizes and types of one call: an operator and the values of all of its parameters, defaults included."""

    op: str
    values: tuple[tuple[str, Value], ...]

    @classmethod
    def parse(cls, text: str) -> Problem:
        """Read a problem line; unknown operators, names and values raise :class:`ProblemSyntaxError`.

        >>> str(Problem.parse("axpy_ex:dtype=bf16,n=1e6"))
        'axpy_ex:n=1000000,dtype=bf16'
        """
        from jitblas.operators import OPERATORS

        if not isinstance(text, str):
            raise TypeError(f"a problem is text such as 'axpy_ex:n=1e6,dtype=bf16', not {type(text).__name__}")
        op, _, rest = text.strip().partition(":")
        operator = OPERATORS.get(op)
        if operator is None:
            raise ProblemSyntaxError(f"{text!r}: unknown operator {op!r}; known are {', '.join(OPERATORS)}")
        parameters = {parameter.name: parameter for parameter in operator.parameters}
        given: dict[str, Value] = {}
        for item in filter(None, (item.strip() for item in rest.split(","))):
            name, equals, value = (part.strip() for part in item.partition("="))
            if not equals:
                name, value = next((known for known, p in parameters.items() if p.bare and item in p.kind), ""), item
            if name not in parameters:
                known = ", ".join(f"{known}=" if not p.bare else " | ".join(p.kind) for known, p in parameters.items())
                raise ProblemSyntaxError(f"{text!r}: unknown name {name or item!r}; {op} takes {known}")
            if name in given:
                raise ProblemSyntaxError(f"{text!r}: {name} is given twice")
            given[name] = parameters[name].parse(value)
        return cls.make(op, given)

    @classmethod
    def make(cls, op: str, given: Mapping[str, Value]) -> Problem:
        """A problem from values; missing ones take their defaults, a missing one without raises."""
        from jitblas.operators import OPERATORS

        values = []
        for parameter in OPERATORS[op].parameters:
            value = given.get(parameter.name, parameter.default)
            if value is None:
                raise ProblemSyntaxError(f"{op}: {parameter.name}= is missing")
            values.append((parameter.name, value))
        return cls(op, tuple(values))

    def value(self, name: str) -> Any:
        """The value of one parameter."""
        return dict(self.values)[name]

    def __str__(self) -> str:
        from jitblas.operators import OPERATORS

        shown = []
        for parameter, (name, value) in zip(OPERATORS[self.op].parameters, self.values, strict=True):
            text = _number_text(value)
            if parameter.default is None or text != _number_text(parameter.default):
                shown.append(text if parameter.bare else f"{name}={text}")
        return f"{self.op}:{','.join(shown)}"


def _number_text(value: Value | None) -> str:
    """Floats in full precision; whole ones as people write them, but for minus zero."""
    if isinstance(value, complex):
        return str(value).strip("()")
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 2**53 and repr(value) != "-0.0":
        return str(int(value))
    return repr(value)


def expand(text: str) -> list[str]:
    """Problem lines from one with ranges in braces, the first brace varying slowest.

    `{1e3..1e5:*10}` multiplies, `{1..7:+2}` adds, `{1,2,8}` lists.

    >>> expand("axpy_ex:n={1e3..1e5:*10},dtype={fp32,bf16}")[:3]
    ['axpy_ex:n=1000,dtype=fp32', 'axpy_ex:n=1000,dtype=bf16', 'axpy_ex:n=10000,dtype=fp32']
    """
    pieces = re.split(r"\{([^{}]*)\}", text)
    choices = [list(_choices(body, text)) for body in pieces[1::2]]
    if "{" in "".join(pieces[::2]) or "}" in "".join(pieces[::2]):
        raise ProblemSyntaxError(f"{text!r}: a brace without its partner")
    if math.prod(map(len, choices)) > MOST_CHOICES:
        raise ProblemSyntaxError(f"{text!r}: its braces make more than {MOST_CHOICES} problems")
    lines = []
    for chosen in itertools.product(*choices):
        parts = [piece for pair in itertools.zip_longest(pieces[::2], chosen, fillvalue="") for piece in pair]
        lines.append("".join(parts))
    return lines


def _choices(body: str, text: str) -> Iterator[str]:
    step = re.fullmatch(r"([^.{}]+)\.\.([^:{}]+):([*+])(.+)", body)
    if step is None:
        if ".." in body or not body:
            raise ProblemSyntaxError(f"{text!r}: a range is written {{1e3..1e7:*10}}, {{1..9:+2}} or {{1,2,8}}")
        yield from body.split(",")
        return
    try:
        first, last, by = float(step[1]), float(step[2]), float(step[4])
    except ValueError:
        raise ProblemSyntaxError(f"{text!r}: {body!r} is no range of numbers") from None
    finite = all(abs(number) < float("inf") for number in (first, last, by))
    if not finite or (step[3] == "*" and (by <= 1 or first <= 0)) or (step[3] == "+" and by <= 0):
        raise ProblemSyntaxError(f"{text!r}: {body!r} never reaches its end")
    value = first
    if step[3] == "+":
        count = (last - first) / by
    else:
        count = math.log(max(last / first, 1)) / math.log(by)
    if count > MOST_CHOICES or (step[3] == "+" and max(abs(first), abs(last)) / by > 2**52):
        raise ProblemSyntaxError(f"{text!r}: {body!r} has more than {MOST_CHOICES} values, or too small a step")
    while value <= last * (1 + 1e-12):
        yield _number_text(round(value, 9))
        value = value * by if step[3] == "*" else value + by

"""`kernel<<<blocks, dynamic, stream>>>(arguments)` for compilers that do not know it.

The launch becomes a call that the twin defines: `::twin::Launch(kernel, "kernel", blocks, dynamic, stream)(arguments)`.
Where the source has the kernel and its KERNEL_TASK_TYPE_DEFAULT, the call says so, `::twin::Launch<type>(...)`: the
kernels of one source may run on different kinds of cores.
The source is tokenised, so what stands in comments, strings and raw strings is left alone, and no line moves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<skip> \s+ | //[^\n]* | /\*.*?\*/ )
  | (?P<text> (?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
  | (?P<word> [A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|'[0-9a-fA-F]|[\w.])* )
  | (?P<mark> <<< | >>> | :: | . )
    """,
    re.VERBOSE | re.DOTALL,
)

_OPENING = {")": "(", "]": "[", "}": "{"}


class LaunchSyntaxError(ValueError):
    """A launch that cannot be read; the text has the line."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def rewrite_launches(source: str) -> str:
    """The source with every launch turned into a call of the twin."""
    tokens = [_Token(_kind(match), match[0], match.start(), match.end()) for match in _TOKEN.finditer(source)]
    tokens = [token for token in tokens if token.kind != "skip"]
    types = _task_types(tokens)
    pieces, done = [], 0
    for at, token in enumerate(tokens):
        if token.text != "<<<" or token.kind != "mark":
            continue
        first = _kernel_start(tokens, at, source)
        close = _configuration_end(tokens, at, source)
        name = _without_comments(tokens[first:at], source)
        quoted = " ".join(name.split()).replace("\\", "\\\\").replace('"', '\\"')
        line_breaks = "\n" * (source.count("\n", tokens[first].start, token.start) - name.count("\n"))
        configuration = source[token.end : tokens[close].start]
        kind = f"<::AscendC::{types[name]}>" if name in types else ""
        call = f'::twin::Launch{kind}({name}, "{quoted}",{line_breaks} {configuration})'
        pieces += [source[done : tokens[first].start], call]
        done = tokens[close].end
    return "".join([*pieces, source[done:]])


def _task_types(tokens: list[_Token]) -> dict[str, str]:
    """Kernel -> the type that its first line declares."""
    types, kernel = {}, None
    for at, token in enumerate(tokens):
        if token.text == "__global__":
            kernel = next((tokens[i - 1].text for i in range(at, len(tokens)) if tokens[i].text == "("), None)
        elif token.text == "KERNEL_TASK_TYPE_DEFAULT" and kernel is not None and at + 2 < len(tokens):
            types[kernel] = tokens[at + 2].text
    return types


def _without_comments(tokens: list[_Token], source: str) -> str:
    """The tokens with the white space between them; a comment becomes a blank and its line breaks are lost."""
    pieces = []
    for index, token in enumerate(tokens):
        between = source[tokens[index - 1].end : token.start] if index else ""
        pieces += [between if not between.strip() else " ", token.text]
    return "".join(pieces)


def _kind(match: re.Match[str]) -> str:
    return "text" if match["text"] is not None else str(match.lastgroup)


def _kernel_start(tokens: list[_Token], at: int, source: str) -> int:
    """Index of the first token of the kernel's name: `ns::kernel` or `kernel<T, 3>`, read backwards from `<<<`."""
    index = at - 1
    if index >= 0 and tokens[index].text in (">", ">>>"):
        angles, brackets = 0, 0
        while index >= 0:
            text = tokens[index].text if tokens[index].kind == "mark" else ""
            brackets += (text in _OPENING) - (text in _OPENING.values())
            if brackets == 0:
                angles += {">": 1, ">>>": 3, "<": -1}.get(text, 0)
            index -= 1
            if angles == 0 and brackets == 0:
                break
    if index < 0 or tokens[index].kind != "word":
        raise LaunchSyntaxError(f"line {_line(source, tokens[at])}: no kernel name stands before <<<")
    while index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].kind == "word":
        index -= 2
    return index - 1 if index >= 1 and tokens[index - 1].text == "::" else index


def _configuration_end(tokens: list[_Token], at: int, source: str) -> int:
    """Index of the `>>>` that closes the launch's configuration."""
    open_brackets: list[str] = []
    for index in range(at + 1, len(tokens)):
        text = tokens[index].text
        if tokens[index].kind != "mark":
            continue
        if text in _OPENING.values():
            open_brackets.append(text)
        elif text in _OPENING:
            if not open_brackets or open_brackets.pop() != _OPENING[text]:
                break
        elif text == ">>>" and not open_brackets:
            return index
    raise LaunchSyntaxError(f"line {_line(source, tokens[at])}: <<< without its >>>")


def _line(source: str, token: _Token) -> int:
    return source.count("\n", 0, token.start) + 1

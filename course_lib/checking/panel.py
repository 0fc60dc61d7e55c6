"""A verdict as a panel: one text face for terminals, one HTML face for Lab."""

from functools import cache
from typing import Any

import numpy as np
import torch
from markupsafe import Markup, escape
from torch import Tensor

from course_lib.answers.answer import Foreign, Reply
from course_lib.checking.catalogue import load
from course_lib.checking.verdict import Failure, Verdict

SHOWN_NUMBERS = 24
SHOWN_CHARACTERS = 300
SIGNS = {"passed": "✓", "not attempted": "○"}
COLOURS = {"passed": "#2e9e5b", "not attempted": "#8a8f98", "known mistake": "#d08700"}
ROW_COLOURS = {True: COLOURS["passed"], False: "#d64545"}


def text(verdict: Verdict) -> str:
    """Show a verdict as plain text."""
    lines = [_headline(verdict), f"  {verdict.message}"]
    for heading, rows in _sections(verdict):
        width = max((len(label) for label, _ in rows), default=0)
        lines += ["", f"  {heading}"]
        for label, value in rows:
            first, *rest = value.splitlines() or [""]
            lines.append(f"    {label:<{width}}  {first}".rstrip())
            lines += [f"    {'':<{width}}  {line}" for line in rest]
    return "\n".join([*lines, *_next_step(verdict)])


def html(verdict: Verdict) -> str:
    """Show a verdict as HTML that follows the colours of the page around it."""
    return _template().render(
        colour=COLOURS.get(verdict.status, ROW_COLOURS[False]),
        headline=_headline(verdict),
        message=verdict.message,
        sections=_sections(verdict),
        next_step=[line.strip() for line in _next_step(verdict) if line],
        signs={"✓": ROW_COLOURS[True], "✗": ROW_COLOURS[False]},
    )


def failing_case(verdict: Verdict) -> tuple[str, list[tuple[str, str]]] | None:
    """Show the smallest case that failed, if one did: a heading, and rows of (label, value)."""
    failure = verdict.failure
    if not failure or not failure.got:
        return None
    name = f": {failure.case.name}" if failure.case.name else ""
    return f"Smallest failing input{name}", _facts(verdict.exercise, failure)


def code(sentence: str) -> Markup:
    """Turn `backquotes` into code."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return escape(sentence)
    marked = [Markup("<code>{}</code>").format(x) if i % 2 else x for i, x in enumerate(parts)]
    return Markup("").join(marked)


TEMPLATE = """
{%- set small = "opacity:.75;margin-top:.6em" -%}
{%- set cell = "padding:.05em 1em .05em 0;text-align:left;vertical-align:top;"
               ~ "background:none;border:0" -%}
{%- set face = ";font-family:var(--jp-code-font-family,monospace);white-space:pre" -%}
<div style="border-left:4px solid {{ colour }};padding:.4em 1em;margin:.3em 0;
{#- -#} max-width:60em;line-height:1.45">
{#- -#}<div style="font-weight:600;color:{{ colour }}">{{ headline }}</div>
{#- -#}<div>{{ message | code }}</div>
{%- for heading, rows in sections -%}
  <div style="{{ small }}">{{ heading }}</div>
  {#- -#}<table style="border-collapse:collapse;margin:.1em 0">
  {%- for label, value in rows -%}
    <tr style="background:none">
    {#- -#}<td style="{{ cell }}{% if label in signs %};color:{{ signs[label] }}{% endif %}">
    {{- label }}</td>
    {#- -#}<td style="{{ cell }}{{ "" if label in signs else face }}">{{ value }}</td></tr>
  {%- endfor -%}
  </table>
{%- endfor -%}
{%- for line in next_step -%}
  <div style="{{ small }}">{{ line | code }}</div>
{%- endfor -%}
</div>
"""


@cache
def _template() -> Any:
    # 45 ms that only a notebook waits for
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["code"] = code
    return environment.from_string(TEMPLATE)


def _headline(verdict: Verdict) -> str:
    points = f", {verdict.points} of {verdict.max_points} points"
    status = "not attempted yet" if verdict.status == "not attempted" else verdict.status
    return f"{SIGNS.get(verdict.status, '✗')} {verdict.exercise}: {status}{points}"


def _next_step(verdict: Verdict) -> list[str]:
    if verdict.status == "passed":
        return []
    return ["", f'  Stuck? `hint("{verdict.exercise}")` asks a question that helps.']


def _sections(verdict: Verdict) -> list[tuple[str, list[tuple[str, str]]]]:
    """List the parts of a panel below its message: a heading, and rows of (label, value)."""
    sections = []
    if verdict.properties:
        held = sum(held for _, _, held in verdict.properties)
        sections.append(
            (
                f"Tried: {verdict.cases_held} of {verdict.cases} cases and "
                f"{held} of {len(verdict.properties)} properties hold.",
                [
                    ("✓" if held else "✗", f"{sentence} ({points})")
                    for sentence, points, held in verdict.properties
                    if verdict.status != "passed"
                ],
            )
        )
    failure = verdict.failure
    if failure and failure.error and failure.error.line:
        where = [(f"line {failure.error.line}", failure.error.text or "")]
        sections.append(("Raised in your code:", where))
    if shown := failing_case(verdict):
        sections.append(shown)
    if verdict.printed:
        sections.append(("Your code printed:", [("", verdict.printed.rstrip())]))
    return sections


def _facts(exercise_id: str, failure: Failure) -> list[tuple[str, str]]:
    names = [parameter.name for parameter in load(exercise_id).parameters]
    rows = [("built with", repr(failure.case.build))] if failure.case.build else []
    rows += [(name, show(x)) for name, x in zip(names, failure.case.inputs, strict=False)]
    if failure.expected is None:
        outcome = [] if failure.error else [("got", show(failure.got.output))]
        return [*rows, *outcome]
    return [*rows, *_differences(failure.got, failure.expected, names)]


def _differences(got: Reply, expected: Reply, names: list[str]) -> list[tuple[str, str]]:
    """Say what differs between two replies: the exception, the output, a gradient, an input."""
    if expected.error:
        reached = got.error.type if got.error else show(got.output)
        return [("expected", f"{expected.error.type}: {expected.error.message}"), ("got", reached)]
    if got.error:
        return [("expected", show(expected.output))]
    pairs = [("", got.output, expected.output)]
    for name, theirs in (expected.gradients or {}).items():
        label = names[int(name)] if name.isdigit() else name
        pairs.append((f" gradient of {label}", (got.gradients or {}).get(name), theirs))
    for name, ours, theirs in zip(names, got.inputs, expected.inputs, strict=False):
        pairs.append((f" {name} after the call", ours, theirs))
    for label, ours, theirs in pairs:
        if difference := _difference(ours, theirs):
            return [
                (f"expected{label}", show(theirs)),
                (f"got{label}", show(ours)),
                ("difference", difference),
            ]
    return []


def _difference(got: Any, expected: Any) -> str:
    """Say in one line how a result differs; "" where it does not."""
    if isinstance(got, tuple) and isinstance(expected, tuple) and len(got) == len(expected):
        lines = [(i, _difference(a, b)) for i, (a, b) in enumerate(zip(got, expected, strict=True))]
        return "; ".join(f"part {i}: {line}" for i, line in lines if line)
    if not isinstance(got, Tensor) or not isinstance(expected, Tensor):
        same = type(got) is type(expected) and not isinstance(got, Tensor) and got == expected
        return "" if same else f"{_kind(got)}, where {_kind(expected)} is expected"
    for what in ("shape", "dtype", "device"):
        ours, theirs = _plain(getattr(got, what)), _plain(getattr(expected, what))
        if ours != theirs:
            return f"{what} {ours}, where {theirs} is expected"
    if got.is_meta or got.numel() == 0:
        return ""
    broken = got.isnan() & ~expected.isnan(), got.isinf() & ~expected.isinf()
    counts = [f"{int(b.sum())} {word}" for b, word in zip(broken, ("NaN", "infinite"), strict=True)]
    bad = [count for count in counts if not count.startswith("0 ")]
    if bad:
        return f"{' and '.join(bad)} of {got.numel()} numbers"
    error = torch.where(got == expected, 0.0, (got.double() - expected.double()).abs())
    if error.max() == 0:
        return ""
    place = [int(i) for i in torch.unravel_index(error.argmax(), error.shape)]
    return f"largest at {place}: {error.max():.3g}" if place else f"{error.max():.3g}"


def show(value: Any) -> str:
    """Show a tensor by dtype, shape and, if they are few, numbers; plain data as Python does."""
    if isinstance(value, Tensor):
        kind = f"{_plain(value.dtype)} {_plain(value.shape)}"
        if value.is_meta:
            return f"{kind} on meta"
        if not 0 < value.numel() <= SHOWN_NUMBERS:
            return kind
        # by way of lists, since numpy has no bfloat16
        numbers = np.array2string(np.array(value.tolist()), precision=4, suppress_small=True)
        return f"{kind}  {numbers}" if value.dim() < 2 else f"{kind}\n{numbers}"
    if isinstance(value, tuple):
        return "\n".join(f"({i}) {show(item)}" for i, item in enumerate(value)) or "()"
    if isinstance(value, Foreign):
        return _kind(value)
    written = repr(value)
    return written if len(written) <= SHOWN_CHARACTERS else f"{written[:SHOWN_CHARACTERS]}..."


def _kind(value: Any) -> str:
    name = value.type if isinstance(value, Foreign) else type(value).__name__
    return {"NoneType": "None", "Tensor": "a tensor"}.get(name, f"a {name}")


def _plain(attribute: Any) -> str:
    if isinstance(attribute, torch.Size):
        return str(tuple(attribute))
    return str(attribute).removeprefix("torch.")

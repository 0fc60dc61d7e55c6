"""The two pictures of README: `python -m book.pictures` draws them anew.

What a wrong softmax is told, and where the reader of lesson 02 looks in *phonograph* beside what it
needs. Both are SVG of a few kilobytes, with a ground of their own, for light and dark pages.
"""

import textwrap
from html import escape
from pathlib import Path

import torch

from book import exercises
from course_lib.checking.explain import panel as panels
from course_lib.data import spelling
from course_lib.instruments.attribution import letter_drops
from course_lib.pretrained import pronouncer

FOLDER = Path(__file__).parent / "static"
WORD = "phonograph"
WIDE = 86  # characters
CELL = 26  # pixels
BLUE, ORANGE, INK, GREY = "#0072b2", "#d55e00", "#1f2328", "#59636e"
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="{}">
<rect width="100%" height="100%" rx="8" fill="#fff"/>
{}
</svg>
"""


def told() -> list[str]:
    """Return the lines of the example's panel, each at most WIDE characters."""
    wrapped = [
        textwrap.wrap(line, WIDE, subsequent_indent="  ", drop_whitespace=False) or [""]
        for line in panels.text(exercises.verdict_on_the_example()).splitlines()
    ]
    return [line.rstrip() for lines in wrapped for line in lines]


def panel() -> str:
    """Draw the example, and what it is told."""
    answer = [*exercises.EXAMPLE.splitlines(), "", 'check("attention/softmax", softmax)', ""]
    lines = [*answer, *told()]
    lines = lines[: next(n for n, line in enumerate(lines) if line.startswith("  Given"))]
    shown = []
    for row, line in enumerate(lines):
        colour = ORANGE if line.startswith("✗") else GREY if line.startswith("    ") else INK
        weight = ' font-weight="bold"' if line.startswith("✗") else ""
        shown.append(
            f'<text x="16" y="{30 + 20 * row}" font-size="14" fill="{colour}"{weight} '
            f'xml:space="preserve">{escape(line)}</text>'
        )
    width = 32 + 8.6 * max(map(len, lines))
    return FRAME.format(f"{width:.0f}", 24 + 20 * len(lines), "monospace", "\n".join(shown))


@torch.no_grad()
def phonograph() -> str:
    """Draw the weights and the drops of each sound over the letters."""
    model = pronouncer.load()
    [sounds] = spelling.pronounce(model, [WORD])
    source, target = spelling.encode_words([WORD]), spelling.encode_sounds([sounds])
    weights = model.weights(source, target[:, :-1])[0, : len(sounds), : len(WORD)]
    _, drops = letter_drops(model, WORD, sounds)
    tables = (
        ("where it looks: the weights", weights, BLUE),
        ("what it needs: the drop in probability", drops[: len(sounds)], ORANGE),
    )
    shown = []
    for number, (title, table, colour) in enumerate(tables):
        left = 60 + number * CELL * (len(WORD) + 3)
        shown.append(_text(left, 24, title, INK))
        for j, letter in enumerate(WORD):
            shown.append(_text(left + CELL * (j + 0.5), 50, letter, INK, "middle"))
        for i, (sound, row) in enumerate(zip(sounds, table.clamp(0, 1).tolist(), strict=True)):
            top = 60 + CELL * i
            shown.append(_text(left - 8, top + 18, sound, INK, "end"))
            for j, size in enumerate(row):
                shown.append(
                    f'<rect x="{left + CELL * j}" y="{top}" width="{CELL - 1}" height="{CELL - 1}" '
                    f'fill="{colour}" fill-opacity="{0.06 + 0.94 * size:.2f}"/>'
                )
    width = 76 + CELL * (2 * len(WORD) + 3)
    height = 76 + CELL * len(sounds)
    return FRAME.format(width, height, "sans-serif", "\n".join(shown))


def _text(x: float, y: float, words: str, colour: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="15" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


if __name__ == "__main__":
    for draw in (panel, phonograph):
        (FOLDER / f"{draw.__name__}.svg").write_text(draw(), "utf8")

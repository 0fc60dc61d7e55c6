"""Predictions: what a learner guessed before a measurement, and how near it came."""

import hashlib
import linecache
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from course_lib.files import ipynb
from course_lib.files.course_map import pages
from course_lib.files.paths import ROOT
from course_lib.files.workspace import Guess, Workspace

RIGHT, NEAR = 1.1, 2.0  # up to these factors a number is right, or near
# what a guess that is off by about so much was perhaps made in
UNITS = {
    100: ": was one of the two in percent",
    1e3: ": are the units a thousand apart",
    1e6: ": are the units a million apart",
    1e9: ": are the units a billion apart, as bytes and gigabytes are",
}
QUESTION = re.compile(r"\*\*([^*]+\?)\*\*")
LONGEST = 200  # characters of a guess, and of what was measured, that are kept

_guesses: dict[str, Any] = {}  # by the cell that has revealed them


@dataclass(frozen=True)
class Prediction:
    """A place where a lesson asks for a prediction; `key` is by which its guess is kept."""

    key: str
    lesson: str
    question: str


def reveal(guess: Any, measured: Any) -> None:
    """Print a measurement beside the guess that was made before it, and how near that came.

    The name `guess` is empty afterwards: what it holds is never the answer to another question.
    The cell that has revealed it can run again. In a workspace the first guess is kept.
    """
    caller = sys._getframe(1)
    cell = "".join(linecache.getlines(caller.f_code.co_filename))
    place = key(cell)
    if guess is None:
        guess = _guesses.get(place)
    elif caller.f_globals.get("guess") is guess:
        caller.f_globals["guess"], _guesses[place] = None, guess
    shown = f"{measured:.3g}" if isinstance(measured, float) else str(measured)
    if guess is None:
        return print(f"Measured: {shown}.")
    print(f"You said {guess}; measured: {shown}. {told(guess, measured)}")
    if workspace := Workspace.find():
        # a prediction that cannot be kept is no reason to stop
        with suppress(OSError):
            note(workspace, cell, guess, measured, shown)
    return None


def note(workspace: Workspace, cell: str, guess: Any, measured: Any, shown: str) -> None:
    """Keep the first guess that was made in a cell, and what was measured. Raises OSError."""
    said, shown = (" ".join(str(x).split())[:LONGEST] for x in (guess, shown))
    workspace.note_guess(key(cell), Guess(said, shown, verdict(guess, measured)))


def key(cell: str) -> str:
    """Name a cell by its text, however its lines end."""
    text = "\n".join(line.rstrip() for line in cell.strip().splitlines())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def verdict(guess: Any, measured: Any) -> str:
    """Return "right", "near", "off", or "" where the two cannot be compared by a machine.

    A number is right within a tenth, near within a factor of two. Of several numbers, the worst
    counts. A word is right where the measured text begins with it.
    """
    guess, measured = _plain(guess), _plain(measured)
    if isinstance(guess, str) and isinstance(measured, str):
        begins = measured.casefold().startswith(guess.strip().casefold())
        return "right" if begins and guess.strip() else ""
    if isinstance(guess, bool) or isinstance(measured, bool):
        return ("right" if guess is measured else "off") if type(guess) is type(measured) else ""
    if isinstance(guess, list) and isinstance(measured, list):
        if len(guess) != len(measured):
            return "off" if all(isinstance(x, int | float) for x in guess + measured) else ""
        verdicts = {verdict(a, b) for a, b in zip(guess, measured, strict=True)} or {"right"}
        return next(x for x in ("", "off", "near", "right") if x in verdicts)
    if isinstance(guess, int | float) and isinstance(measured, int | float):
        return _of_numbers(guess, measured)
    return ""


def told(guess: Any, measured: Any) -> str:
    """Say how near a guess came, in a sentence; for what cannot be compared, why not."""
    guess, measured = _plain(guess), _plain(measured)
    if isinstance(guess, list) and isinstance(measured, list) and len(guess) == len(measured):
        said = [told(a, b) for a, b in zip(guess, measured, strict=True)]
        return said[0] if len(set(said)) == 1 else " ".join(said)
    match verdict(guess, measured):
        case "right":
            return "Right."
        case "near":
            return "Near: within a factor of two."
        case "off":
            return _off(guess, measured)
    kinds = _kind(guess), _kind(measured)
    if kinds[0] == kinds[1]:
        return "Compare the two yourself."
    return f"Not compared: what was measured is {kinds[1]}, and your guess is {kinds[0]}."


def _off(guess: Any, measured: Any) -> str:
    if isinstance(guess, list):
        return f"Off: {len(measured)} were measured, and you named {len(guess)}."
    if isinstance(guess, bool) or not guess * measured > 0:
        return "Off."
    factor = max(guess / measured, measured / guess)
    unit = next((unit for size, unit in UNITS.items() if size <= factor * RIGHT <= 1.3 * size), "")
    shown = f"{factor:.3g}" if factor < 1000 else f"{factor:,.0f}"
    return f"Off by a factor of {shown}{unit}{'?' if unit else '.'}"


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "True or False"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() if len(value) == 1:
            return "a list of one"
        case list():
            return f"{len(value)} values"
    return f"of type {type(value).__name__}"


def _of_numbers(guess: float, measured: float) -> str:
    if guess == measured:
        return "right"
    if not guess * measured > 0:
        return "off"
    factor = max(guess / measured, measured / guess)
    return "right" if factor <= RIGHT else "near" if factor <= NEAR else "off"


def _plain(value: Any) -> Any:
    """Return numbers, words and lists of them; a dict's values, and a tensor's numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        value = list(value.values())
    return list(value) if isinstance(value, tuple) else value


def _plainly(question: str) -> str:
    """Leave out the marks of Markdown and of mathematics."""
    return " ".join(re.sub(r"\\[,;!]|[$`\\]", "", question).split())


def asked() -> Iterator[Prediction]:
    """List the places where lessons and explorations ask for a prediction, in their order."""
    for page in pages():
        if not page.written:
            continue
        with suppress(ipynb.NotANotebook):
            notebook = ipynb.read(ROOT / "notebooks" / page.notebook)
            question = page.question
            for cell in notebook["cells"]:
                text = ipynb.text(cell)
                if cell["cell_type"] != "code":
                    question = (QUESTION.findall(text) or [question])[-1]
                elif re.search(r"^\s*reveal\(", text, flags=re.MULTILINE):
                    yield Prediction(key(text), page.number, _plainly(question))

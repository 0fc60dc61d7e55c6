"""A race of language models: a learner's `learn(text, seconds)`, against a text that it never saw.

`learn` returns a predictor. `predict(text)` returns probabilities, (len(text), vocab): row i is for
the character after text[i], given text[: i + 1], and the columns are `sorted(set(...))` of the text
that was learned. All of it runs in a child process, which gets the held-out text in stretches, and
only after `learn` has returned.
"""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_lib.answers.answer import Request
from course_lib.answers.process import ChildProcess
from course_lib.answers.source import is_stub
from course_lib.checking.notebook.answers import read_cell
from course_lib.checking.notebook.statements import Notebook
from course_lib.data import shakespeare
from course_lib.files import ipynb
from course_lib.files.errors import CommandError

ENTRY = "learn"
CHARACTERS = 1_115_394  # of the complete works: as many as tiny Shakespeare has
HELD_OUT = 0.1
SECONDS = 60.0  # of the processor, for `learn`, and once more for all that is predicted
GRACE = 1.1  # times as long may `learn` take, since its last step has to end
STRETCH = 256  # characters of a question; the second half is scored
TOLERANCE = 1e-3  # of a probability
DRIVER = f"""
def _race(question, *arguments):
    global _predict
    if question == "learn":
        _predict = {ENTRY}(*arguments)
        return callable(_predict)
    return _predict(*arguments)
"""


@dataclass(frozen=True)
class Entry:
    """The code of an entry, and the cell and line in the notebook of each of its lines."""

    code: str
    places: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The loss in nats a character, and the seconds of the processor that learning took."""

    loss: float
    seconds: float


class Lost(CommandError):
    """An entry that has no loss; the message says why."""


class Runner(ChildProcess):
    """A child process that tells how long it has computed."""

    @property
    def seconds(self) -> float:
        """Return its seconds of the processor so far."""
        return self._computed()


def texts() -> tuple[str, str]:
    """Return the text to learn from, and the text held out.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    text = shakespeare.complete_works()[:CHARACTERS]
    cut = round((1 - HELD_OUT) * len(text))
    return text[:cut], text[cut:]


def entry(path: Path) -> Entry:
    """Read `learn`, and the statements that it needs, out of a notebook.

    Raises CommandError where there is none, NotANotebook for another file.
    """
    cells = [
        read_cell(number, ipynb.text(cell), ipynb.exercise(cell))
        for number, cell in enumerate(ipynb.read(path)["cells"], start=1)
        if cell["cell_type"] == "code"
    ]
    every = [statement for cell in cells for statement in cell.statements]
    found = [x for x in every if ENTRY in x.binds and isinstance(x.node, ast.FunctionDef)]
    if not found:
        problems = [cell.problem for cell in cells if cell.problem and f"def {ENTRY}" in cell.text]
        why = f" ({problems[-1]})" if problems else ""
        raise CommandError(
            f"{path} defines no function `{ENTRY}(text, seconds)`, which is what races{why}."
        )
    if is_stub(found[-1].text):
        raise CommandError(f"`{ENTRY}` in {path} is not written yet.")
    needed = Notebook(every).needed(found[-1], ENTRY)
    lines = [
        (line, (x.cell, x.line + number))
        for x in needed
        for number, line in enumerate(x.text.split("\n"))
    ]
    return Entry("".join(f"{line}\n" for line, _ in lines), tuple(place for _, place in lines))


def run(
    racing: Entry,
    learned: str,
    held_out: str,
    runner: Runner,
    *,
    seconds: float = SECONDS,
    bar: Callable[[list[str]], Iterable[str]] = iter,
) -> Outcome:
    """Let an entry learn and predict in a child process; `runner` allows it `seconds` times GRACE.

    Raises Lost for an entry that fails, takes too long, or predicts what are no probabilities.
    """
    vocab = sorted(set(learned))
    runner.hold(racing.code + DRIVER, "_race")
    description = runner.describe()
    if description.kind != "function":
        raise Lost(f"the code around `{ENTRY}` cannot be executed: {description.source}.")
    before = runner.seconds
    if _asked(racing, runner, f"`{ENTRY}`", "learn", learned, seconds) is not True:
        raise Lost(f"`{ENTRY}` must return a function, `predict(text)`, and it returned none.")
    after = runner.seconds
    stretches = _stretches(held_out, set(vocab))

    def predict(stretch: str) -> Tensor:
        if runner.seconds - after > seconds:
            raise Lost(f"its predictions take more than {seconds:g} seconds of the processor.")
        found = _asked(racing, runner, "the predictor", "predict", stretch)
        return _probabilities(found, len(stretch), len(vocab))

    first = predict(stretches[0])
    _hold_to_its_word(predict, first, stretches[0])
    _hold_to_the_past(predict, first, stretches[0], vocab)
    losses = [_loss(predict(stretch), stretch, vocab) for stretch in bar(stretches)]
    _hold_to_its_word(predict, first, stretches[0])
    return Outcome(torch.cat(losses).mean().item(), after - before)


def _stretches(text: str, known: set[str]) -> list[str]:
    """Cut a text so that the second halves are side by side; none has an unknown character."""
    starts = range(0, len(text) - STRETCH + 1, STRETCH // 2)
    cut = [text[start : start + STRETCH] for start in starts]
    return [stretch for stretch in cut if known.issuperset(stretch)]


def _asked(racing: Entry, runner: Runner, who: str, *question: Any) -> Any:
    """Ask the child process. Raises Lost where it fails."""
    reply = runner.run(Request(question))
    if not (error := reply.error):
        return reply.output
    if error.type == "Timeout":
        raise Lost(
            f"{who} was stopped, {error.message} of the processor: it has to end by itself once "
            "`time.process_time()` says that its seconds are over."
        )
    place = ""
    if error.line and error.line <= len(racing.places):
        cell, line = racing.places[error.line - 1]
        place = f" (cell {cell}, line {line}: {error.text})"
    raise Lost(f"{who} failed, {error.type}: {error.message}{place}.")


def _probabilities(found: Any, n: int, vocab: int) -> Tensor:
    """Return the rows, each divided by its sum. Raises Lost for what are no probabilities."""
    if not isinstance(found, Tensor) or found.shape != (n, vocab):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise Lost(
            f"the predictor must return a tensor of the shape {(n, vocab)} for {n} characters, a "
            f"row for each and a column for each character of the vocabulary, not {shape}."
        )
    found = found.double()
    if not (found >= 0).all():
        raise Lost(
            f"a probability is at least 0, and the predictor returned {found.min().item():.3g}: "
            "are these logits, without the softmax?"
        )
    sums = found.sum(-1, keepdim=True)
    if (worst := (sums - 1).abs().max().item()) > TOLERANCE:
        raise Lost(
            f"each row of probabilities must sum to 1, and the sum of one is off by {worst:.3g}: "
            "is the softmax over the last axis?"
        )
    return found / sums


def _hold_to_its_word(predict: Callable[[str], Tensor], first: Tensor, stretch: str) -> None:
    """Raise Lost where the same question has another answer now."""
    if (predict(stretch) - first).abs().max() > TOLERANCE:
        raise Lost(
            "asked again, the predictor answers otherwise: it has to predict from the text that it "
            "is asked about alone, without what it was asked before and without chance."
        )


def _hold_to_the_past(
    predict: Callable[[str], Tensor], first: Tensor, stretch: str, vocab: list[str]
) -> None:
    """Raise Lost where other characters change what is predicted before them."""
    for cut in (STRETCH // 2, STRETCH - 8):
        after = "".join(vocab[(vocab.index(x) + 1 + i) % len(vocab)] for i, x in enumerate(stretch))
        changed = predict(stretch[:cut] + after[cut:])
        gap = (changed - first)[:cut].abs().amax(-1)
        if gap.max() > TOLERANCE:
            _hold_to_its_word(predict, first, stretch)
            where = int(gap.argmax())
            raise Lost(
                f"row {where} must depend on the characters up to {where} alone, and it changes "
                f"with those from {cut} on: does the model see the future?"
            )


def _loss(found: Tensor, stretch: str, vocab: list[str]) -> Tensor:
    """Return the loss of each character of the second half. Raises Lost for an infinite one."""
    half = STRETCH // 2
    targets = torch.tensor([vocab.index(character) for character in stretch[half:]])
    chances = found[half - 1 : -1].gather(-1, targets.unsqueeze(-1))
    if not chances.all():
        missed = stretch[half + int((chances == 0).nonzero()[0, 0])]
        raise Lost(
            f"{missed!r} came and had the probability 0, so the loss is infinite: leave something "
            "to every character."
        )
    return -chances.log()

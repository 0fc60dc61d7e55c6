"""What the page of a lesson says of an exercise: hints, the solution, and what `check` tells."""

import ast
import random
import re
import types
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course_lib.answers.answer import InProcess
from course_lib.answers.source import Source, define, find_source, names_used, source_of
from course_lib.checking.catalogue import load
from course_lib.checking.exercise import Exercise, Mistake
from course_lib.checking.explain import panel
from course_lib.checking.laws.laws import Behaviour
from course_lib.checking.looks import code
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.checking.verdict import Verdict, judge

HINT = "<details class='hint'><summary>Hint {} of {}</summary><p>{}</p></details>"
SOLUTION = """<details class="solution"><summary>Solution</summary>

```python
{}
```

</details>"""
WRONG = """<details class="wrong" open><summary>
A wrong answer, and what <code>check</code> says</summary>"""
# what a script asks before it shows the panel; without one, the panel is there at once
WHY = """<form class="why" data-key="{id}" hidden><fieldset><legend>What is wrong with it?</legend>
{choices}
<button type="button">Show what <code>check</code> says</button></fieldset></form>"""
CHOICE = """<button type="button" class="choice" data-{kind}>{sentence}</button>"""
OTHERS = 3  # mistakes of the same exercise to choose from, beside the one that is shown
SHORT = 16  # lines of a wrong answer
# what the first page and README show: a softmax as much code has it
EXAMPLE = """def softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1, keepdim=True)
"""


class Wrong(NamedTuple):
    """A wrong answer to an exercise: what it is, under which name, and what `check` finds."""

    mistake: Mistake
    helpers: list[str]
    source: str
    name: str
    verdict: Verdict


def below_the_stub(exercise_id: str) -> list[NotebookNode]:
    """Return the hints and the solution of an exercise, folded."""
    exercise = load(exercise_id)
    told = [HINT.format(n, len(exercise.hints), code(x)) for n, x in enumerate(exercise.hints, 1)]
    solution = SOLUTION.format(solution_text(exercise).rstrip())
    return [new_markdown_cell("\n".join(told)), new_markdown_cell(solution)]


@cache
def solved(exercise_id: str) -> Verdict:
    """Judge the solution of an exercise."""
    exercise = load(exercise_id)
    return judge(exercise, InProcess(exercise.reference))


def passed(exercise_id: str) -> NotebookNode:
    """Return what `check` shows of the solution."""
    return _shown(solved(exercise_id), "With the solution:")


def wrong_answer(exercise_id: str) -> list[NotebookNode]:
    """Return a known mistake of an exercise, and the panel that names it."""
    mistake, helpers, source, name, verdict = known_mistake(exercise_id)
    code_cells = [new_code_cell("\n\n\n".join([*helpers, source]))]
    if _lines(helpers) > SHORT:
        folded = new_code_cell("\n\n\n".join(helpers), metadata={"tags": ["hide-input"]})
        code_cells = [folded, new_code_cell(source)]
    asked = new_markdown_cell(_why(load(exercise_id), mistake))
    told = new_code_cell(f'check("{exercise_id}", {name})', outputs=[_shown(verdict)])
    return [new_markdown_cell(WRONG), *code_cells, asked, told, new_markdown_cell("</details>")]


@cache
def known_mistake(exercise_id: str) -> Wrong:
    """Choose the wrong answer to an exercise that a page shows.

    It is the first one of the bank that is short, and whose panel shows an input with what was
    expected and what came.
    """
    exercise = load(exercise_id)
    readable = [x for x in exercise.mistakes if _is_written_out(x.answer, exercise)]
    for mistake in sorted(readable, key=lambda x: _length(x.answer, exercise)):
        verdict = judge(exercise, Behaviour(mistake.answer))
        if _shows_an_input(verdict):
            *helpers, source = _sources(mistake.answer, exercise)
            name = exercise.name
            if exercise.method and not source.startswith("class "):
                source = f"# a method of the class; the rest of it is right\n{source}"
            elif exercise.reference in _used(mistake.answer):
                name = mistake.name
            else:  # the mistake's own name would tell what is wrong
                source = re.sub(rf"\b{mistake.name}\b", name, source)
            return Wrong(mistake, helpers, source, name, verdict)
    raise LookupError(f"no known mistake of {exercise_id} can be shown")


def verdict_on_the_example() -> Verdict:
    """Return what the check of the softmax finds in EXAMPLE."""
    answer = define(EXAMPLE, "softmax", {"torch": torch})
    return judge(load("attention/softmax"), Behaviour(answer))


def _why(exercise: Exercise, mistake: Mistake) -> str:
    """Ask which mistake of an exercise an answer has; the order is by chance, and always the same.

    Answers that are wrong in one way share the sentence, which is then offered once.
    """
    sentences = dict.fromkeys(x.sentence for x in exercise.mistakes)
    sentences.pop(mistake.sentence)
    drawn = random.Random(exercise.id)
    kinds = dict.fromkeys(drawn.sample([*sentences], min(OTHERS, len(sentences))), "no")
    offered = [*(kinds | {mistake.sentence: "yes"}).items()]
    drawn.shuffle(offered)
    choices = [CHOICE.format(kind=kind, sentence=code(sentence)) for sentence, kind in offered]
    return WHY.format(id=exercise.id, choices="\n".join(choices))


def _is_written_out(answer: Callable, exercise: Exercise) -> bool:
    """Tell whether the file of the exercise has the source of an answer."""
    return answer.__module__ == exercise.draw.__module__ and find_source(answer) is not None


def _length(answer: Callable, exercise: Exercise) -> tuple[bool, int]:
    """Order answers: first those without the solution in them, and among these the short ones."""
    calls = not isinstance(answer, type) and exercise.reference in _used(answer)
    return calls, max(SHORT, _lines(_sources(answer, exercise)))


def _lines(sources: list[str]) -> int:
    return sum(len(source.splitlines()) for source in sources)


def _sources(answer: Callable, exercise: Exercise) -> list[str]:
    """Return the source of an answer behind those of its helpers in the exercise's file."""
    own = [x for x in _used(answer) if x is not answer and _is_written_out(x, exercise)]
    helpers = [source for x in own for source in _sources(x, exercise)]
    return list(dict.fromkeys([*helpers, _bare(answer)]))


def _used(answer: Callable) -> list[Callable]:
    used = names_used(answer, Source(_bare(answer))).values()
    return [x for x in used if isinstance(x, types.FunctionType | type)]


def _bare(answer: Callable) -> str:
    """Return the source of an answer without decorators, and without the docstring: the panel's."""
    source = source_of(answer)
    [definition] = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    told = definition.body[0] if ast.get_docstring(definition) else None
    hidden = range(told.lineno, (told.end_lineno or told.lineno) + 1) if told else ()
    lines = enumerate(source.splitlines(), start=1)
    return "\n".join(x for n, x in lines if n >= definition.lineno and n not in hidden)


def _shows_an_input(verdict: Verdict) -> bool:
    failure = verdict.failure
    if verdict.status != "known mistake" or not failure or not failure.got:
        return False
    return failure.expected is not None and failure.got.error is None


def _shown(verdict: Verdict, of: str = "") -> NotebookNode:
    caption = f'<p class="of">{of}</p>' if of else ""
    html = panel.html(verdict, in_notebook=False)
    return new_output("display_data", {"text/html": caption + html})

"""Every sentence of a statement is asked: which wrong answer, property or case does it?

A statement's first sentence and its equations say what the result is: each case asks for it, and
each one-place edit of the reference fails. A source promises nothing, and an error that the stub
raises is given. Any other clause is tied, in the exercise's `clauses`, to what refuses an answer
that breaks it. That a text resembles the name of a case proves nothing, so ties are stated: by the
name of a known mistake, which the laws see fail, an edit likewise, or by the first words of a
property or case. `GIVEN` marks what nobody is asked for: what the arguments are, what the stub
itself settles, what is told of the matter. `REMARKED` marks what costs no points: see
`verdict.remark`.
"""

import inspect
import re
from collections.abc import Iterator

from course_lib.checking.exercise import GIVEN, REMARKED, Exercise
from course_lib.checking.laws.edits import edits
from course_lib.checking.trial import drawn, drawn_edges, properties

# no full stop ends `et al.`, nor stands between the factors of a product
SENTENCE = re.compile(r"(?<=\S\.)(?<!et al\.)(?<!eq\.)(?<!\.\.\.)\s+(?=\S)")
EXAMPLE = re.compile(r"^>>> .*?(?:\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)
EQUATION = re.compile(r"\s(=|<-|->)\s")


def untied(exercise: Exercise) -> Iterator[str]:
    """Name each clause that nothing asks, each tie without a clause, and each tie to nothing."""
    said = [clause for text in _statements(exercise) for clause in clauses(text)]
    for clause in said:
        if not _is_asked(exercise, clause) and not any(x in clause for x in exercise.clauses):
            yield f"nothing asks for this clause of the statement: {clause}"
    names = {*(x.name for x in exercise.mistakes), *(edit for edit, _ in edits(exercise))}
    names |= {GIVEN, REMARKED}
    begun = [sentence for sentence, _ in properties(exercise, 0)]
    begun += [case.name for case in (*drawn(exercise, 0), *drawn_edges(exercise, 0))]
    whole = " ".join(" ".join(_statements(exercise)).split())
    for words, tie in exercise.clauses.items():
        if words not in whole:
            yield f"no clause of the statement says: {words}"
        if tie not in names and not any(x.startswith(tie) for x in begun):
            yield f"“{words}” is tied to no mistake, property or case: {tie}"


def clauses(statement: str) -> Iterator[str]:
    """Yield what a docstring says after its first sentence, without examples and sources."""
    _, *others = SENTENCE.split(" ".join(EXAMPLE.sub("", statement).split()))
    for sentence in others:
        if not sentence.startswith("Source: "):
            yield from re.split(r"(?<=;)\s+", sentence)


def _statements(exercise: Exercise) -> Iterator[str]:
    yield inspect.getdoc(exercise.reference) or ""
    if exercise.method:
        yield inspect.getdoc(getattr(exercise.reference, exercise.method)) or ""


def _is_asked(exercise: Exercise, clause: str) -> bool:
    """Return True for an equation, and for an error that the stub raises itself."""
    error = re.match(r"Raises (\w+)", clause)
    return f"raise {error[1]}" in exercise.stub if error else bool(EQUATION.search(clause))

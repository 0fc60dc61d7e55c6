"""What an exercise file says: a reference, its cases, properties, mistakes and alternatives.

Beside its own cases there are those at the edges of what its signature's shapes allow: `...` and
`*batch` are any number of axes, each of any size, `#key` may be 1, and a row of numbers may be
zeros without being padding.
"""

import ast
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import zip_longest
from typing import Any, get_args

import torch
from torch import Tensor, nn

from course_lib.answers.answer import construct
from course_lib.answers.source import Source, source_of
from course_lib.answers.watch import ATEN
from course_lib.checking.forbidden import DOORS, OPERATIONS, SAME, in_words
from course_lib.checking.stubs import stub, tools, with_comment, with_steps_of

# of a clause of a statement: nobody is asked for it; it costs no points
GIVEN, REMARKED = "given", "remarked"
Shape = list[str]  # the names of a tensor's axes; of what is no tensor, none
Inputs = tuple[Any, ...]
TOKENS = ("n", "query", "key")  # axes that count tokens


class Draw:
    """Draws inputs from a seed: the same seed, the same inputs."""

    def __init__(self, seed: int):
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        """Draw from the unit normal distribution."""
        return torch.randn(shape, generator=self._generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Draw whole numbers, low included and high not."""
        return torch.randint(low, high, shape, generator=self._generator)

    def number(self, low: int, high: int) -> int:
        """Draw one whole number, such as a size, low included and high not."""
        return int(self.integers(low, high))

    def mask(self, *shape: int) -> Tensor:
        """Draw a boolean mask that shows at least one key a row, and hides at least one."""
        order = self.normal(*shape).argsort(-1)
        return order < self.integers(1, shape[-1], *shape[:-1], 1)


@dataclass(frozen=True)
class Case:
    """One set of arguments. `build` are the constructor's, where the answer is a class.

    `pieces` are the numbers of tokens of the calls, where an object is called with a text in parts.
    """

    name: str
    inputs: tuple
    build: tuple = ()
    pieces: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of elements of all inputs: the smallest failing case is shown."""
        return sum(x.numel() if isinstance(x, Tensor) else 1 for x in self.inputs)


@dataclass(frozen=True)
class Property:
    """A law beside equality, its sentence and its points.

    `holds(answer, draw)` calls `answer(*inputs, build=(), pieces=(), initial="", max_numel=None,
    max_calls=None)` and returns whether the law holds. No tensor that the call makes may hold more
    than `max_numel` numbers, and it may make no more than `max_calls` operations of torch. With
    `initial` it returns the parameter of this name as the constructor leaves it.
    """

    sentence: str
    points: int
    holds: Callable


@dataclass(frozen=True)
class Mistake:
    """A complete wrong answer that learners give; its docstring is the sentence that helps.

    `raises` are the exceptions that it may raise.
    """

    answer: Callable
    raises: tuple[type[BaseException], ...] = ()

    @property
    def name(self) -> str:
        """The name of the wrong function or class."""
        return self.answer.__name__

    @property
    def sentence(self) -> str:
        """What a learner is told who gives this answer."""
        return " ".join((self.answer.__doc__ or "").split())


@dataclass(eq=False)
class Exercise:
    """One exercise. Its points are those of the standard properties and of its own.

    `equivalent` lists one-place edits of the reference that change nothing (see `edits`), and
    mutants (see `mutants`) that are right here.
    `clauses` ties words of the statement to what refuses an answer that breaks them (see
    `laws/clauses.py`): a known mistake's name, the first words of a property or case, or a mark.
    `joins` are the exercises whose cells stand above its own, and that its check tries as well.
    `method` is the one to write, where the reference is a class; with `constructor`, `__init__` is
    to be written too. `forbidden` are dotted names;
    the reference's own is added. `tolerance` is for float32; float64 is held to 1e-12.
    `canonical` brings any two results that differ in what is free, such as an order, to one form.
    `small_only` says why a reference with an exponential is not tried on large numbers.
    `no_gradient` says why the gradients of a result with floats are not judged.
    `constants` are the arguments through which nobody learns: their gradients are not judged.
    `no_edge` says of cases that `edges` makes why they are none here.
    `in_steps` is the reference cut into methods, of which known mistakes change one.
    `broken` is the reference with a fault in one line, for the learner to mend.
    `id` is known once `catalogue` has loaded the file.
    """

    reference: types.FunctionType | type
    lesson: str
    title: str
    minutes: int
    difficulty: int
    hints: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    equivalent: tuple[str, ...] = ()
    clauses: Mapping[str, str] = field(default_factory=dict)
    joins: tuple[str, ...] = ()
    method: str | None = None
    constructor: bool = False
    tolerance: float = 1e-5
    canonical: Callable[[Any], Any] = lambda result: result
    small_only: str = ""
    no_gradient: str = ""
    constants: tuple[str, ...] = ()
    no_edge: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    properties: list[Property] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    alternatives: list[Callable] = field(default_factory=list)
    draw: Callable[[Draw], Iterator[tuple]] = lambda _: iter(())
    draw_edges: Callable[[Draw], Iterator[tuple]] = lambda _: iter(())
    in_steps: type | None = None
    broken: Callable | None = None

    def __post_init__(self):
        own = f"{self.reference.__module__}.{self.reference.__qualname__}"
        self.forbidden = (*self.forbidden, own)

    @property
    def name(self) -> str:
        """The name that the answer has in a notebook."""
        return self.reference.__name__

    @property
    def module(self) -> str:
        """The module of the reference."""
        return self.reference.__module__

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods to write, where the answer is a class."""
        written = ("__init__",) if self.constructor else ()
        return (*written, self.method) if self.method else ()

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """The arguments that the answer is called with; a `device` is not asked for."""
        if self.method is None:
            found = list(inspect.signature(self.reference).parameters.values())
        else:
            method = getattr(self.reference, self.method)
            found = list(inspect.signature(method).parameters.values())[1:]
        return [x for x in found if x.kind is not x.KEYWORD_ONLY]

    @cached_property
    def banned(self) -> tuple[str, ...]:
        """The names that an answer may not use: those forbidden, then other ways to the same."""
        same = " ".join(SAME.get(name, "") for name in self.forbidden).split()
        return tuple(dict.fromkeys([*self.forbidden, *same]))

    @cached_property
    def watched(self) -> tuple[str, ...]:
        """What is watched for while an answer runs: names, then kinds of operations."""
        kinds = (OPERATIONS.get(name) for name in self.forbidden)
        return (*self.banned, *DOORS, *dict.fromkeys(f"{ATEN}{kind}" for kind in kinds if kind))

    @cached_property
    def stub(self) -> str:
        """The code that a learner begins with: the reference emptied, or with a fault.

        It says what is forbidden.
        """
        if self.broken is None:
            begun = stub(self.reference, self.methods)
        else:
            begun = with_steps_of(source_of(self.reference), self.method, source_of(self.broken))
        # the last one is the reference itself
        if banned := in_words(self.forbidden[:-1]):
            begun = with_comment(begun, self.method, f"Not to be called: {', '.join(banned)}.")
        return begun

    @property
    def tools(self) -> tuple[str, ...]:
        """What the reference's own steps call, for the last hint; see `stubs.tools`."""
        return () if self.broken else tools(self.reference, self.method)  # there it is all there

    def is_untouched(self, source: Source) -> bool:
        """Return True if a source is what the learner has begun with."""
        empty = source.is_stub(self.method)
        if empty or self.broken is None:
            return empty
        try:
            return ast.dump(source.tree) == ast.dump(ast.parse(self.stub))
        except SyntaxError:
            return False

    def cases(self, draw: Callable[[Draw], Iterator[tuple]]) -> Callable:
        """Take a generator of (name, inputs, build, pieces), or fewer; the simplest case first."""
        self.draw = draw
        return draw

    def edges(self, draw: Callable[[Draw], Iterator[tuple]]) -> Callable:
        """Take a generator of further cases, asked of whoever is right in all others."""
        self.draw_edges = draw
        return draw

    def requires(self, sentence: str, points: int = 1) -> Callable:
        """Take the function below as a property with this sentence."""
        return lambda holds: self.properties.append(Property(sentence, points, holds)) or holds

    def steps(self, answer: type) -> type:
        """Take the class below, the reference cut into methods, of which mistakes change one."""
        self.in_steps = answer
        self.alternative(answer)
        return answer

    def mistake(
        self,
        answer: Callable | None = None,
        *,
        step: str = "",
        raises: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> Callable:
        """Take the function or class below as a known mistake: its docstring says what is wrong.

        Where a class is asked for, a function is its method `step`, by default the one to write.
        """
        if answer is None:
            return partial(self.mistake, step=step, raises=raises)
        if isinstance(self.reference, type) and not isinstance(answer, type):
            known = {"__doc__": answer.__doc__, "__module__": answer.__module__}
            base = self.in_steps or self.reference
            answer = type(answer.__name__, (base,), {step or str(self.method): answer, **known})
        self.mistakes.append(Mistake(answer, raises if isinstance(raises, tuple) else (raises,)))
        return answer

    def hand_out(self, answer: Callable) -> Callable:
        """Take the function below, or method, as the broken code that the learner is to mend.

        Who has mended it reads its docstring: what the fault was.
        """
        self.broken = answer
        return answer

    def alternative(self, answer: Callable) -> Callable:
        """Take the function or class below as a right answer in another style."""
        self.alternatives.append(answer)
        return answer

    @cache  # noqa: B019 - an exercise lives as long as the program
    def weights(self, build: tuple, seed: int) -> dict[str, Tensor] | None:
        """Draw the weights that answer and reference are given, where they are modules.

        None of them is 0 or 1, as biases and gains are at first, so that a forgotten one shows.
        """
        if self.method is None:
            return None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                made = construct(self.reference, build)
            except ValueError:  # a case may be one that the constructor refuses
                return {}
            initial = made.state_dict() if isinstance(made, nn.Module) else {}
            return {name: w + torch.randn_like(w) / 4 for name, w in initial.items()}


def edges(exercise: Exercise, cases: list[Case]) -> Iterator[Case]:
    """Yield one case of each kind that applies, made of the largest that it can be of."""
    shapes = [_shape(parameter.annotation) for parameter in exercise.parameters]
    fullest = sorted((case for case in cases if not case.pieces), key=_axes, reverse=True)
    for name, change in EDGES.items():
        made = (
            replace(case, name=name, inputs=inputs)
            for case in fullest
            if (inputs := change(case.inputs, shapes))
        )
        if name not in exercise.no_edge and (case := next(made, None)):
            yield case


def shorter(exercise: Exercise, case: Case) -> Inputs:
    """Return inputs with texts one token shorter: what an object kept of them is too short."""
    shapes = [_shape(parameter.annotation) for parameter in exercise.parameters]
    # what `*args` take has no shape
    pairs = zip_longest(case.inputs, shapes[: len(case.inputs)], fillvalue=[])
    return tuple(_cut(x, shape) if isinstance(x, Tensor) else x for x, shape in pairs)


def _cut(x: Tensor, shape: Shape) -> Tensor:
    for axis, name in enumerate(reversed(shape), 1):
        if name.strip("#") in TOKENS and x.shape[-axis] > 1:
            x = x.narrow(-axis, 0, x.shape[-axis] - 1)
    return x


def _axes(case: Case) -> int:
    """Count the axes of all tensors of a case."""
    return sum(x.dim() for x in case.inputs if isinstance(x, Tensor))


def batch_axes(exercise: Exercise, case: Case) -> int:
    """Return how many axes of a batch its tensors have, at most."""
    shapes = (_shape(parameter.annotation) for parameter in exercise.parameters)
    pairs = zip(case.inputs, shapes, strict=False)
    batched = ((x, shape) for x, shape in pairs if shape[:1] in (["..."], ["*batch"]))
    return max((_own_axes(x, shape) for x, shape in batched if isinstance(x, Tensor)), default=0)


def _shape(annotation: Any) -> Shape:
    """Return the names of the axes that an annotation gives a tensor, or a tensor or None."""
    kinds = (annotation, *get_args(annotation))
    return next((x.dim_str.split() for x in kinds if hasattr(x, "dim_str")), [])


def _three_batch_axes(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Give tensors three batch axes, one of them of size 1; masks have one of size 1 more."""
    own = _batch_axes(inputs, shapes)
    if own not in (0, 1):
        return None

    def widened(x: Any, shape: Shape) -> Any:
        if not _is_batched(x, shape):
            return x
        more = [2, 1, 1 if shape[0].startswith("*#") else 2][: 3 - own]
        missing = own - _own_axes(x, shape)
        return x.expand(*more, *[1] * missing, *x.shape).clone()

    return _where_changed(inputs, shapes, widened)


def _batch_of_one(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Make a batch of one."""
    if _batch_axes(inputs, shapes) != 0:
        return None
    return _where_changed(
        inputs, shapes, lambda x, shape: x[None].clone() if _is_batched(x, shape) else x
    )


def _batch_axes(inputs: Inputs, shapes: list[Shape]) -> int | None:
    """Return how many batch axes all tensors have that may have any number of them, or None."""
    pairs = zip(inputs, shapes, strict=False)
    found = {
        _own_axes(x, shape)
        for x, shape in pairs
        if _is_batched(x, shape) and not shape[0].startswith("*#")
    }
    return found.pop() if len(found) == 1 else None


def _is_batched(x: Any, shape: Shape) -> bool:
    return isinstance(x, Tensor) and bool(shape) and shape[0].startswith(("...", "*"))


def _own_axes(x: Tensor, shape: Shape) -> int:
    return x.dim() - len(shape) + 1


def _row_of_zeros(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Make the second row of each tensor of floats zeros."""

    def zeroed(x: Any, shape: Shape) -> Any:
        if not (shape and isinstance(x, Tensor) and x.is_floating_point()):
            return x
        if x.dim() < 2 or x.shape[-2] < 2:
            return x
        x = x.clone()
        x[..., 1, :] = 0
        return x

    return _where_changed(inputs, shapes, zeroed)


def _one_column(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Keep the first column of a tensor whose columns may be one."""
    return _where_changed(inputs, shapes, lambda x, shape: _first(x, shape, -1))


def _one_row(inputs: Inputs, shapes: list[Shape]) -> Inputs | None:
    """Keep the first row of a tensor whose rows may be one."""
    return _where_changed(inputs, shapes, lambda x, shape: _first(x, shape, -2))


def _first(x: Any, shape: Shape, axis: int) -> Any:
    may_be_one = len(shape) >= -axis and shape[axis].startswith("#")
    if not (may_be_one and isinstance(x, Tensor) and x.dim() >= -axis and x.shape[axis] > 1):
        return x
    return x.narrow(axis, 0, 1).clone()


def _where_changed(
    inputs: Inputs, shapes: list[Shape], change: Callable[[Any, Shape], Any]
) -> Inputs | None:
    """Return the inputs changed one by one, or None where none of them has changed."""
    changed = tuple(change(x, shape) for x, shape in zip(inputs, shapes, strict=False))
    return changed if any(a is not b for a, b in zip(changed, inputs, strict=False)) else None


EDGES: dict[str, Callable[[Inputs, list[Shape]], Inputs | None]] = {
    "three batch axes": _three_batch_axes,
    "a batch of one": _batch_of_one,
    "a row of zeros": _row_of_zeros,
    "a mask of one column": _one_column,
    "a mask of one row": _one_row,
}

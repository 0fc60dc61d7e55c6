"""Which statements of a notebook go with an answer: those that it needs, and no others.

A name stands for what it was last bound to before it is read. A statement reads it when it runs; a
function when it is called, which is after the answer's cell has run. Where nothing before binds
it, the next cell that does counts. What may not have bound it, such as the body of an `if`, a loop
or a `try`, needs the binding before it as well.

What changes an object that is needed goes along too: `x[...] = `, `x.a = `, `x += `, `del x[...]`,
or a method's call whose result nobody takes, such as `x.append(...)`. Four rules keep trainings,
plots and checks out:

- to hand an object to a function, as `train(model)` does, does not count as a change, and what a
  call such as `Model(3).train()` makes is new;
- a loop that also changes what nothing needs, such as an optimizer, is not for the answer;
- modules are not changed: `torch.manual_seed(0)` stays behind;
- what follows the reader, or a new binding of the name, is too late.

So a statement that the answer needs is executed, wherever it stands, and nothing else is.
"""

import ast
import builtins
import re
import warnings
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from course_lib.answers.source import global_reads, names_bound, outside_functions
from course_lib.checking.notebook.magics import as_python
from course_lib.files import ipynb
from course_lib.files.course_map import Outline

IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# what binds its names whenever it runs
CERTAIN = (*IMPORTS, *DEFINITIONS, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.With)
SCOPES = (*DEFINITIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement of a cell, or one name of its imports, and what it does to global names.

    It binds some, changes what is behind others, reads some when it runs, and some when what it
    defines is called.
    """

    cell: int
    line: int
    text: str
    node: ast.stmt = field(repr=False)
    binds: frozenset[str]
    changes: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    reads_later: frozenset[str] = frozenset()

    @property
    def defines(self) -> bool:
        """Tell whether this is a function, a class, or a name for a lambda."""
        value = getattr(self.node, "value", None)
        return isinstance(self.node, DEFINITIONS) or isinstance(value, ast.Lambda)

    @property
    def is_mine(self) -> bool:
        """Tell whether this takes an answer from the workspace: `x = mine("...")`."""
        return _is_mine(getattr(self.node, "value", None))

    @property
    def reaches_all(self) -> bool:
        """Tell whether this could matter to any statement: a star import, or one of __future__."""
        return "*" in self.binds or getattr(self.node, "module", None) == "__future__"


def statements(cell: int, text: str, tree: ast.Module) -> Iterator[Statement]:
    """Yield the statements of a cell. One that Python cannot compile is left out."""
    lines = text.encode().split(b"\n")
    for whole in tree.body:
        for node in _parts(whole):
            line, written = whole.lineno, ""
            if node is whole:
                line, written = _written(lines, node)
            try:
                reads, later = _reads(node)
            except SyntaxError:
                continue
            binds = frozenset(names_bound(node))
            changes = frozenset(_changed(node)) - binds
            yield Statement(
                cell, line, written or ast.unparse(node), node, binds, changes, reads, later
            )


class Notebook:
    """The statements of a notebook in its order, and where each name is bound or changed.

    What `mine` gives of `own` names stands for the notebook's definitions: it is `taken` there.
    """

    def __init__(self, statements: list[Statement], own: Iterable[str] = ()):
        self.statements = statements
        self.place = {statement: place for place, statement in enumerate(statements)}
        self.events: dict[str, list[int]] = defaultdict(list)
        self.bindings: dict[str, list[int]] = defaultdict(list)
        self.taken: dict[str, list[int]] = defaultdict(list)
        for place, statement in enumerate(statements):
            if statement.is_mine and statement.binds <= set(own):
                for name in statement.binds:
                    self.taken[name].append(place)
                continue
            for name in statement.binds | statement.changes:
                self.events[name].append(place)
            for name in statement.binds:
                self.bindings[name].append(place)

    def needed(
        self,
        answer: Statement,
        name: str,
        others: Mapping[str, Collection[Statement]] | None = None,
        apart: Collection[str] = (),
    ) -> tuple[list[Statement], set[str], set[str]]:
        """List the statements of an answer in the order to execute them, itself included.

        `others` are other answers by name, and what each is made of. One stays out, with all that
        it needs, where `mine` takes it, where it is `apart`, and where nothing binds its name:
        returned are the names of these, and those of the others that go along.
        """
        whole = [answer, *self.patches(answer, name)]
        called = self.end(whole[-1].cell)
        search = _Search(self, called, answer, name, others or {}, apart)
        above = [x for x in self.statements[:called] if x.reaches_all]
        search.find(whole + above)
        if search.unbound and not any("*" in x.binds for x in above):
            search.find(x for x in self.statements[called:] if x.reaches_all)
        return search.in_order(), search.given, search.along

    def patches(self, answer: Statement, name: str) -> Iterator[Statement]:
        """Yield what changes an answer after its definition, until its name is bound anew."""
        for statement in self.statements[self.place[answer] + 1 :]:
            if name in statement.binds:
                if statement.cell != answer.cell or name not in statement.reads:
                    return
                yield statement
            elif name in statement.changes and not hasattr(statement.node, "body"):
                yield statement

    def is_taken(self, name: str, made: Statement, before: int) -> bool:
        """Tell whether `mine` takes a name between what has made it and a place."""
        return any(self.place[made] < place < before for place in self.taken[name])

    def end(self, cell: int) -> int:
        """Return the place behind the last statement of a cell."""
        return bisect_right(self.statements, cell, key=lambda statement: statement.cell)


class _Search:
    """Statements that an answer needs, found from each name to what it stands for."""

    def __init__(
        self,
        notebook: Notebook,
        called: int,
        answer: Statement,
        name: str,
        others: Mapping[str, Collection[Statement]],
        apart: Collection[str],
    ):
        self._notebook, self._called = notebook, called
        self._answer, self._name = answer, name
        self._others, self._apart = others, apart
        # names of others that the answer reads, by whether they stay out
        self.given, self.along, self.unbound = set[str](), set[str](), set[str]()
        # what is to be executed before each statement that was found
        self._found: dict[Statement, list[Statement]] = {}
        self._left: list[Statement] = []
        # names needed; places seen by name, and whether a module is behind it there
        self._names, self._seen = {name}, defaultdict[str, dict[int, bool]](dict)
        self._waiting = defaultdict[str, list[Statement]](list)
        self._missing: dict[Statement, int] = {}

    def find(self, wanted: Iterable[Statement]) -> None:
        """Find these statements, and all that they need."""
        self._add(wanted)
        while self._left:
            statement = self._left.pop()
            place = self._notebook.place.get(statement, 0)
            for name in sorted(statement.reads):
                self._found[statement] += self._resolve(name, place)
            for name in sorted(statement.reads_later):
                self._resolve(name, self._called)

    def in_order(self) -> list[Statement]:
        """List what was found as the notebook has it, but each after what it reads."""
        place, ordered = self._notebook.place, dict[Statement, None]()
        left = sorted(self._found, key=lambda x: (not x.reaches_all, place.get(x, -1)))[::-1]
        begun = set[Statement]()
        while left:
            statement = left[-1]
            before = [x for x in self._found[statement] if x not in begun]
            before.sort(key=lambda x: place.get(x, -1), reverse=True)  # the last is the next
            if statement in begun or not before:
                ordered[left.pop()] = None
            begun.add(statement)
            left += before
        return list(ordered)

    def _add(self, statements: Iterable[Statement]) -> None:
        new = [x for x in statements if x not in self._found]
        self._found |= {statement: [] for statement in new}
        self._left += new

    def _resolve(self, name: str, before: int) -> list[Statement]:
        """Add what a name stands for at a place, and return what has bound it last."""
        if name not in self._names:
            self._names.add(name)
            self._add(x for x in self._waiting.pop(name, []) if self._is_complete(x))
        notebook, bindings = self._notebook, self._notebook.bindings.get(name, [])
        # before the answer, its name stands for something older
        older = bool(bindings) and bindings[0] < before <= notebook.place[self._answer]
        if name == self._name and not older:
            self._add([self._answer])
            return []
        if not bindings:
            kind = self.given if name in self._others else self.unbound
            kind.update({name} - vars(builtins).keys())
            return []
        if bindings[0] >= before:
            before = notebook.end(notebook.statements[bindings[0]].cell)
        last = notebook.statements[bindings[bisect_left(bindings, before) - 1]]
        bound, changed = self._history(name, before)
        made = self._others.get(name, ())
        stays_out = name in self._apart or notebook.is_taken(name, last, before)
        if last in made and stays_out:
            self.given.add(name)
            # what is no part of the other answer changes the copy that this one has
            self._add(x for x in changed if x not in made and self._is_for_answer(x))
            return []
        if last in made:
            self.along.add(name)
        self._add(bound)
        self._add(x for x in changed if self._is_for_answer(x))
        return [last]

    def _history(self, name: str, before: int) -> tuple[list[Statement], list[Statement]]:
        """List what may have bound a name before a place, and what has changed its object.

        What an earlier call has listed is left out.
        """
        places, seen = self._notebook.events[name], self._seen[name]
        bound, changed, passed = [], [], []
        module = False
        for number in range(bisect_left(places, before) - 1, -1, -1):
            if number in seen:
                module = seen[number]
                break
            passed.append(number)
            statement = self._notebook.statements[places[number]]
            if name not in statement.binds:
                changed.append(statement)
                continue
            bound.append(statement)
            module = module or isinstance(statement.node, IMPORTS)
            # `import a.b` and `import a` both bind `a`, and each may be needed
            if isinstance(statement.node, CERTAIN) and not isinstance(statement.node, ast.Import):
                break
        seen |= dict.fromkeys(passed, module)
        return bound, [] if module else changed

    def _is_for_answer(self, change: Statement) -> bool:
        """Tell whether all that a statement changes is needed; if not yet, wait for the rest."""
        missing = change.changes - self._names
        if change not in self._missing:
            self._missing[change] = len(missing)
            for name in missing:
                self._waiting[name].append(change)
        return not missing

    def _is_complete(self, change: Statement) -> bool:
        self._missing[change] -= 1
        return self._missing[change] == 0


def _parts(node: ast.stmt) -> list[ast.stmt]:
    """Take the names of an import apart, and the targets of `a, b = mine("..."), mine("...")`."""
    match node:
        case ast.Import(names):
            return [ast.Import([alias]) for alias in names]
        case ast.ImportFrom(module, names, level):
            return [ast.ImportFrom(module, [alias], level) for alias in names]
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(
            values
        ) and any(map(_is_mine, values)):
            pairs = zip(targets, values, strict=True)
            return [ast.Assign([target], value, lineno=node.lineno) for target, value in pairs]
    return [node]


def _is_mine(value: ast.AST | None) -> bool:
    match value:
        case ast.Call(ast.Name("mine") | ast.Attribute(attr="mine")):
            return True
    return False


def _written(lines: list[bytes], node: ast.stmt) -> tuple[int, str]:
    """Return the first line of a statement, and its text as it stands in the cell."""
    decorators = getattr(node, "decorator_list", None)
    line = decorators[0].lineno if decorators else node.lineno
    written = b"\n".join(lines[line - 1 : node.end_lineno])
    if not decorators:  # another statement may stand before it, or behind
        behind = len(lines[(node.end_lineno or line) - 1]) - (node.end_col_offset or 0)
        written = written[node.col_offset : len(written) - behind]
    return line, written.decode()


def _changed(node: ast.AST) -> Iterator[str]:
    """Yield the names behind which a statement changes an object."""
    for inner in outside_functions(node):
        match inner:
            case ast.Attribute(ctx=ast.Load()) | ast.Subscript(ctx=ast.Load()):
                continue
            case ast.Attribute() | ast.Subscript():
                changed = inner
            case ast.Expr(ast.Call(ast.Attribute() as changed)):
                pass
            case ast.Expr(ast.Call(ast.Name("setattr"), [changed, *_])):
                pass
            case _:
                continue
        # the name at the root of `a.b[c].d(e).f`; but what `a(b)` gives is new
        while isinstance(changed, ast.Attribute | ast.Subscript | ast.Call):
            if isinstance(changed, ast.Call) and not isinstance(changed.func, ast.Attribute):
                break
            changed = changed.func if isinstance(changed, ast.Call) else changed.value
        if isinstance(changed, ast.Name):
            yield changed.id


def _reads(node: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """Find the global names that a statement reads when it runs, and those it reads later.

    Raises SyntaxError for what Python parses and cannot compile.
    """
    inner = list(ast.walk(node))
    if any(isinstance(x, SCOPES) for x in inner):
        reads = list(global_reads(ast.unparse(node)))
        now, later = ({name for name, called in reads if called is x} for x in (False, True))
    else:  # the same, in a fraction of the time
        names = [x for x in inner if isinstance(x, ast.Name)]
        now, later = {x.id for x in names if isinstance(x.ctx, ast.Load)}, set[str]()
    if isinstance(node, ast.AugAssign):
        now |= set(names_bound(node))
    return frozenset(now - _bound_before_read(node)), frozenset(later)


def _bound_before_read(node: ast.stmt) -> set[str]:
    """Find the names that a loop, or another statement with a body, gives itself."""
    bound, read = set[str](), set[str]()
    has_body = hasattr(node, "body") and not isinstance(node, DEFINITIONS)
    left: list[ast.AST] = [node] if has_body else []
    while left:
        match inner := left.pop():
            case ast.Name(name, ast.Load()):
                read |= {name} - bound
            case ast.Name(name):
                bound |= {name} - read
            case ast.For(target, iterable, body, otherwise):
                left += [iterable, target, *body, *otherwise][::-1]
            case ast.Assign(targets, value):
                left += [*targets, value]
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                read |= {x.id for x in ast.walk(inner) if isinstance(x, ast.Name)} - bound
            case ast.AugAssign(target):
                left += [inner.value, target]
                read |= set(names_bound(target)) - bound
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                bound |= {name} - read
            case ast.alias(name, renamed):
                bound |= {renamed or name.partition(".")[0]} - read
            case ast.Lambda():
                pass
            case _:
                left += [*ast.iter_child_nodes(inner)][::-1]
    return bound - read


CELL_MAGICS_OF_PYTHON = ("%%capture", "%%prun", "%%time", "%%timeit")


@dataclass(frozen=True)
class Cell:
    """A cell of code: its place in the notebook, and the exercise that it is marked with."""

    number: int
    text: str
    exercise: str | None
    statements: list[Statement]
    problem: str | None

    def answer(self, exercise: Outline) -> Statement | None:
        """Return what gives the exercise's name its last value, but for what changes that."""
        name, own = exercise.name, self.exercise == exercise.id
        named = [x for x in self.statements if name in x.binds and not x.is_mine]
        made = [x for x in named if x.defines or (own and name not in x.reads)]
        return made[-1] if made else None

    def is_for(self, exercise: Outline) -> bool:
        """Tell whether an answer stands here, or would if the cell could be read."""
        if self.problem is None:
            return self.answer(exercise) is not None
        header = rf"^(def|class)\s+{exercise.name}\b"
        return self.exercise == exercise.id or bool(re.search(header, self.text, re.MULTILINE))


# a class hands in the same demonstrations again and again
@lru_cache(maxsize=1024)
def read_cell(number: int, text: str, exercise: str | None) -> Cell:
    """Read the statements of a cell, or the problem that it cannot be read for."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("%%"):
        python = first.split()[0] in CELL_MAGICS_OF_PYTHON
        text = text.replace(first, "", 1) if python else ""
    try:
        tree, text = _parse(text)
        found = list(statements(number, text, tree))
    except (SyntaxError, ValueError, RuntimeError, MemoryError) as error:
        number_there = getattr(error, "lineno", None)
        line = f", line {number_there}" if number_there else ""
        why = str(getattr(error, "msg", error)) or "it takes too much memory to be read"
        problem = f"cell {number}{line} is not Python: {why}"
        if line_there := ipynb.conflict(text):
            problem = f"cell {number} has the marks of a merge conflict, line {line_there}"
        return Cell(number, text, exercise, [], problem)
    return Cell(number, text, exercise, found, None)


def _parse(text: str) -> tuple[ast.Module, str]:
    """Parse the code of a cell; what is not Python is what IPython makes Python of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\s" in a docstring is no concern of a check
        try:
            return ast.parse(text), text
        except SyntaxError:
            text = as_python(text)
            return ast.parse(text), text

"""A learner's Transformer on one page: their passed answers as one file that runs alone.

What has not passed is the library's, in torch alone. Docstrings, annotations, the refusals of bad
arguments and what nobody on the page hands over are left out, so that what is left is the model.
"""

import ast
import importlib
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from course_lib.answers.source import globals_read, names_bound, names_used, source_of
from course_lib.checking.catalogue import load
from course_lib.checking.notebook.without_einops import without_einops

# the exercises whose answers the page may hold, found by their names
PARTS = (
    "attention/softmax", "attention/dot_scores", "self_attention/scaled_dot_product",
    "positions/sinusoidal", "feed_forward/position_wise", "masks/causal", "masks/shift_right",
    "multi_head/split_heads", "multi_head/merge_heads", "multi_head/attention",
    "add_norm/layer_norm", "add_norm/post_norm", "add_norm/pre_norm", "encoder/block",
    "encoder/stack", "decoder/block", "transformer/forward", "transformer/greedy",
)  # fmt: skip
ENDS = ("transformer/forward", "transformer/greedy", "masks/shift_right")
TASK = """
# %% the task: eight different letters come in, and go out in the order of the alphabet
START, STOP = 26, 27
torch.manual_seed(0)
model = Transformer(vocab=28, layers=2, d_model=64, heads=4, d_ff=256, max_length=9, norm="pre")
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for step in range(600):
    optimizer.param_groups[0]["lr"] = 0.003 * min((step + 1) / 60, 1 - step / 600)
    source = torch.rand(32, 26).argsort(-1)[:, :8]
    target = source.sort(-1).values
    logits = model(source, shift_right(target, START))
    loss = torch.nn.functional.cross_entropy(logits.mT, target)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
unseen = torch.rand(1000, 26).argsort(-1)[:, :8]
right = (greedy(model, unseen, START, STOP, most=8) == unseen.sort(-1).values).all(-1)
print(f"{right.float().mean():.1%} of {len(unseen)} unseen sequences of letters are sorted")
"""


def one_page(answer: Callable[[str], str | None]) -> tuple[str, list[str]]:
    """Return the page, and the ids whose answers on it are the learner's own.

    `answer` gives the source of a passed answer, or None.
    """
    page = _Page(answer)
    for exercise_id in ENDS:
        page.add_exercise(exercise_id)
    return page.text(), page.own


class _Page:
    def __init__(self, answer: Callable[[str], str | None]):
        self._answer = answer
        self._exercises = {load(x).name: x for x in PARTS}
        self._imports: dict[str, str] = {}
        # in this order they may be defined
        self._definitions: dict[str, str] = {}
        self._begun: set[str] = set()
        every = [source_of(load(x).reference) for x in PARTS] + [answer(x) or "" for x in PARTS]
        self._handed_over = {
            keyword.arg
            for source in every
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call)
            for keyword in node.keywords
        }
        self.own: list[str] = []

    def add_exercise(self, exercise_id: str) -> None:
        """Add what an exercise builds: the learner's answer, or the library's."""
        exercise = load(exercise_id)
        if exercise.name in self._begun:
            return
        self._begun.add(exercise.name)
        kept = self._answer(exercise_id)
        if kept is None or not self._add_answer(kept, exercise.name):
            self._add_ours(exercise.reference)
        else:
            self.own.append(exercise_id)

    def text(self) -> str:
        """Put imports, definitions and the task together."""
        definitions = dict.fromkeys(self._definitions.values())
        body = "\n\n".join(definitions).replace(":\n\n    def", ":\n    def") + "\n" + TASK
        used = globals_read(body)
        lines = {line for name, line in self._imports.items() if name in used}
        return (
            "\n".join(sorted({"import torch", *(x.removesuffix(" as torch") for x in lines)}))
            + "\n\n"
            + body
        )

    def _add_answer(self, kept: str, name: str) -> bool:
        """Add a kept answer; tell whether its helpers have names of their own."""
        statements = [_stripped(x) for x in ast.parse(kept).body]
        left = [x for x in statements if x and not isinstance(x, ast.Import | ast.ImportFrom)]
        helpers = [x for x in left if not {*names_bound(x)} & self._exercises.keys()]
        for helper in helpers:
            text = ast.unparse(helper)
            if any(self._definitions.get(x, text) != text for x in names_bound(helper)):
                return False
        # what binds no name, such as a method set afterwards, goes with the answer
        own = [x for x in left if name in (bound := {*names_bound(x)}) or not bound]
        for statement in statements:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._add_import(statement)
            elif statement and statement not in own:
                self._add_helper(statement)
        self._definitions[name] = "\n".join(map(ast.unparse, own))
        return True

    def _add_helper(self, statement: ast.stmt) -> None:
        names = {*names_bound(statement)}
        for name in names & self._exercises.keys():
            self.add_exercise(self._exercises[name])
        if not names & self._exercises.keys():
            self._definitions |= dict.fromkeys(names, ast.unparse(statement))

    def _add_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        for alias in statement.names:
            name = alias.asname or alias.name
            module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
            if module.startswith("course_lib."):
                self._add(name, getattr(importlib.import_module(module), alias.name))
            else:
                start = f"from {module} import" if module else "import"
                self._imports[name] = f"{start} {ast.unparse(alias)}"

    def _add_ours(self, thing: Any) -> None:
        """Add a component of the library, behind what it is made of."""
        (tree,) = ast.parse(source_of(thing)).body
        statement = without_einops(_fixed(_stripped(tree), self._handed_over))
        source = ast.unparse(statement)
        for name, value in names_used(thing, source).items():
            if name != thing.__name__:
                self._add(name, value)
        self._definitions[thing.__name__] = source

    def _add(self, name: str, value: Any) -> None:
        module = getattr(value, "__module__", None) or ""
        if name in self._exercises:
            self.add_exercise(self._exercises[name])
        elif module.startswith("course_lib.") and isinstance(value, FunctionType | type):
            if value.__name__ not in self._begun:
                self._begun.add(value.__name__)
                self._add_ours(value)
            if name != value.__name__:  # by which an older notebook knows it
                self._definitions[name] = f"{name} = {value.__name__}"
        elif isinstance(value, ModuleType):
            self._imports[name] = f"import {value.__name__} as {name}"
        elif module:
            self._imports[name] = f"from {module.partition('.')[0]} import {name}"


def _fixed(tree: Any, handed_over: set[str | None]) -> Any:
    """Take the usual value of each argument that goes by its name and that nobody hands over."""
    for function in [x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)]:
        named = function.args
        both = list(zip(named.kwonlyargs, named.kw_defaults, strict=True))
        usual = {x.arg: value for x, value in both if value and x.arg not in handed_over}
        kept = [(x, value) for x, value in both if x.arg not in usual]
        named.kwonlyargs, named.kw_defaults = [x for x, _ in kept], [value for _, value in kept]
        function.body = [_Usual(usual).visit(x) for x in function.body]
    return tree


class _Usual(ast.NodeTransformer):
    """Puts values in the place of names, and takes the branch of `if None is None`."""

    def __init__(self, usual: dict[str, ast.expr]):
        self._usual = usual

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._usual.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        match node.test:
            case ast.Compare(ast.Constant(None), [ast.Is()], [ast.Constant(None)]):
                return node.body
        return node


def _stripped(statement: ast.stmt) -> Any:
    """Take out docstrings, annotations and refusals."""
    return _Stripper().visit(statement)


class _Stripper(ast.NodeTransformer):
    def __init__(self):
        self._empty: set[str] = set()

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        # what does nothing but refuse is left out, and so are its calls
        for method in (x for x in node.body if isinstance(x, ast.FunctionDef)):
            kinds = {type(x) for x in ast.walk(method)}
            if ast.Raise in kinds and ast.Return not in kinds and method.name != "__init__":
                self._empty.add(method.name)
        node.body = [x for x in node.body if getattr(x, "name", None) not in self._empty]
        node.body = self._body(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body, node.returns = self._body(node.body), None
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in (*every, arguments.vararg, arguments.kwarg):
            if argument:
                argument.annotation = None
        return node

    def visit_If(self, node: ast.If) -> Any:
        node.body = self._body(node.body)
        node.orelse = [x for x in map(self.visit, node.orelse) if x]
        return node

    def _body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        kept = [self.visit(x) for x in _without_docstring(body) if not _is_refusal(x)]
        return [x for x in kept if x] or [ast.Pass()]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        return ast.Assign([node.target], node.value, lineno=node.lineno)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        # all of the page is on one device, which an answer need not ask about
        node.keywords = [x for x in node.keywords if x.arg != "device"]
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        match node.value:
            case ast.Call(ast.Attribute(ast.Name("self"), name)) if name in self._empty:
                return None
        return node


def _is_refusal(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.If)
        and all(isinstance(x, ast.Raise) for x in statement.body)
        and not statement.orelse
    )


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(ast.Constant(str())), *rest]:
            return rest
    return body

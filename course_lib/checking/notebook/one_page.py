"""A learner's Transformer on one page: their passed answers as one file that runs alone.

What has not passed is the library's. Docstrings, annotations and refusals of bad arguments are
left out, so that what is left is the model.
"""

import ast
import hashlib
import importlib
from collections.abc import Callable
from html import escape
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from course_lib.answers.source import Source, names_bound, source_of
from course_lib.checking.catalogue import load
from course_lib.checking.notebook import session
from course_lib.checking.notebook.solution_text import own_imports
from course_lib.files.atomic import write_atomically
from course_lib.files.workspace import Workspace

PAGE = "my_transformer"
# the exercises whose answers the page may hold, found by their names
PARTS = (
    "attention/softmax", "attention/dot_scores", "self_attention/scaled_dot_product",
    "positions/sinusoidal", "feed_forward/position_wise", "masks/causal", "masks/shift_right",
    "multi_head/split_heads", "multi_head/merge_heads", "multi_head/attention",
    "add_norm/layer_norm", "add_norm/post_norm", "add_norm/pre_norm", "encoder/block",
    "encoder/stack", "decoder/block", "transformer/forward", "transformer/greedy",
)  # fmt: skip
# where the paper has what is on the page; as far as they may, the parts come in this order
SECTIONS = {
    "softmax": "§ 3.2.1", "dot_scores": "§ 3.2.1", "scaled_dot_product_attention": "§ 3.2.1",
    "split_heads": "§ 3.2.2", "merge_heads": "§ 3.2.2", "MultiHeadAttention": "§ 3.2.2",
    "AsSelfAttention": "§ 3.2.3", "AsCrossAttention": "§ 3.2.3", "causal_mask": "§ 3.2.3",
    "feed_forward": "§ 3.3", "FeedForward": "§ 3.3", "sinusoidal": "§ 3.5",
    "Embedding": "§ 3.4 and 3.5",
    "layer_norm": "§ 3.1", "PostNorm": "§ 3.1", "PreNorm": "Xiong et al. 2020",
    "EncoderBlock": "§ 3.1", "Encoder": "§ 3.1", "DecoderBlock": "§ 3.1", "Decoder": "§ 3.1",
    "Transformer": "§ 3, figure 1", "shift_right": "§ 3.1", "greedy": "§ 3.1",
}  # fmt: skip
ENDS = ("transformer/forward", "transformer/greedy", "masks/shift_right")
TASK = """
# %% the task: eight different letters come in, and go out in the order of the alphabet
START, STOP = 26, 27
torch.manual_seed(0)
model = Transformer(vocab=28, layers=2, d_model=64, heads=4, d_ff=256, max_length=9)
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


def my_transformer() -> str:
    """Return the learner's Transformer as one file that runs alone, and write it beside them.

    What has not passed is the library's; it is printed how many parts are their own. A notebook
    shows the file, unless a workspace has none of them yet: what nobody has solved there is no
    reading for them. Where there is no workspace, as on a published page, it is folded.
    """
    workspace = Workspace.find()
    page, own = one_page(workspace.answer if workspace else lambda _: None)
    lines, parts = len(page.splitlines()), len(PARTS)
    name = f"{PAGE}.py"
    if workspace:
        print(f"{lines} lines; {len(own)} of {parts} exercises on it are your own")
        name = _write_page(workspace, page).name
        print(f"written to {name}: run it with `python {name}`")
    else:
        print(f"{lines} lines; your own answers to {parts} exercises need a workspace")
    if (own or not workspace) and (shell := session.notebook()):
        start = "<details open>" if own else "<details>"
        told = f"{start}<summary>{name}</summary><pre>{escape(page)}</pre></details>"
        shell.display_pub.publish({"text/html": told, "text/plain": f"<{name}>"})
    return page


def _write_page(workspace: Workspace, page: str) -> Path:
    """Write the page and return where; one that its reader has changed stays as it is."""
    written = workspace.releases()
    for path in (workspace.folder / f"{PAGE}{n or ''}.py" for n in count()):
        if not path.exists() or written.get(path.name) == _digest(path.read_bytes()):
            write_atomically(path, page)
            workspace.note_releases(written | {path.name: _digest(path.read_bytes())})
            break
    return path


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def one_page(answer: Callable[[str], str | None]) -> tuple[str, list[str]]:
    """Return the page, and the ids whose answers on it are the learner's own.

    `answer` gives the source of a passed answer, or None.
    """
    page = _Page(answer)
    for exercise_id in ENDS:
        page.add(load(exercise_id).reference)
    return page.text(), page.own


class _Page:
    def __init__(self, answer: Callable[[str], str | None]):
        self._answer = answer
        self._exercises = {load(x).name: x for x in PARTS}
        self._imports: dict[str, str] = {}
        self._definitions: dict[str, str] = {}
        self._begun: set[str] = set()
        self.own: list[str] = []

    def add(self, component: Any) -> None:
        """Add a component, or the learner's answer in its place, behind what it is made of."""
        name = component.__name__
        if name in self._begun:
            return
        self._begun.add(name)
        exercise_id = self._exercises.get(name)
        kept = self._answer(exercise_id) if exercise_id else None
        if exercise_id and kept and self._add_source(kept, name):
            self.own.append(exercise_id)
        else:
            self._add_source(own_imports(component, "") + source_of(component), name)

    def text(self) -> str:
        """Return imports, definitions and the task."""
        parts = {text: name for name, text in reversed(self._definitions.items())}
        sections = {
            text: f"# {SECTIONS[name]}\n" for text, name in parts.items() if name in SECTIONS
        }
        texts = dict.fromkeys(self._definitions[name] for name in self._in_order())
        body = "\n\n".join(sections.get(x, "") + x for x in texts) + "\n" + TASK
        used = Source(body).reads
        lines = {line for name, line in self._imports.items() if name in used}
        imports = "\n".join(sorted({"import torch", *lines}))
        return f"{imports}\n\n{body}".replace(":\n\n    def", ":\n    def")

    def _in_order(self) -> list[str]:
        """List the parts in the paper's order, each behind what it is made of."""
        order: list[str] = []
        begun: set[str] = set()

        def place(name: str) -> None:
            if name in begun or name not in self._definitions:
                return
            begun.add(name)
            read = Source(self._definitions[name]).reads
            for part in [x for x in (*SECTIONS, *self._definitions) if x in read]:
                place(part)
            order.append(name)

        for name in (*SECTIONS, *self._definitions):
            place(name)
        return order

    def _add_source(self, source: str, name: str) -> bool:
        """Add what a source defines; return False where a helper's name is another's already."""
        plain = ast.fix_missing_locations(_Plain().visit(ast.parse(source)))
        imports = [x for x in plain.body if isinstance(x, ast.Import | ast.ImportFrom)]
        parts = {x: {*names_bound(x)} for x in plain.body if x not in imports}
        # what binds no name, such as a method set afterwards, goes with the component
        own = [x for x, bound in parts.items() if name in bound or not bound]
        helpers = {
            helper: ast.unparse(x)
            for x, bound in parts.items()
            if x not in own
            for helper in bound - self._exercises.keys()
        }
        if any(self._definitions.get(x, text) != text for x, text in helpers.items()):
            return False
        self._add_imports(imports, Source(ast.unparse(plain)).reads)
        for part in {x for bound in parts.values() for x in bound} & self._exercises.keys():
            self.add(load(self._exercises[part]).reference)
        self._definitions |= helpers
        self._definitions[name] = "\n".join(map(ast.unparse, own))
        return True

    def _add_imports(self, imports: list[Any], used: set[str]) -> None:
        for statement, alias in [(x, alias) for x in imports for alias in x.names]:
            module, name = getattr(statement, "module", ""), alias.asname or alias.name
            if name not in used:
                continue
            if not module.startswith("course_lib"):
                start = f"from {module} import" if module else "import"
                self._imports[name] = f"{start} {ast.unparse(alias)}"
                continue
            value = getattr(importlib.import_module(module), alias.name)
            if isinstance(value, ModuleType):
                line = f"import {value.__name__} as {name}"
                self._imports[name] = line.removesuffix(f" as {value.__name__}")
            elif value.__module__.startswith("course_lib."):
                self.add(value)
                if name != value.__name__:
                    self._definitions[name] = f"{name} = {value.__name__}"
            else:
                package = value.__module__.partition(".")[0]
                self._imports[name] = f"from {package} import {ast.unparse(alias)}"


class _Plain(ast.NodeTransformer):
    """Takes out docstrings, annotations, refusals, and devices, since the page is on one."""

    def generic_visit(self, node: Any) -> Any:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        is_docstring = isinstance(node.value, ast.Constant)
        return None if is_docstring else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.generic_visit(node)
        called = {x.attr for x in ast.walk(node) if isinstance(x, ast.Attribute)}
        for x in [x for x in node.body if isinstance(x, ast.FunctionDef) and x.decorator_list]:
            if x.name not in called:  # by a refusal alone
                node.body.remove(x)
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return node.value and ast.Assign([node.target], node.value)

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        refusal = all(isinstance(x, ast.Raise | ast.Pass) for x in node.body)
        return None if refusal and not node.orelse else node

    def visit_Call(self, node: ast.Call) -> Any:
        node.keywords = [x for x in node.keywords if x.arg != "device"]
        return self.generic_visit(node)

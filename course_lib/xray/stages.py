"""The stages of a model: every tensor on its way, with the function that computed it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.xray.calls import Attended, Call, Recorder, code_of, is_own
from course_lib.xray.outlines import Box, Outline, Stack, Target, outline

SUBLAYERS = ("attention", "cross_attention", "feed_forward")
NEAREST = 5  # tokens that each layer would have said


class Stage(NamedTuple):
    """A tensor of the model, of (rows, columns) or of (heads, rows, columns).

    `key` names the same stage in two versions of a model; `author` is the call that computed it;
    `columns` are names, where the columns
    have names, and `wide` is how many there are in all.
    """

    key: str
    label: str
    value: Float[Tensor, "*heads rows columns"]
    author: Call
    formula: str
    columns: list[str] | None = None
    wide: int = 0


class Panel(NamedTuple):
    """A box of the drawing: its label, the role that gives its colour, and its stages' keys."""

    label: str
    role: str
    keys: list[str]


class Column(NamedTuple):
    """A stack of the drawing: boxes before, inside and after its blocks.

    `blocks` has one list of boxes for each block; keys are whole.
    """

    name: str
    tokens: list[str]
    before: list[Panel]
    blocks: list[list[Panel]]
    after: list[Panel]


class Attention(NamedTuple):
    """The weights of all heads of one layer, and who looks at whom."""

    key: str
    kind: str
    block: int
    query: int
    keys: int
    aligns: bool


class Lens(NamedTuple):
    """What each level would have said: the likeliest tokens, of (levels, rows, nearest)."""

    levels: list[str]
    tokens: list[list[list[int]]]
    probabilities: Float[Tensor, "levels rows nearest"]


class Recording(NamedTuple):
    """A model at work on one sentence."""

    outline: Outline
    columns: list[Column]
    stages: dict[str, Stage]
    attentions: list[Attention]
    logits: Float[Tensor, "rows vocab"] | None
    lens: Lens | None


def record(model: nn.Module, sentence: str, words: Any = None, target: Target = None) -> Recording:
    """Send a sentence through a model, and keep all of its stages.

    Raises TypeError for a model that is not made of the course's parts, and ValueError for a
    sentence that it cannot read.
    """
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            plan = outline(model, sentence, words, target)
            with Recorder(model) as recorder:
                logits = plan.run()
            return _Reading(model, plan, recorder, logits).recording()
    finally:
        model.train(training)


class _Reading:
    """What becomes of a recorder's calls: stages, under the names of the drawing."""

    def __init__(self, model: nn.Module, plan: Outline, recorder: Recorder, logits: Tensor | None):
        self._model, self._plan, self._recorder, self._logits = model, plan, recorder, logits
        self._calls: dict[str, list[Call]] = {}
        self._makers: dict[int, Call] = {}
        for call in recorder.root:
            if call.path is not None:
                self._calls.setdefault(call.path, []).append(call)
            if isinstance(call.output, Tensor) and is_own(call.code.co_filename):
                # the innermost of those that return the same tensor comes last
                self._makers[id(call.output)] = call
        self._stages: dict[str, Stage] = {}
        self._attentions: list[Attention] = []

    def recording(self) -> Recording:
        columns = [self._column(i, stack) for i, stack in enumerate(self._plan.stacks)]
        lens = self._lens(self._plan.stacks[-1]) if self._plan.score else None
        return Recording(self._plan, columns, self._stages, self._attentions, self._logits, lens)

    def _add(
        self,
        key: str,
        label: str,
        value: Any,
        author: Call,
        formula: str,
        columns: list[str] | None = None,
        wide: int = 0,
    ) -> str:
        value = value.detach().float().cpu()
        value = value[0] if value.dim() > 2 and len(value) == 1 and columns is None else value
        self._stages[key] = Stage(key, label, value, author, formula, columns, wide)
        return key

    def _author(self, tensor: Tensor, otherwise: Call) -> Call:
        """Return the innermost function that returned a tensor; of torch's own, who called it."""
        author = self._makers.get(id(tensor), otherwise)
        if is_own(author.code.co_filename):
            return author
        callers = [call for call in self._recorder.root if author in call.calls]
        return callers[0] if callers and callers[0].given else author

    def _column(self, number: int, stack: Stack) -> Column:
        name = stack.name or "model"
        before = [self._outside(f"{name}/before/{box.label}", box) for box in stack.before]
        blocks = [
            list(self._block(number, f"{name}/{i}", i, path)) for i, path in enumerate(stack.blocks)
        ]
        after = [self._outside(f"{name}/after/{box.label}", box) for box in stack.after]
        return Column(stack.name, stack.tokens, before, blocks, after)

    def _outside(self, key: str, box: Box) -> Panel:
        """Keep what a part outside the blocks returned."""
        if box.formula == "logits":
            return Panel(box.label, box.role, [self._outputs(key)])
        if box.path == "pool":
            code = code_of(cast(Callable, self._model.pool))
            call = next(call for call in self._recorder.root if call.code is code)
            self._add(key, "the sentence's vector", call.value, call, box.formula)
            return Panel(box.label, box.role, [key])
        call = self._calls[box.path][box.turn]
        author = self._author(call.output, call)
        self._add(key, "result", call.value, author, _norm_formula(author, box.formula))
        return Panel(box.label, box.role, [key])

    def _outputs(self, key: str) -> str:
        """Keep the logits of the tokens that come first somewhere."""
        assert self._logits is not None
        best = self._logits.max(0).values.topk(min(64, self._logits.shape[-1])).indices
        vocab = self._logits.shape[-1]
        columns = sorted(best.tolist()) if vocab <= 64 else best.tolist()
        names = [self._plan.name(token) for token in columns]
        last = [call for call in self._recorder.root.calls if isinstance(call.output, Tensor)][-1]
        author = self._author(last.output, last)
        shown = self._logits[:, columns]
        return self._add(key, "logits", shown, author, "logits", names, vocab)

    def _block(self, stack: int, key: str, number: int, path: str) -> Iterator[Panel]:
        found = False
        for name in SUBLAYERS:
            for call in self._calls.get(f"{path}.{name}", []):
                found = True
                yield from self._sublayer(stack, f"{key}/{name}", number, f"{path}.{name}", call)
        if not found:
            call = self._calls[path][0]
            self._add(f"{key}/block", "result", call.value, call, "block")
            yield Panel("block", "plain", [f"{key}/block"])

    def _sublayer(
        self, stack: int, key: str, number: int, path: str, call: Call
    ) -> Iterator[Panel]:
        """Yield the boxes of a residual connection: its sublayer, and its norm where that is."""
        [inner] = self._calls[f"{path}.sublayer"]
        places = [i for i, one in enumerate(call.calls) if inner in one]
        others = [
            (i, one)
            for i, one in enumerate(call.calls)
            if i not in places and isinstance(one.output, Tensor)
        ]
        norm_first = bool(others) and others[0][0] < places[0]
        work = self._work(stack, key, number, f"{path}.sublayer", inner)
        if not others:
            yield work
            self._add(f"{key}/sum", "result", call.value, call, "sum")
            yield Panel("add", "stream", [f"{key}/sum"])
            return
        norm = others[0][1]
        author = self._author(norm.output, norm)
        self._add(f"{key}/norm", "normalised", norm.value, author, _norm_formula(author))
        if norm_first:
            yield Panel("norm", "norm", [f"{key}/norm"])
            yield work
            self._add(f"{key}/sum", "sum", call.value, call, "sum")
            yield Panel("add", "stream", [f"{key}/sum"])
        else:
            yield work
            self._add(f"{key}/sum", "sum", norm.inputs()[0], call, "sum")
            yield Panel("add & norm", "norm", [f"{key}/sum", f"{key}/norm"])

    def _work(self, stack: int, key: str, number: int, path: str, call: Call) -> Panel:
        """Keep what happens inside a sublayer: attention, a network, or a recurrence."""
        attended = self._recorder.attended.get(f"{path}.attention")
        if attended:
            return self._attend(stack, key, number, f"{path}.attention", call, attended)
        author = self._author(call.output, call)
        result = f"{key}/result"
        if "attention" in key:
            self._add(result, "result", call.value, author, "recurrence")
            return Panel("recurrence", "query", [result])
        kind = _network_kind(author)
        keys, hidden = [], _hidden(call)
        if hidden is not None:
            keys.append(self._add(f"{key}/hidden", "hidden", hidden, author, f"hidden {kind}"))
        keys.append(self._add(result, "result", call.value, author, f"network {kind}"))
        label = "SwiGLU" if kind == "swiglu" else "feed-forward"
        return Panel(label, "network", keys)

    def _attend(
        self, stack: int, key: str, number: int, path: str, call: Call, attended: Attended
    ) -> Panel:
        layer = self._calls[path][0]
        masked = attended.mask is not None and not bool(attended.mask.all())
        across = "cross" in key
        keys = []
        for name, tensor in (("queries", attended.q), ("keys", attended.k), ("values", attended.v)):
            formula = f"{name} across" if across else name
            author = self._author(tensor, layer)
            keys.append(self._add(f"{key}/{name}", name, tensor, author, formula))
        for name, tensor, turn in _turned(layer, attended):
            keys.append(self._add(f"{key}/{name}", name, tensor, turn, "turned"))
        weights = attended.weights()
        if weights is not None:
            author = self._weigher(layer, weights, attended)
            formula = "weights masked" if masked else "weights"
            keys.append(self._add(f"{key}/weights", "weights", weights, author, formula))
            kind = "cross-attention" if across else "masked self-attention" if masked else ""
            self._attentions.append(
                Attention(
                    keys[-1],
                    kind or "self-attention",
                    number,
                    stack,
                    0 if across else stack,
                    self._plan.aligns == path,
                )
            )
        author = self._author(attended.output, layer)
        keys.append(self._add(f"{key}/heads", "heads' output", attended.output, author, "heads"))
        author = self._author(call.output, call)
        keys.append(self._add(f"{key}/result", "result", call.value, author, "joined"))
        label = "cross-attention" if across else "self-attention"
        return Panel(f"masked {label}" if masked and not across else label, "query", keys)

    def _weigher(self, layer: Call, weights: Tensor, attended: Attended) -> Call:
        """Return the function that computed these weights: the softmax, where it was one's own."""
        for call in layer:
            if call.value is None or call.value.numel() != weights.numel():
                continue
            if torch.allclose(call.value.reshape(weights.shape), weights, atol=1e-5):
                return call
        code = code_of(attended.rule)
        return next((call for call in layer if call.code is code), layer)

    def _lens(self, stack: Stack) -> Lens:
        """Ask each level's states what comes next, by the model's own last norm and output.

        Source: Nostalgebraist 2020, the logit lens.
        """
        assert self._plan.score is not None
        first = self._calls[stack.before[-1].path][stack.before[-1].turn]
        states = [first.output, *(self._calls[path][0].output for path in stack.blocks)]
        levels = ["embedding", *(f"block {i + 1}" for i in range(len(stack.blocks)))]
        stacked = torch.cat([state.reshape(1, *state.shape[-2:]) for state in states])
        logits = self._plan.score(stacked)
        best = logits.topk(NEAREST, dim=-1)
        probabilities = (best.values - logits.logsumexp(-1, keepdim=True)).exp()
        return Lens(levels, best.indices.tolist(), probabilities)


def _turned(layer: Call, attended: Attended) -> Iterator[tuple[str, Tensor, Call]]:
    """Yield queries and keys as a rule inside the rule gets them, where they were turned before."""
    for call in layer:
        turns = [one for one in call.calls if "rotary" in one.code.co_name]
        for inner in call.calls if turns else []:
            inputs = inner.inputs()
            if inner.output is attended.output and len(inputs) > 2:
                yield "turned queries", inputs[0], turns[-1]
                yield "turned keys", inputs[1], turns[-1]


def _hidden(call: Call) -> Tensor | None:
    """Return the hidden layer of a network: the last tensor in it that is wider than its result."""
    width = call.output.shape[-1]
    inside = [tensor for one in call for tensor in one.made if tensor.dim() == call.output.dim()]
    wide = [tensor for tensor in inside if tensor.shape[-1] > width]
    return wide[-1] if wide else None


def _network_kind(author: Call) -> str:
    name = author.code.co_qualname.lower()
    return next((kind for kind in ("swiglu", "gelu") if kind in name), "relu")


def _norm_formula(author: Call, formula: str = "layer norm") -> str:
    if formula != "layer norm":
        return formula
    return "rms norm" if "rms" in author.code.co_name else "layer norm"

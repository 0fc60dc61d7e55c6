"""The models that the X-ray knows: how each reads a sentence, and which parts it has."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.masks import shift_right
from course_lib.pretrained import marian
from course_lib.transformer import greedy
from course_lib.xray.vocabulary import STARTS, STOPS, Vocabulary

Target = str | list[int] | None  # a text, tokens, or what the model writes itself
LONGEST = 64  # tokens of one text: more would be no picture


class Box(NamedTuple):
    """A box of the drawing outside the blocks: a part of the model, by its path.

    `turn` is which of its calls, where the source and the target go through the same part.
    """

    label: str
    role: str
    path: str
    formula: str
    turn: int = 0


class Stack(NamedTuple):
    """A column of the drawing: the tokens that go through it, and its boxes from below."""

    name: str
    tokens: list[str]
    before: list[Box]
    blocks: list[str]
    after: list[Box]


class Outline(NamedTuple):
    """A model that is about to read a sentence.

    `run` reads it, and returns the logits or None; `score` turns a state of the last stack into
    logits; `expected` are the tokens that come next, where they are known, and `written` is the
    text of those that a translator wrote; `aligns` is the path of the attention whose first head
    was trained to align words.
    """

    title: str
    stacks: list[Stack]
    run: Callable[[], Float[Tensor, "n vocab"] | None]
    score: Callable[[Float[Tensor, "... d_model"]], Tensor] | None
    name: Callable[[int], str]
    expected: list[int]
    written: str = ""
    aligns: str = ""


def outline(model: nn.Module, sentence: str, words: Any, target: Target) -> Outline:
    """Find out which model this is, and how it reads this sentence.

    Raises TypeError for a model that is not made of the course's parts, and ValueError for a
    sentence that it cannot read.
    """
    if not isinstance(sentence, str) or not sentence.strip():
        raise ValueError("the X-ray needs a sentence to send through the model, and this is none")
    for parts, reads in KINDS.items():
        if all(hasattr(model, part) for part in parts.split()):
            return reads(model, sentence, words, target)
    raise TypeError(
        "the X-ray knows Transformer, LanguageModel, MiniLM, Marian and SmolLM2, of your parts or "
        f"the library's, but not {type(model).__name__}: is it made of other blocks?"
    )


def _tokens(vocabulary: Vocabulary, text: str) -> list[int]:
    return _short(vocabulary.encode(text))


def _short(tokens: list[int]) -> list[int]:
    if not 0 < len(tokens) <= LONGEST:
        raise ValueError(
            f"a sentence for the X-ray has from 1 to {LONGEST} tokens, and this one has "
            f"{len(tokens)}: take a shorter one"
        )
    return tokens


def _named(model: nn.Module, words: Any) -> Vocabulary:
    words = words if words is not None else getattr(model, "tokenizer", None)
    if words is None:
        raise ValueError(
            "this model does not know the names of its tokens: give `words`, its tokenizer or the "
            "list of all names, such as xray(model, sentence, words=known)"
        )
    return Vocabulary(words)


def _paths(path: str, blocks: Any) -> list[str]:
    return [f"{path}.{i}" for i in range(len(blocks))]


def _last_norm(model: Any, path: str) -> list[Box]:
    """Return the box of the last norm, where there is one."""
    part = model.get_submodule(path)
    return [] if isinstance(part, nn.Identity) else [Box("norm", "norm", path, "layer norm")]


LOGITS = Box("linear, softmax", "value", "", "logits")


def _transformer(model: Any, sentence: str, words: Any, target: Target) -> Outline:
    vocabulary = _named(model, words)
    source = torch.tensor([_tokens(vocabulary, sentence)])
    start, stop = vocabulary.find(STARTS), vocabulary.find(STOPS)
    if start is None:
        raise ValueError('a translator begins with a start token: call one of `words` "start"')
    if isinstance(target, str):
        target = _tokens(vocabulary, target)
    written = _written(model, source, start, stop) if target is None else target
    read = shift_right(torch.tensor([written]), start)
    embedding = "embedding + positions", "stream"
    stacks = [
        Stack(
            "encoder",
            [vocabulary.name(token) for token in source[0].tolist()],
            [Box(*embedding, "encoder.embedding", "embedding")],
            _paths("encoder.blocks", model.encoder.blocks),
            _last_norm(model, "encoder.last_norm"),
        ),
        Stack(
            "decoder",
            [vocabulary.name(token) for token in read[0].tolist()],
            [Box(*embedding, "decoder.embedding", "embedding")],
            _paths("decoder.blocks", model.decoder.blocks),
            [*_last_norm(model, "decoder.last_norm"), LOGITS],
        ),
    ]

    def score(states: Tensor) -> Tensor:
        return model.output(model.decoder.last_norm(states))

    return Outline(
        "a Transformer",
        stacks,
        lambda: model(source, read)[0],
        score,
        vocabulary.name,
        written,
        vocabulary.text([token for token in written if token not in (start, stop)]),
    )


def _written(model: Any, source: Int[Tensor, "1 key"], start: int, stop: int | None) -> list[int]:
    """Write a target by the likeliest next token: as long as the source, or to the stop."""
    room = min(len(model.decoder.embedding.positions) - 1, LONGEST)
    # without a stop a model of lesson 08 writes as much as it has read
    longest = min(source.shape[-1] if stop is None else 2 * source.shape[-1] + 8, room)
    return greedy(model, source, start, -1 if stop is None else stop, longest)[0].tolist()


def _language_model(model: Any, sentence: str, words: Any, target: Target) -> Outline:
    before = [
        Box("embedding", "stream", "embedding", "token embedding"),
        Box("positions", "position", "positions", "positions"),
    ]
    return _decoder_only("a language model", model, model.output, before, sentence, words)


def _smollm2(model: Any, sentence: str, words: Any, target: Target) -> Outline:
    before = [Box("embedding", "stream", "words", "token embedding")]
    return _decoder_only("SmolLM2", model, model.scores, before, sentence, words)


def _decoder_only(
    title: str, model: Any, output: Callable, before: list[Box], sentence: str, words: Any
) -> Outline:
    """Outline a model of one stack, which `output` ends, that predicts each next token."""
    vocabulary = _named(model, words)
    tokens = _tokens(vocabulary, sentence)
    stack = Stack(
        "",
        [vocabulary.name(token) for token in tokens],
        before,
        _paths("blocks", model.blocks),
        [*_last_norm(model, "last_norm"), LOGITS],
    )
    return Outline(
        title,
        [stack],
        lambda: model(torch.tensor([tokens]))[0],
        lambda states: output(model.last_norm(states)),
        vocabulary.name,
        tokens[1:],
    )


def _minilm(model: Any, sentence: str, words: Any, target: Target) -> Outline:
    vocabulary = _named(model, words)
    tokens, mask = model.tokens([sentence])
    stack = Stack(
        "",
        [vocabulary.name(token) for token in _short(tokens[0].tolist())],
        [
            Box("embedding", "stream", "words", "token embedding"),
            Box("learned positions", "position", "positions", "positions"),
            Box("norm", "norm", "norm", "layer norm"),
        ],
        _paths("blocks", model.blocks),
        [Box("mean", "value", "pool", "mean")],
    )

    def run() -> None:
        model.pool(model(tokens, mask), mask.squeeze(-2))

    return Outline("MiniLM", [stack], run, None, vocabulary.name, [])


def _marian(model: Any, sentence: str, words: Any, target: Target) -> Outline:
    vocabulary = _named(model, words)
    source = model.encode(sentence)
    text = model.translate(sentence) if target is None else target
    written: list[int] = model.encode(text).tolist() if isinstance(text, str) else text
    read = shift_right(torch.tensor(written), marian.START)
    for tokens in (source.tolist(), written):
        _short(tokens)
    embedding = ("embedding + positions", "stream", "embedding", "embedding")
    stacks = [
        Stack(
            "encoder",
            [vocabulary.name(token) for token in source.tolist()],
            [Box(*embedding)],
            _paths("encoder", model.encoder),
            [],
        ),
        Stack(
            "decoder",
            [vocabulary.name(token) for token in read.tolist()],
            [Box(*embedding, turn=1)],
            _paths("decoder", model.decoder),
            [LOGITS],
        ),
    ]

    def score(states: Tensor) -> Tensor:
        table = model.embedding.table[: marian.VOCAB]
        return nn.functional.linear(states, table, model.bias)

    return Outline(
        "a translator",
        stacks,
        lambda: model(read[None], model.read(source[None]))[0],
        score,
        vocabulary.name,
        written,
        model.tokenizer.decode([token for token in written if token != marian.STOP]),
        f"decoder.{len(model.decoder) - 1}.cross_attention.sublayer.attention",
    )


# the attributes that tell a model from the others, whoever wrote its class
KINDS = {
    "encoder decoder output": _transformer,
    "embedding encoder decoder bias": _marian,
    "words blocks last_norm scores": _smollm2,
    "words positions norm blocks pool": _minilm,
    "embedding positions blocks last_norm output": _language_model,
}

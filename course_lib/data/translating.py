"""Sentences as tokens that two languages share, in batches for a Transformer that translates."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from course_lib.data.batches import pad
from course_lib.data.home_assistant import Pair
from course_lib.instruments.recording import record_weights
from course_lib.masks import padding_mask, shift_right
from course_lib.transformer import Transformer, greedy
from course_lib.translation import beam_search, by_tokens, smoothed_cross_entropy

PAD, START, STOP = 0, 1, 2
SPECIAL = ["<pad>", "<start>", "<stop>"]
MAX_LENGTH = 400  # tokens that a model has positions for

Tokens = list[int]
Example = tuple[Tokens, Tokens]  # a source and a target, each closed by STOP
Batch = tuple[Int[Tensor, "batch key"], Int[Tensor, "batch query"], Bool[Tensor, "batch 1 key"]]


def learn_pieces(texts: Iterable[str], vocab: int) -> Tokenizer:
    """Learn byte pairs from the texts of both languages, as lesson 10 does, but quickly.

    A piece begins with a space or is a part of one word. There are `vocab` of them in all, with
    PAD, START and STOP and the 256 bytes, so that every text can be written.
    """
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces.train_from_iterator(texts, trainer)
    return pieces


def encode(pieces: Tokenizer, texts: Sequence[str]) -> list[Tokens]:
    """Return the tokens of each text, closed by STOP."""
    return [[*encoding.ids, STOP] for encoding in pieces.encode_batch(list(texts))]


def decode(pieces: Tokenizer, tokens: Tokens) -> str:
    """Return the text of the tokens up to STOP."""
    end = tokens.index(STOP) if STOP in tokens else len(tokens)
    return pieces.decode(tokens[:end]).strip()


def examples(pieces: Tokenizer, pairs: Sequence[Pair]) -> list[Example]:
    """Return both sides of each pair as tokens."""
    sides = (encode(pieces, [pair[side] for pair in pairs]) for side in (0, 1))
    return list(zip(*sides, strict=True))


def longest(source: Tokens) -> int:
    """Return how many tokens a translation of this source may have."""
    return 10 + 2 * len(source)


def stack(some: Sequence[Example]) -> Batch:
    """Return sources and targets, filled up with PAD, and the mask of real source tokens.

    Raises ValueError for an empty batch.
    """
    if not some:
        raise ValueError("a batch needs at least one pair, and this one has none")
    sources, targets = zip(*some, strict=True)
    source = pad(sources, PAD)
    lengths = torch.tensor([len(tokens) for tokens in sources])
    return source, pad(targets, PAD), padding_mask(lengths, source.shape[-1])


def batches(
    some: Sequence[Example], most: int, seed: int, *, by_tokens: Callable = by_tokens
) -> Iterator[Batch]:
    """Yield batches without end, each of at most `most` tokens a side, padding counted.

    Each pass has a new order, drawn from the seed. Raises ValueError for a pair of which one side
    is longer than `most`.
    """
    draw = random.Random(seed)
    while True:
        shuffled = draw.sample(some, len(some))
        lengths = [max(len(source), len(target)) for source, target in shuffled]
        cut = by_tokens(lengths, most)
        for indices in draw.sample(cut, len(cut)):
            yield stack([shuffled[index] for index in indices])


def next_token_loss(
    model: Transformer,
    batch: Batch,
    smoothing: float = 0.0,
    *,
    loss: Callable = smoothed_cross_entropy,
) -> Float[Tensor, ""]:
    """Return the mean loss of each target token, the right ones before it given."""
    source, target, mask = batch
    logits = model(source, shift_right(target, START), mask)
    return loss(logits, target, smoothing, PAD)


@torch.no_grad()
def translate(
    model: Transformer, pieces: Tokenizer, texts: Sequence[str], *, greedy: Callable = greedy
) -> list[str]:
    """Translate each text by the likeliest next token, texts of similar length together."""
    sources, found = encode(pieces, texts), [""] * len(texts)
    for indices in by_tokens(list(map(len, sources)), most=2000):
        source, _, mask = stack([(sources[index], [STOP]) for index in indices])
        most = max(longest(sources[index]) for index in indices)
        written = greedy(model, source, START, STOP, most, mask)
        for index, tokens in zip(indices, written.tolist(), strict=True):
            found[index] = decode(pieces, tokens[: longest(sources[index])])
    return found


def next_tokens(model: Transformer, source: Tokens) -> Callable[[Tensor], Tensor]:
    """Read a source; return the function of prefixes that `beam_search` steps by."""
    memory = model.encoder(torch.tensor([source]))

    def step(prefixes: Int[Tensor, "prefixes n"]) -> Float[Tensor, "prefixes vocab"]:
        states = model.decoder(prefixes, memory.expand(len(prefixes), -1, -1))
        return torch.log_softmax(model.output(states[:, -1]), -1)

    return step


@torch.no_grad()
def translate_by_beam(
    model: Transformer,
    pieces: Tokenizer,
    texts: Sequence[str],
    width: int = 4,
    *,
    beam_search: Callable = beam_search,
) -> list[str]:
    """Translate each text by beam search, one after the other."""
    found = []
    for source in encode(pieces, texts):
        step = next_tokens(model, source)
        tokens, _ = beam_search(step, START, STOP, width, longest(source))
        found.append(decode(pieces, tokens))
    return found


@torch.no_grad()
def alignment(
    model: Transformer, pieces: Tokenizer, source: str, target: str
) -> Float[Tensor, "layer query key"]:
    """Return how much each token of a target looks at each token of its source.

    These are the weights of each decoder block's cross-attention, the mean of its heads.
    """
    read, written = (torch.tensor(tokens) for tokens in encode(pieces, [source, target]))
    found = []
    for block in model.decoder.blocks:
        layer = block.get_submodule("cross_attention.sublayer.attention")
        with record_weights(layer) as weights:
            model(read[None], shift_right(written, START)[None])
        found.append(weights[0][0].mean(0))
    return torch.stack(found)

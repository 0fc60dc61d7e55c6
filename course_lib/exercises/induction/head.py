"""Four matrices set by hand: a head that finds what followed the same token before."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.add_norm import induction_weights
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.exercises.preferred_tokens import in_one_dtype
from course_lib.masks import causal_mask
from course_lib.self_attention import scaled_dot_product_attention

FLOATS = (torch.float32, torch.float64)
POSITION, LONGEST = 16, 600


def written(vocab: int) -> Tensor:
    """Return the tokens of a text in which all but the first return."""
    generator = torch.Generator().manual_seed(vocab)
    rounds = [torch.rand(vocab - 1, generator=generator).argsort() + 1 for _ in range(3)]
    # the first token is no other's, and the first of a round may be the last of the one before
    return torch.cat([torch.zeros(1, dtype=torch.long), *rounds])


def longest(vocab: int) -> Tensor:
    """Return the tokens of a text as long as may be, whose last one has come once before."""
    others = torch.arange(LONGEST - 3) % max(vocab - 2, 1) + min(2, vocab - 1)
    return torch.cat([torch.tensor([0, 1]), others, torch.tensor([1])])


def before_each(tokens: Tensor) -> Tensor:
    """Return the token before each; the first one has itself."""
    return torch.cat([tokens[:1], tokens[:-1]])


def stream_of(tokens: Tensor, before: Tensor, vocab: int) -> Tensor:
    """Return the stream that head 2 reads; what the positions hold is of no use."""
    generator = torch.Generator().manual_seed(len(tokens))
    parts = [F.one_hot(x, vocab).double() for x in (tokens, before)]
    rest = torch.randn(len(tokens), POSITION, generator=generator).double()
    return torch.cat([*parts, torch.zeros_like(parts[0]), rest], dim=-1)


FOUND = "what followed the same token before"


def behaviour(matrices):
    """Say what the head finds and where it writes it, for many matrices solve the task."""
    if not isinstance(matrices, tuple | list) or len(matrices) != 4:
        return [0, "no four matrices"]
    if not all(isinstance(w, Tensor) and w.dtype in FLOATS and not w.is_meta for w in matrices):
        return [0, "no matrices of numbers"]
    if not all(w.dim() == 2 and w.numel() for w in matrices):
        return [0, "not all are matrices"]
    computed = in_one_dtype(matrices)
    w_q, w_k, w_v, w_o = (w.double() for w in matrices)
    d_model = len(w_q)
    if w_o.shape == w_v.shape and len(w_o) == d_model != w_o.shape[1]:
        return [0, "an output matrix that meets the values from the wrong side"]
    if w_q.shape != w_k.shape or len(w_v) != d_model or w_o.shape != (w_v.shape[1], d_model):
        return [0, "shapes of which no head can be made"]
    vocab = (d_model - POSITION) // 3
    if vocab < 2 or d_model != 3 * vocab + POSITION:
        return [0, "shapes that do not fit the stream"]
    if all(_finds((w_q, w_k, w_v, w_o), text(vocab), vocab) for text in (written, longest)):
        # what float64 holds may be too large for the dtype in which a layer computes
        text = longest(vocab)
        held = _finds(computed, torch.cat([text[:40], text[-1:]]), vocab)
        return [vocab, FOUND if held else "numbers too large for their dtype"]
    tokens = written(vocab)
    before, mask = before_each(tokens), causal_mask(len(tokens))
    x = stream_of(tokens, before, vocab)
    looks = _preferred((x @ w_q) @ (x @ w_k).mT, tokens, before, mask)
    carried = _carried(w_v @ w_o, vocab)
    mixed = ", mixed with others" if carried == "token, to prediction," else ""
    return [vocab, f"{carried} of {looks}{mixed}"]


def _finds(matrices: Sequence[Tensor], tokens: Tensor, vocab: int) -> bool:
    """Return True if the head predicts, where it can, what followed, and writes nothing else."""
    w_q, w_k, w_v, w_o = matrices
    before, mask = before_each(tokens), causal_mask(len(tokens))
    x, follows = stream_of(tokens, before, vocab), tokens.unsqueeze(-1) == before
    x = x.to(w_q)
    output = (scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask) @ w_o).double()
    follows[:, 0] = False
    seen = (follows & mask).any(-1)
    shares = (follows & mask).double()[seen] @ F.one_hot(tokens, vocab).double()
    expected = torch.zeros(int(seen.sum()), len(w_q)).double()
    expected[:, 2 * vocab : 3 * vocab] = shares / shares.sum(-1, keepdim=True)
    others = torch.arange(len(w_q)).div(vocab, rounding_mode="floor") != 2
    elsewhere = output[:, others].abs().max() > 2e-3
    return not elsewhere and torch.allclose(output[seen], expected, atol=2e-3)


def _carried(moved: Tensor, vocab: int) -> str:
    """Say which part of the stream a head reads, and to which it writes."""
    if not moved.any():
        return "nothing"
    names = ("token", "token before", "prediction")
    for i, source in enumerate(names):
        for j, goal in enumerate(names):
            plain = torch.zeros_like(moved)
            plain[i * vocab : (i + 1) * vocab, j * vocab : (j + 1) * vocab] = torch.eye(vocab)
            if torch.allclose(moved, plain, atol=1e-3):
                return f"{source}, to {goal},"
            if torch.equal(moved != 0, plain != 0):
                return f"a multiple of {source}, to {goal},"
    predicted = torch.zeros_like(moved[:, :vocab])
    predicted[:vocab] = torch.eye(vocab)
    if torch.allclose(moved[:, 2 * vocab : 3 * vocab], predicted, atol=1e-3):
        return "token, to prediction and elsewhere,"
    return "something else"


def _preferred(scores: Tensor, tokens: Tensor, before: Tensor, mask: Tensor) -> str:
    """Name the tokens that have the highest scores of their rows."""
    now, then = tokens.unsqueeze(-1), before.unsqueeze(-1)
    named = {
        "what followed the same token": now == before,
        "the same token": now == tokens,
        "the token before, wherever it is": then == tokens,
        "what followed the token before": then == before,
        "all but what followed the same token": now != before,
    }

    def highest(x: Tensor) -> Tensor:
        x = x.double().masked_fill(~mask, -torch.inf)
        # where all are alike, nothing is preferred
        best, least = x.amax(-1, keepdim=True), x.masked_fill(~mask, torch.inf).amin(-1, True)
        return (x > best - 1e-6) & mask & (best > least + 1e-6)

    found = highest(scores)
    same = (name for name, x in named.items() if torch.equal(highest(x), found))
    return next(same, "some others")


exercise = Exercise(
    reference=induction_weights,
    lesson="07_induction_heads",
    title="An induction head by hand",
    minutes=15,
    difficulty=3,
    hints=(
        "You are the last *a*, and want what came after the *a*s before you. Those tokens carry a "
        "note that names *a*. In which part of their stream is it, and who wrote it?",
        "Three matrices read a part of the stream, one writes to a part. Which rows of a matrix "
        "that reads are not zero, and which columns of the one that writes?",
        "The right keys score 1 and the others 0 if you do nothing about it. What does a softmax "
        "make of that, after the division by sqrt(d_k)?",
    ),
    clauses={
        "The stream of a token is": GIVEN,
        "the token before it, one-hot": GIVEN,
        "the prediction, still empty": GIVEN,
        "16 numbers of position": GIVEN,
        "fills the prediction alone": "written_over_the_token",
        "the token that followed it there": "finds_itself",
        "to within 0.002": "too_soft",
        "Elsewhere the prediction is free": GIVEN,
        "up to 600 tokens": "enough_for_short_texts",
        "d_k and d_v are free": GIVEN,
    },
    tolerance=1e-3,
    canonical=behaviour,
    equivalent=(
        # how much larger the right score is, is free, from about 13 on
        "30 -> 29",
        "30 -> 31",
        "vocab ** 0.5 -> vocab",
        "vocab ** 0.5 -> vocab * 0.5",
        "0.5 -> 1.5",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "three tokens", (3,)
    yield "a few tokens", (draw.number(5, 9),)
    yield "many tokens", (draw.number(60, 100),)
    yield "almost 200 tokens", (draw.number(190, 201),)


@exercise.requires("in new texts, each token that has occurred before gets what followed it", 3)
def finds(answer, draw: Draw):
    sizes = [draw.number(4, 200) for _ in range(3)]
    return all(behaviour(answer(vocab)) == [vocab, FOUND] for vocab in sizes)


TOKEN, BEFORE, PREDICTION = range(3)


def selected(vocab, query, key, value=TOKEN, output=PREDICTION, scale=30.0):
    """Return matrices that read and write parts of the stream."""
    w_q, w_k, w_v = torch.zeros(3, 3 * vocab + POSITION, vocab)
    w_o = torch.zeros(vocab, 3 * vocab + POSITION)
    w_q[query * vocab : (query + 1) * vocab] = torch.eye(vocab) * scale * vocab**0.5
    w_k[key * vocab : (key + 1) * vocab] = torch.eye(vocab)
    w_v[value * vocab : (value + 1) * vocab] = torch.eye(vocab)
    w_o[:, output * vocab : (output + 1) * vocab] = torch.eye(vocab)
    return w_q, w_k, w_v, w_o


@exercise.mistake
def finds_itself(vocab):
    """Query and key both read the token, so each token finds copies of itself, and not what
    followed them. Which part of the *next* token's stream names the copy?"""
    return selected(vocab, TOKEN, TOKEN)


@exercise.mistake
def exchanged(vocab):
    """Query and key are exchanged: each token looks for the token before it, which head 1 has done
    already. Which part says what a token looks for, and which part says what it followed?"""
    return selected(vocab, BEFORE, TOKEN)


@exercise.mistake
def same_neighbour(vocab):
    """Query and key both read the token before, so each token finds the tokens that had the same
    one before them. The token to be matched is the query's own."""
    return selected(vocab, BEFORE, BEFORE)


@exercise.mistake
def wrong_value(vocab):
    """The right tokens are found, and the head copies what was before them: that is the token that
    you have already. What should the value read?"""
    return selected(vocab, TOKEN, BEFORE, value=BEFORE)


@exercise.mistake
def what_came_before_copies(vocab):
    """Each token finds copies of itself and copies what was *before* them: a head that goes
    backwards. Which key belongs to the token *after* a copy?"""
    return selected(vocab, TOKEN, TOKEN, value=BEFORE)


@exercise.mistake
def written_over_the_token(vocab):
    """What is found is right, and it is added to the part that holds the token itself. Which
    columns of w_o are those of the prediction?"""
    return selected(vocab, TOKEN, BEFORE, output=TOKEN)


@exercise.mistake
def written_twice(vocab):
    """What is found is right, and the head writes into another part of the stream as well as into
    the prediction. Which columns of w_o are those of the prediction?"""
    w_q, w_k, w_v, w_o = selected(vocab, TOKEN, BEFORE)
    return w_q, w_k, w_v, w_o + selected(vocab, TOKEN, BEFORE, output=TOKEN)[3]


@exercise.mistake
def written_over_the_token_before(vocab):
    """What is found is right, and it is added to the part that head 1 has written. Which columns of
    w_o are those of the prediction?"""
    return selected(vocab, TOKEN, BEFORE, output=BEFORE)


def one_scale_for_all(scale):
    def answer(vocab):
        """The right keys have the highest scores, and still share their weight with the others: the
        scores are too small for some vocab, or for some length. What are they divided by, and how
        large must the difference be for hundreds of tokens?"""
        return selected(vocab, TOKEN, BEFORE, scale=scale / vocab**0.5)

    answer.__name__ = f"one_scale_of_{scale}"
    return answer


# enough for three tokens, for a few
for scale in (18, 40):
    exercise.mistake(one_scale_for_all(scale))


@exercise.mistake
def enough_for_short_texts(vocab):
    """In a short text the right keys take all the weight. In a text of 600 tokens there may be one
    right key and 599 others, which together take a part of it: how large must the difference of the
    scores be?"""
    return selected(vocab, TOKEN, BEFORE, scale=2 * math.log(vocab) + 7.5)


@exercise.mistake
def too_soft(vocab):
    """The right keys have the highest scores, and share their weight with the others: the scores
    are too near to each other. How do you make the softmax sharper?"""
    return selected(vocab, TOKEN, BEFORE, scale=1.0)


@exercise.mistake
def negative(vocab):
    """The scores have the wrong sign: each token looks at all tokens but those that followed a
    copy of it."""
    return selected(vocab, TOKEN, BEFORE, scale=-30.0)


@exercise.mistake
def doubled(vocab):
    """The right tokens are found, and come out multiplied: together, w_v and w_o should copy a
    one-hot vector as it is."""
    w_q, w_k, w_v, w_o = selected(vocab, TOKEN, BEFORE)
    return w_q, w_k, w_v, 2 * w_o


@exercise.mistake
def output_turned_over(vocab):
    """w_o has a row for each number of the stream. It is multiplied from the right, as values @
    w_o: how many rows must it have?"""
    w_q, w_k, w_v, w_o = selected(vocab, TOKEN, BEFORE)
    return w_q, w_k, w_v, w_o.mT


@exercise.mistake
def turned_over(vocab):
    """The matrices are transposed. The head computes x @ w, with tokens as the rows of x: how many
    rows has each matrix?"""
    return tuple(w.mT for w in selected(vocab, TOKEN, BEFORE))


@exercise.mistake
def no_output(vocab):
    """Three matrices came, and a head has four: what it has found must be written to a part of the
    stream. Which matrix does that?"""
    return selected(vocab, TOKEN, BEFORE)[:3]


@exercise.alternative
def entry_by_entry(vocab):
    d_model = 3 * vocab + POSITION
    w_q, w_k, w_v = (torch.zeros(d_model, vocab + 2) for _ in range(3))
    w_o = torch.zeros(vocab + 2, d_model)
    for token in range(vocab):
        w_q[token, token] = 20.0
        w_k[vocab + token, token] = 20.0
        w_v[token, token] = 2.0
        w_o[token, 2 * vocab + token] = 0.5
    return w_q, w_k, w_v, w_o


@exercise.alternative
def stacked(vocab):
    same, nothing, rest = torch.eye(vocab), torch.zeros(vocab, vocab), torch.zeros(16, vocab)
    w_v = torch.cat([same, nothing, nothing, rest])
    w_k = torch.cat([nothing, 1000 * same, nothing, rest])
    return w_v, w_k, w_v, torch.cat([nothing, nothing, same, rest.mT], dim=-1)

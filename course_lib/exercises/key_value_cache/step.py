"""A step of the key-value cache: new tokens come in, and look at all that were read before."""

import torch
from torch import Tensor

from course_lib.answers.answer import Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.masks import causal_mask
from course_lib.real_models import KeyValueCache, grouped_query_attention
from course_lib.self_attention import scaled_dot_product_attention

SOFTMAX, NO_SOFTMAX = (Probe("attention_by_softmax"),), (Probe("attention_without_softmax"),)

exercise = Exercise(
    reference=KeyValueCache,
    method="__call__",
    constructor=True,
    lesson="09",
    title="Read each token once",
    minutes=12,
    difficulty=2,
    hints=(
        "A first call brings 4 tokens, a second call 1. How many queries, keys and values does the "
        "attention need in the second call, and which of them has nobody handed you?",
        "What must be left on `self` at the end of a call, so that the next one finds it? And what "
        "is there before the first call?",
        "The axis of tokens is the last but one, with a batch and without. In which order do old "
        "and new have to be, if the queries are the last of the keys?",
        "Lesson 05's `causal_mask(n_q, n_k)` takes two numbers. How many queries does this call "
        "bring, and how many keys are there by now?",
    ),
    clauses={
        "A call brings the new tokens alone": GIVEN,
        "look at every key kept so far": "last_call_alone",
        "each up to itself": "no_mask",
        "a text cut into calls in any way": "however a text is cut",
        "One object serves one layer and one text": "a new object has read nothing",
        "takes n (d_k + d_v) numbers": GIVEN,
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens, one at a time", _text(draw, 2, 1, 1, 3, 3), SOFTMAX, (1, 1)
    yield "five tokens, one at a time", _text(draw, 5, 2, 2, 3, 4), SOFTMAX, (1,) * 5
    yield "a prompt of four, then one at a time", _text(draw, 6, 2, 2, 4, 3), SOFTMAX, (4, 1, 1)
    yield "two calls of more than one token", _text(draw, 5, 3, 3, 2, 4), SOFTMAX, (2, 3)
    yield "one token, then three", _text(draw, 4, 2, 2, 3, 5), SOFTMAX, (1, 3)
    yield "the whole text in one call", _text(draw, 4, 3, 3, 2, 3), SOFTMAX, (4,)
    yield "heads that share their keys", _text(draw, 5, 4, 2, 3, 2), SOFTMAX, (3, 1, 1)
    yield "a batch of texts", _text(draw, 4, 2, 1, 3, 5, 3), SOFTMAX, (2, 1, 1)
    yield "two batch dimensions", _text(draw, 4, 2, 2, 5, 3, 2, 3), SOFTMAX, (1, 2, 1)
    yield "one token", _text(draw, 1, 2, 2, 3, 4), SOFTMAX, (1,)
    yield "as many tokens as each has numbers", _text(draw, 3, 2, 1, 3, 2), SOFTMAX, (2, 1)
    yield "another attention", _text(draw, 5, 2, 2, 3, 4), NO_SOFTMAX, (2, 1, 2)


def _text(draw: Draw, n, heads, groups, d_k, d_v, *batch) -> tuple[Tensor, ...]:
    """Draw the queries, keys and values of a text of n tokens."""
    q, k = draw.normal(*batch, heads, n, d_k), draw.normal(*batch, groups, n, d_k)
    return q, k, draw.normal(*batch, groups, n, d_v)


@exercise.requires("however a text is cut into calls, the result is that of attention without one")
def any_cut(answer, draw: Draw):
    q, k, v = _text(draw, 6, 2, 2, 4, 3, 2)
    whole = scaled_dot_product_attention(q, k, v, causal_mask(6))
    cuts = [(1,) * 6, (6,), (3, 3), (1, 4, 1), (5, 1), (2, 1, 3)]
    found = [answer(q, k, v, build=SOFTMAX, pieces=cut) for cut in cuts]
    return all(torch.allclose(each, whole, atol=1e-5) for each in found)


@exercise.requires("a token changes the results from its own place on, and none before")
def each_token_counts(answer, draw: Draw):
    q, k, v = _text(draw, 5, 2, 2, 3, 4)
    for cut in ((1,) * 5, (2, 3)):
        plain = answer(q, k, v, build=SOFTMAX, pieces=cut)
        for place in range(5):
            here = torch.arange(5).unsqueeze(-1) == place
            again = answer(
                q, torch.where(here, -k, k), torch.where(here, -v, v), build=SOFTMAX, pieces=cut
            )
            moved = (again - plain).abs().amax((0, -1)) > 1e-4
            if moved.tolist() != [i >= place for i in range(5)]:
                return False
    return True


@exercise.requires("a new object has read nothing: one text does not see another")
def texts_apart(answer, draw: Draw):
    first, second = _text(draw, 3, 2, 2, 3, 4), _text(draw, 4, 2, 2, 3, 4)
    found = [
        answer(*text, build=SOFTMAX, pieces=(1,) * text[0].shape[-2])
        for text in (first, second, first)
    ]
    return torch.equal(found[0], found[2])


@exercise.requires("old queries are not asked again: a call of one token makes one row of scores")
def one_row_a_call(answer, draw: Draw):
    q, k, v = _text(draw, 100, 1, 1, 2, 2)
    found = answer(q, k, v, build=SOFTMAX, pieces=(1,) * 100, max_numel=100 * 100 - 1)
    whole = scaled_dot_product_attention(q, k, v, causal_mask(100))
    return torch.allclose(found, whole, atol=1e-5)


@exercise.steps
class InSteps(KeyValueCache):
    """The reference in steps, so that a mistake is one step gone wrong."""

    def __call__(self, q, k, v):
        k, v = self.joined(k, v)
        return self.attention(q, k, v, self.mask(q, k))

    def joined(self, k, v):
        if self.kept:
            k, v = (self.together(*pair) for pair in zip(self.kept, (k, v), strict=True))
        self.kept = k, v
        return k, v

    def together(self, old, new):
        return torch.cat([old, new], dim=-2)

    def mask(self, q, k):
        return causal_mask(q.shape[-2], k.shape[-2])


@exercise.mistake(step="joined")
def nothing_kept(self, k, v):
    """Each call sees its own tokens alone: nothing is left of earlier calls. What has to be on
    `self` when the next one comes?"""
    return k, v


@exercise.mistake(step="joined")
def last_call_alone(self, k, v):
    """Each call sees its own tokens and those of the call before. What was put together, old and
    new, has to be kept, not the new alone."""
    new = k, v
    if self.kept:
        k, v = (self.together(*pair) for pair in zip(self.kept, new, strict=True))
    self.kept = new
    return k, v


@exercise.mistake(step="joined")
def first_call_alone(self, k, v):
    """Each call sees its own tokens and those of the very first call. Is what you keep replaced
    when more comes in?"""
    new = k, v
    if self.kept:
        k, v = (self.together(*pair) for pair in zip(self.kept, new, strict=True))
    else:
        self.kept = new
    return k, v


@exercise.mistake(step="joined", raises=RuntimeError)
def keys_alone(self, k, v):
    """The keys are kept and the values are not, so there are more weights than values. What does
    each weight multiply?"""
    kept, _ = InSteps.joined(self, k, v)
    return kept, v


@exercise.mistake(step="joined", raises=RuntimeError)
def values_alone(self, k, v):
    """The values are kept and the keys are not, so old tokens have no score. Which two tensors does
    attention read of every token?"""
    _, kept = InSteps.joined(self, k, v)
    return k, kept


@exercise.mistake(step="together")
def new_ones_first(self, old, new):
    """New tokens were put before the old ones. A causal mask goes by places, and here the queries
    are the last of the keys: which order does it need?"""
    return torch.cat([new, old], dim=-2)


@exercise.mistake(step="together", raises=RuntimeError)
def added_up(self, old, new):
    """Keys and values were kept, but added up and not put one behind the other. Each token needs a
    row of its own."""
    return old + new


@exercise.mistake(step="together", raises=RuntimeError)
def along_the_heads(self, old, new):
    """Old and new were put together along the heads, so there are more heads and not more tokens.
    Which axis, counted from the end, holds the tokens?"""
    return torch.cat([old, new], dim=-3)


@exercise.mistake(step="together", raises=RuntimeError)
def along_the_columns(self, old, new):
    """Old and new were put together along the columns, so a key is longer than a query. Which axis,
    counted from the end, holds the tokens?"""
    return torch.cat([old, new], dim=-1)


@exercise.mistake(step="together", raises=RuntimeError)
def tokens_on_axis1(self, old, new):
    """Right without a batch: the tokens were looked for on axis 1. There may be batch dimensions
    before, so count from the end."""
    return torch.cat([old, new], dim=1)


@exercise.mistake(step="together", raises=(RuntimeError, IndexError))
def tokens_on_axis2(self, old, new):
    """Right with one batch dimension: the tokens were looked for on axis 2. There may be none, or
    two, so count from the end."""
    return torch.cat([old, new], dim=2)


@exercise.mistake(step="mask")
def no_mask(self, q, k):
    """Right one at a time, but tokens that come in one call see those after them. Which mask has
    the attention been given?"""
    return


@exercise.mistake(step="mask", raises=RuntimeError)
def mask_of_the_new_alone(self, q, k):
    """The mask is square, for the new tokens alone, and there are more keys than that. How many
    columns does it need?"""
    return causal_mask(q.shape[-2])


@exercise.mistake(step="mask")
def mask_from_the_first_key(self, q, k):
    """The mask counts from the first key, so a new token sees only the beginning of the text. The
    queries are the last of the keys: where does the diagonal have to end?"""
    return torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()


@exercise.mistake(step="mask")
def not_itself(self, q, k):
    """The new tokens see all the old ones and, of the new, only those before them. May a token look
    at itself?"""
    n_q, n_k = q.shape[-2], k.shape[-2]
    itself = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q - 1)
    itself[..., 0] = True
    return itself


@exercise.mistake(step="mask")
def mask_inverted(self, q, k):
    """The mask is turned round: True means that a query may look."""
    hidden = ~InSteps.mask(self, q, k)
    hidden[..., 0] = True
    return hidden


@exercise.mistake(step="__init__")
def own_attention(self, attention):
    """`attention` changes nothing: the object attends by a rule of its own, whatever it was given.
    What does the constructor keep, and what do you call in the end?"""
    InSteps.__init__(self, grouped_query_attention)


@exercise.mistake(raises=MemoryError)
class AllRows(InSteps):
    """Results came back for all tokens so far. The caller has those of earlier calls already: which
    queries does this call bring?"""

    queries: tuple = ()

    def __call__(self, q, k, v):
        self.queries = (*self.queries, q)
        return super().__call__(torch.cat(self.queries, dim=-2), k, v)


@exercise.mistake(raises=MemoryError)
class AskedAgain(AllRows):
    """Right results, but the queries of all calls were kept and asked again. The result of an old
    token is known, and nobody needs it a second time: what does a call of one token have to
    compute?"""

    def __call__(self, q, k, v):
        return super().__call__(q, k, v)[..., -q.shape[-2] :, :]


@exercise.mistake(step="joined", raises=RuntimeError)
def exchanged(self, k, v):
    """Keys and values changed places when they were put together. In which order were they kept?"""
    if self.kept:
        old_values, old_keys = self.kept
        k, v = torch.cat([old_keys, k], dim=-2), torch.cat([old_values, v], dim=-2)
    self.kept = k, v
    return k, v


@exercise.mistake
def nothing_returned(self, q, k, v):
    """The object returned nothing. What comes after `return`?"""
    InSteps.__call__(self, q, k, v)


@exercise.alternative
class ListsOfPieces:
    def __init__(self, attention):
        self.attention, self.keys, self.values = attention, [], []

    def __call__(self, q, k, v):
        self.keys.append(k)
        self.values.append(v)
        k, v = torch.cat(self.keys, dim=-2), torch.cat(self.values, dim=-2)
        places = torch.arange(k.shape[-2])
        own = places[-q.shape[-2] :].unsqueeze(-1)
        return self.attention(q, k, v, places <= own)


@exercise.alternative
class RowByRow:
    def __init__(self, attention):
        self.attention, self.k, self.v = attention, None, None

    def __call__(self, q, k, v):
        rows = []
        for i in range(q.shape[-2]):
            here = slice(i, i + 1)
            self.k = k[..., here, :] if self.k is None else torch.cat([self.k, k[..., here, :]], -2)
            self.v = v[..., here, :] if self.v is None else torch.cat([self.v, v[..., here, :]], -2)
            rows.append(self.attention(q[..., here, :], self.k, self.v, None))
        return torch.cat(rows, dim=-2)

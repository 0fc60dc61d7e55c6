"""Nobody reads ahead: the mask that lets a token look back only."""

import torch

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.masks import causal_mask
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=causal_mask,
    lesson="05",
    title="Nobody reads ahead",
    minutes=8,
    difficulty=2,
    hints=(
        "Draw the square for four tokens, queries down and keys across. May the second token look "
        "at the first, at itself, at the third? Do the same for each row: what figure is it?",
        "Now two queries and five keys. The queries are the last two tokens, so which of the five "
        "tokens are they? How many keys may the last of them see?",
        "What does torch offer that keeps one triangle of a matrix? It takes a second number: "
        "which diagonal does that number count from?",
    ),
    clauses={
        "The queries are the last n_q": "queries_come_first",
        "without `n_k` there are as many": "a sentence",
    },
    forbidden=(
        "torch.nn.Transformer.generate_square_subsequent_mask",
        "torch.nn.attention.bias.causal_lower_right",
    ),
)


@exercise.cases
def cases(draw: Draw):
    few, more = draw.number(3, 9), draw.number(10, 99)
    yield "two tokens", (2,)
    yield "a sentence", (few,)
    yield "one token", (1,)
    yield "two queries, more keys", (2, few)
    yield "one query, the newest token", (1, more)
    yield "one key more than queries", (few, few + 1)
    yield "many more keys than queries", (draw.number(3, 200), draw.number(200, 700))
    yield "as many queries as keys", (more, more)


@exercise.edges
def edges(draw: Draw):
    yield "a few queries, thousands of keys", (draw.number(3, 9), draw.number(2100, 2500))


@exercise.requires("each query sees one key more than the query before it, and the last sees all")
def one_more_each(answer, draw: Draw):
    few, n = draw.number(2, 100), draw.number(100, 300)
    last, every = ([i + 1 for i in range(n)][-rows:] for rows in (few, n))
    return answer(few, n).sum(-1).tolist() == last and answer(n).sum(-1).tolist() == every


@exercise.requires("the last tokens see the same, whether those before them are queries or not")
def last_rows(answer, draw: Draw):
    few, n = draw.number(2, 100), draw.number(100, 300)
    every, last = answer(n), answer(few, n)
    return every.any(-1).all() and torch.equal(last, every[-few:])


@exercise.requires("a later token changes nothing for those before it, and something for itself")
def hides_the_future(answer, draw: Draw):
    n = draw.number(10, 500)
    x, word = draw.normal(n, 3), n - 3
    changed = torch.cat([x[:word], -x[word : word + 1], x[word + 1 :]])
    mask = answer(n)
    before, after = (scaled_dot_product_attention(y, y, y, mask) for y in (x, changed))
    rests = (before == after).all(-1)
    return rests[:word].all() and not rests[word:].any()


def triangle(n_q, n_k=None, offset=0):
    """Return the mask with its diagonal moved to the right, and without a refusal."""
    n_k = n_q if n_k is None else n_k
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q + offset)


@exercise.mistake
def strictly_before(n_q, n_k=None):
    """No token may look at itself, so the first one may look nowhere. What is on the diagonal: the
    future, or a token that has been read?"""
    return triangle(n_q, n_k, offset=-1)


@exercise.mistake
def one_word_ahead(n_q, n_k=None):
    """Each token sees one token of its future: the diagonal is one too far to the right. Which keys
    may the first of two tokens look at?"""
    return triangle(n_q, n_k, offset=1)


@exercise.mistake
def inverted(n_q, n_k=None):
    """The mask is read the wrong way round: here True means that the query may look at this key,
    not that the key is hidden."""
    return ~causal_mask(n_q, n_k)


@exercise.mistake
def looking_forward(n_q, n_k=None):
    """The tokens look forward, not back: this is the upper triangle, with the diagonal. Which axis
    has the queries, the rows or the columns?"""
    return torch.ones(n_q, n_k or n_q, dtype=torch.bool).triu()


@exercise.mistake
def queries_come_first(n_q, n_k=None):
    """Right where there are as many keys as queries. Where there are more, the queries were taken
    to be the first tokens; they are the last ones. Which keys may the last query look at?"""
    return torch.ones(n_q, n_k or n_q, dtype=torch.bool).tril()


@exercise.mistake
def moved_to_the_left(n_q, n_k=None):
    """Where there are more keys than queries, the diagonal moved to the wrong side. The last query
    may look at every key: into which corner must the diagonal run?"""
    return torch.ones(n_q, n_k or n_q, dtype=torch.bool).tril(n_q - (n_k or n_q))


@exercise.mistake
def keys_down_queries_across(n_q, n_k=None):
    """Queries and keys have changed places: the mask has a row for each key. Scores have a row for
    each query."""
    return causal_mask(n_q, n_k).mT


@exercise.mistake
def nobody_hidden(n_q, n_k=None):
    """Nobody is hidden from anybody: every entry is True. Which keys has a token not read yet?"""
    return torch.ones(n_q, n_k or n_q, dtype=torch.bool)


@exercise.mistake
def of_floats(n_q, n_k=None):
    """The mask is made of the numbers 1.0 and 0.0, and should be of True and False. `torch.ones`
    makes floats unless it is told a `dtype`."""
    return causal_mask(n_q, n_k).float()


@exercise.mistake
def of_whole_numbers(n_q, n_k=None):
    """The mask is made of whole numbers, and should be of True and False: `~` would turn 1 into -2.
    Which `dtype` knows True and False only?"""
    return causal_mask(n_q, n_k).long()


@exercise.mistake
def to_be_added(n_q, n_k=None):
    """This is to be added to the scores: 0 where a query may look, minus infinity where not. The
    masks of this course say True and False, and the softmax does the rest."""
    return torch.zeros(n_q, n_k or n_q).masked_fill(~causal_mask(n_q, n_k), -torch.inf)


@exercise.mistake
def as_lists(n_q, n_k=None):
    """The rows came back as Python's own lists. What makes a tensor of them?"""
    return causal_mask(n_q, n_k).tolist()


stock.ignored(
    exercise,
    "n_k",
    "Right where there are as many keys as queries. Where there are more, this mask has no column "
    "for some of them: `n_k` changes nothing.",
)


@exercise.alternative
def comparing_places(n_q, n_k=None):
    if n_k is None:
        n_k = n_q
    queries = torch.arange(n_k)[n_k - n_q :]
    return queries.unsqueeze(-1) >= torch.arange(n_k)


@exercise.alternative
def entry_by_entry(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return torch.tensor([[j <= i + n_k - n_q for j in range(n_k)] for i in range(n_q)])

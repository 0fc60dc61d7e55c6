"""Several heads look at once, and one matrix mixes what they found."""

import torch
from einops import rearrange, reduce
from torch.nn import functional as F

from course_lib.answers.answer import Probe
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads

exercise = Exercise(
    reference=MultiHeadAttention,
    method="forward",
    lesson="06",
    title="Several heads at once",
    minutes=15,
    difficulty=3,
    hints=(
        "The layer keeps four `nn.Linear` under `self`, and each is called like a function. Which "
        "three meet the words first, and which of query, key and value does each of them meet?",
        "You have cut tokens into heads before, and put heads side by side. What happens between "
        "the two, and which of its inputs need to be cut?",
        "The rule of attention treats heads as it treats a batch. Line up the shape of a mask "
        "(batch, query, key) with scores (batch, head, query, key), from the right: which axis of "
        "the mask meets the heads? Where must an axis of size 1 go in?",
    ),
    clauses={
        "is how each head attends": "another rule",
        "The mask has no head axis": "mask_meets_heads",
        "where query may be 1": "one row of mask for each sentence",
    },
    forbidden=FUSED_ATTENTION,
)


@exercise.cases
def cases(draw: Draw):
    x = draw.normal(2, 4)
    yield "two tokens, two heads", (x, x, x), (4, 2)
    yield "one head", (draw.normal(2, 3), draw.normal(4, 3), draw.normal(4, 3)), (3, 1)
    x = draw.normal(4, 6)
    yield "a causal mask", (x, x, x, torch.ones(4, 4).bool().tril()), (6, 2)
    nowhere = torch.tensor([[True, False, True], [False, False, False]])
    yield "a word that may look nowhere", (*_words(draw, 2, 3, 4), nowhere), (4, 2)
    yield "a batch of sentences", _words(draw, 2, 5, 6, 3), (6, 3)
    yield "one mask for the whole batch", (*_words(draw, 4, 5, 6, 3), draw.mask(4, 5)), (6, 2)
    padding = torch.tensor([[[True, True, True, False]], [[True, False, False, False]]])
    yield "one row of mask for each sentence", (*_words(draw, 3, 4, 6, 2), padding), (6, 3)
    yield (
        "as many heads as sentences, a mask for each sentence",
        (*_words(draw, 4, 5, 6, 2), draw.mask(2, 4, 5)),
        (6, 2),
    )
    yield (
        "two batch dimensions",
        (*_words(draw, 2, 3, 4, 3, 2), draw.mask(3, 2, 2, 3)),
        (4, 2),
    )
    yield "one query", _words(draw, 1, 4, 6), (6, 2)
    yield "one key", _words(draw, 2, 1, 4), (4, 2)
    yield "as many queries as each has numbers", _words(draw, 4, 5, 4), (4, 2)
    yield "another rule", _words(draw, 3, 4, 6), (6, 2, Probe("average_of_values"))


@exercise.edges
def edges(draw: Draw):
    yield (
        "one mask for the whole batch, with an axis for it",
        (*_words(draw, 3, 4, 6, 2), draw.mask(1, 3, 4)),
        (6, 3),
    )
    yield (
        "another rule, and a mask",
        (*_words(draw, 3, 4, 6), draw.mask(3, 4)),
        (6, 2, Probe("attention_without_softmax")),
    )


def _words(draw: Draw, n_q, n_k, d_model, *batch):
    """Draw queries, keys and values, all of them different."""
    query = draw.normal(*batch, n_q, d_model)
    return query, draw.normal(*batch, n_k, d_model), draw.normal(*batch, n_k, d_model)


@exercise.requires("permuting keys and values together changes nothing, permuting keys alone does")
def a_set_of_pairs(answer, draw: Draw):
    query, key, value = _words(draw, 3, 4, 6)
    order = torch.tensor([2, 0, 3, 1])
    plain = answer(query, key, value, build=(6, 3))
    together = answer(query, key[order], value[order], build=(6, 3))
    alone = answer(query, key[order], value, build=(6, 3))
    return torch.allclose(together, plain, atol=1e-5) and not torch.allclose(
        alone, plain, atol=1e-4
    )


@exercise.requires(
    "a word that nobody may look at is seen by no head, and otherwise by some", points=2
)
def hidden_from_all_heads(answer, draw: Draw):
    query, key, value = _words(draw, 2, 4, 6, 3)
    others = key.clone(), value.clone()
    for words in others:
        words[:, 1] = draw.normal(3, 6)
    mask = torch.tensor([True, False, True, True]).expand(3, 1, 4)
    hidden = [answer(query, *pair, mask, build=(6, 3)) for pair in ((key, value), others)]
    shown = [answer(query, *pair, build=(6, 3)) for pair in ((key, value), others)]
    return torch.allclose(*hidden, atol=1e-6) and not torch.allclose(*shown, atol=1e-4)


@exercise.steps
class InSteps(MultiHeadAttention):
    """The layer in steps, so that a mistake is one step gone wrong."""

    def project(self, query, key, value):
        return self.w_q(query), self.w_k(key), self.w_v(value)

    def split(self, x):
        return split_heads(x, self.heads)

    def hold(self, mask):
        return rearrange(mask, "... query key -> ... 1 query key")

    def attend(self, q, k, v, mask):
        return self.rule(q, k, v, mask)

    def merge(self, found):
        return merge_heads(found)

    def mix(self, found):
        return self.w_o(found)

    def forward(self, query, key, value, mask=None):
        q, k, v = map(self.split, self.project(query, key, value))
        mask = None if mask is None else self.hold(mask)
        return self.mix(self.merge(self.attend(q, k, v, mask)))


@exercise.mistake(step="attend")
def unscaled(self, q, k, v, mask):
    """Behaves as if the scores were not divided by sqrt(d_k): the weights are sharper than they
    should be."""
    return self.rule(q * q.shape[-1] ** 0.5, k, v, mask)


@exercise.mistake(step="attend")
def scaled_by_model(self, q, k, v, mask):
    """The scores were divided by sqrt(d_model), the size of a word. A head's dot products have
    fewer terms: how many?"""
    return self.rule(q / self.heads**0.5, k, v, mask)


@exercise.mistake
class ReshapedAtOnce(InSteps):
    """The words were mixed between heads: `reshape` straight to (heads, n, d_k) deals the numbers
    out as they lie in memory. Which function have you built that cuts each word first?"""

    def split(self, x):
        return x.reshape(*x.shape[:-2], self.heads, x.shape[-2], -1)


@exercise.mistake
class ReshapedTwice(ReshapedAtOnce):
    """The words were mixed between heads, on the way in and on the way out: `reshape` deals the
    numbers out as they lie in memory. Cut each word first, then move the axis of heads."""

    def merge(self, found):
        return found.reshape(*found.shape[:-3], found.shape[-2], -1)


@exercise.mistake(step="merge")
def merged_at_once(self, found):
    """What the heads found was joined as it lies in memory, one head's words after the other's.
    Which function have you built that moves the heads beside the columns first?"""
    return found.reshape(*found.shape[:-3], found.shape[-2], -1)


@exercise.mistake(step="split", raises=ValueError)
def one_batch_dimension(self, x):
    """The sizes were unpacked as if there were always one batch dimension. There may be none, or
    two: `split_heads` takes any number of them."""
    batch, n, d_model = x.shape
    return x.view(batch, n, self.heads, d_model // self.heads).transpose(1, 2)


@exercise.mistake
class DealtInTurn(InSteps):
    """Each head got every h-th column. The heads' matrices are side by side in w_q, w_k and w_v:
    head 1 has the first d_k columns, and the next head those after them."""

    def split(self, x):
        return rearrange(x, "... n (d_k heads) -> ... heads n d_k", heads=self.heads)

    def merge(self, found):
        return rearrange(found, "... heads n d_k -> ... n (d_k heads)")


@exercise.mistake(step="merge", raises=RuntimeError)
def averaged(self, found):
    """The heads were added up or averaged, so what is left has the size of one head, and the output
    matrix expects d_model. How else can h results become one row?"""
    return reduce(found, "... heads n d_k -> ... n d_k", "mean")


@exercise.mistake(step="merge", raises=RuntimeError)
def not_merged(self, found):
    """The output matrix met the part of each head by itself, which has d_k columns and not d_model.
    What has to become one row before it can be mixed?"""
    return found


@exercise.mistake
class WholeWords(InSteps):
    """There is one head here, as wide as a whole word: nothing was cut. With one head it is right,
    with more it is a different layer."""

    def split(self, x):
        return x

    def hold(self, mask):
        return mask

    def merge(self, found):
        return found


@exercise.mistake(step="mix")
def unmixed(self, found):
    """The heads were joined, and that was all: the output matrix was never used. Without it, what
    one head found never meets what another found."""
    return found


@exercise.mistake(step="project")
def unprojected(self, query, key, value):
    """The words were never projected: all heads compare the same words, each by its own columns.
    What are w_q, w_k and w_v for?"""
    return query, key, value


@exercise.mistake(step="hold", raises=RuntimeError)
def mask_meets_heads(self, mask):
    """The batch axis of the mask met the heads: sentence 1's mask fell on head 1. The heads need an
    axis of size 1 in the mask, right before query and key; at the very front it changes nothing."""
    return mask


@exercise.mistake(step="hold", raises=RuntimeError)
def heads_at_one(self, mask):
    """The axis for the heads went in at place 1, counted from the front. That fits a mask with one
    batch dimension; for the others, count from the back."""
    return mask.unsqueeze(1)


@exercise.mistake(step="attend")
def roles_exchanged(self, q, k, v, mask):
    """Keys and values have changed places when they were handed to the rule of attention: the
    queries were compared with the values, and the keys averaged."""
    return self.rule(q, v, k, mask)


@exercise.mistake(step="attend", raises=RuntimeError)
def keys_ask(self, q, k, v, mask):
    """Queries and keys have changed places: each word is looked at where it should look. That shows
    at once when there are not as many queries as keys."""
    return self.rule(k, q, v, mask)


@exercise.mistake(step="project")
def words_exchanged(self, query, key, value):
    """Keys and values have changed places before they were projected: w_k met the values, and w_v
    the keys."""
    return self.w_q(query), self.w_k(value), self.w_v(key)


@exercise.mistake(step="project", raises=RuntimeError)
def query_for_all(self, query, key, value):
    """The queries' words served as keys and values as well. That is self-attention: here, who is
    looked at may be somebody else."""
    return self.w_q(query), self.w_k(query), self.w_v(query)


@exercise.mistake(step="project")
def key_for_value(self, query, key, value):
    """The keys' words served as values as well, and `value` was never used. What is found by its
    key need not be the key."""
    return self.w_q(query), self.w_k(key), self.w_v(key)


@exercise.mistake(step="project")
def one_matrix(self, query, key, value):
    """One matrix made queries, keys and values. Which two were never used?"""
    return self.w_q(query), self.w_q(key), self.w_q(value)


@exercise.mistake
class BiasesDropped(InSteps):
    """The biases are missing. `nn.Linear` keeps one beside its matrix: what does it do when it is
    called, rather than its `weight` taken out?"""

    def project(self, query, key, value):
        words = zip((query, key, value), (self.w_q, self.w_k, self.w_v), strict=True)
        return (x @ linear.weight.mT for x, linear in words)

    def mix(self, found):
        return found @ self.w_o.weight.mT


@exercise.mistake
class WeightsTurnedOver(InSteps):
    """The matrices were met the wrong way round, and without their biases. `nn.Linear` keeps its
    matrix turned over: what does it do when it is called?"""

    def project(self, query, key, value):
        words = zip((query, key, value), (self.w_q, self.w_k, self.w_v), strict=True)
        return (x @ linear.weight for x, linear in words)

    def mix(self, found):
        return found @ self.w_o.weight


@exercise.mistake(step="attend")
def over_heads(self, q, k, v, mask):
    """For each pair of words, the weights of the heads sum to one: the heads compete. Along which
    axis does a query share its attention out?"""
    return F.softmax(_masked_scores(q, k, mask), dim=-3) @ v


def _masked_scores(q, k, mask, hidden=float("-inf")):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores if mask is None else scores.masked_fill(~mask, hidden)


@exercise.mistake(step="attend")
def scaled_by_heads(self, q, k, v, mask):
    """The scores were divided by the root of the number of heads. A head's dot products have d_k
    terms: which size of the head's queries is that?"""
    return self.rule(q * (q.shape[-1] / self.heads) ** 0.5, k, v, mask)


@exercise.mistake(step="merge")
def merged_in_turn(self, found):
    """The heads were split in one order and merged in another: the columns of the heads take turns
    in the result, and the output matrix expects each head's d_k columns side by side."""
    return rearrange(found, "... heads n d_k -> ... n (d_k heads)")


@exercise.mistake(step="merge")
def heads_reversed(self, found):
    """The heads came back in the reverse order, the last one first. The output matrix expects them
    in the order in which they were split."""
    return InSteps.merge(self, found.flip(-3))


@exercise.mistake
def residual(self, query, key, value, mask=None):
    """The queries' words were added to what the heads found: this is a residual connection, which
    belongs to the block around the layer."""
    return query + InSteps.forward(self, query, key, value, mask)


@exercise.mistake(step="project")
def matrices_exchanged(self, query, key, value):
    """Two matrices have changed places: w_v made the keys, and w_k the values."""
    return self.w_q(query), self.w_v(key), self.w_k(value)


@exercise.mistake(step="split")
def first_head_for_all(self, x):
    """Every head got the columns of the first one, so all heads found the same. In a loop over
    heads, which columns are those of the next head?"""
    return InSteps.split(self, x)[..., :1, :, :].expand(*x.shape[:-2], self.heads, -1, -1)


stock.ignored(exercise)
stock.mask_inverted(exercise)
stock.mask_as_condition(exercise)
stock.over_queries(exercise)
stock.nowhere_is_nan(exercise)
stock.nowhere_is_everywhere(exercise)


@exercise.mistake
def weights_from_the_left(self, query, key, value, mask=None):
    """The words met `weight` as it is kept: x @ weight. A Linear keeps its matrix turned over, and
    computes x @ weight.T + bias. Why not call the layer itself?"""
    q, k, v = (
        split_heads(x @ w.weight + w.bias, self.heads)
        for x, w in ((query, self.w_q), (key, self.w_k), (value, self.w_v))
    )
    mask = None if mask is None else mask.unsqueeze(-3)
    return self.w_o(merge_heads(self.rule(q, k, v, mask)))


@exercise.alternative
class HeadByHead(MultiHeadAttention):
    def forward(self, query, key, value, mask=None):
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        d_k = q.shape[-1] // self.heads
        found = []
        for first in range(0, q.shape[-1], d_k):
            own = slice(first, first + d_k)
            found.append(self.rule(q[..., own], k[..., own], v[..., own], mask))
        return self.w_o(torch.cat(found, dim=-1))


@exercise.alternative
class AMatrixForEachHead(MultiHeadAttention):
    def forward(self, query, key, value, mask=None):
        def roles(x, linear):
            weight = linear.weight.unflatten(0, (self.heads, -1))
            bias = linear.bias.unflatten(0, (self.heads, 1, -1))
            return torch.einsum("...nd,hed->...hne", x, weight) + bias

        if mask is not None:
            mask = mask.unsqueeze(-3)
        q, k, v = roles(query, self.w_q), roles(key, self.w_k), roles(value, self.w_v)
        found = self.rule(q, k, v, mask)
        # mixing what is laid side by side is adding what each head contributes
        output = self.w_o.weight.unflatten(1, (self.heads, -1))
        return torch.einsum("...hne,dhe->...nd", found, output) + self.w_o.bias

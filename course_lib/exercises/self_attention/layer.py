"""One head of self-attention, with its three matrices."""

import torch
from torch.nn import functional as F

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.self_attention import SelfAttention, project, scaled_dot_product_attention

exercise = Exercise(
    reference=SelfAttention,
    method="forward",
    lesson="03",
    title="A layer that attends",
    minutes=5,
    difficulty=2,
    hints=(
        "The layer keeps three matrices under `self`. What is each of them called there, and which "
        "words does it meet?",
        "You have built both halves already: one gives roles, the other one attends. What does "
        "the second need that the first returns, and in which order?",
    ),
    forbidden=FUSED_ATTENTION,
)


@exercise.cases
def cases(draw: Draw):
    yield "two words", (draw.normal(2, 3),), (3, 2, 4)
    yield (
        "five words, a causal mask",
        (draw.normal(5, 4), torch.ones(5, 5).bool().tril()),
        (4, 3, 2),
    )
    yield "three sizes the same", (draw.normal(4, 3),), (3, 3, 3)
    nowhere = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    yield "a word that may look nowhere", (draw.normal(3, 4), nowhere), (4, 2, 5)
    yield "a batch of sentences", (draw.normal(2, 4, 3),), (3, 5, 2)
    yield "a mask for each sentence", (draw.normal(2, 4, 5), draw.mask(2, 4, 4)), (5, 2, 3)
    padding = torch.tensor([[[True, True, True, False]], [[True, False, False, False]]])
    yield "one row of mask for each sentence", (draw.normal(2, 4, 3), padding), (3, 2, 5)
    yield "one word", (draw.normal(1, 3),), (3, 2, 4)
    yield "as many words as each has numbers", (draw.normal(4, 4),), (4, 3, 2)
    yield "two batch dimensions", (draw.normal(3, 2, 4, 5),), (5, 2, 3)


@exercise.requires("permuting the words permutes the outputs")
def equivariant(answer, draw: Draw):
    x, order = draw.normal(4, 3), torch.tensor([2, 0, 3, 1])
    plain = answer(x, build=(3, 2, 5))
    return plain.abs().max() > 0 and torch.allclose(
        answer(x[order], build=(3, 2, 5)), plain[order], atol=1e-5
    )


@exercise.requires("a word that nobody may look at changes nobody but itself")
def hidden_word(answer, draw: Draw):
    x, mask = draw.normal(4, 3), torch.tensor([True, False, True, True]).expand(4, 4)
    plain, seen = answer(x, mask, build=(3, 2, 5)), [0, 2, 3]
    x[1] = draw.normal(3)
    again = answer(x, mask, build=(3, 2, 5))
    return plain.abs().max() > 0 and torch.allclose(again[seen], plain[seen], atol=1e-6)


@exercise.mistake
def unscaled(self, x, mask=None):
    """Behaves as if the scores were not divided by sqrt(d_k): the weights are sharper than they
    should be."""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q * q.shape[-1] ** 0.5, k, v, mask)


@exercise.mistake
def swapped(self, x, mask=None):
    """Queries and keys have changed places: the scores are transposed, so each word gives attention
    where it should receive it."""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(k, q, v, mask)


@exercise.mistake
def scaled_by_model(self, x, mask=None):
    """The scores were divided by sqrt(d_model), the size of a word. It is the size of a query, d_k,
    that makes dot products grow."""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q * (q.shape[-1] / x.shape[-1]) ** 0.5, k, v, mask)


@exercise.mistake
def words_as_values(self, x, mask=None):
    """The values were not projected: the words themselves were averaged, so the result has the size
    d_model and not d_v."""
    q, k, _ = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q, k, x, mask)


@exercise.mistake
def keys_as_values(self, x, mask=None):
    """The keys served as values as well: the result has the size d_k, and w_v was never used."""
    q, k, _ = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q, k, k, mask)


@exercise.mistake(raises=RuntimeError)
def words_as_keys(self, x, mask=None):
    """The words themselves served as keys: w_k was never used, and a query of size d_k cannot meet
    a word of size d_model."""
    q, _, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q, x, v, mask)


@exercise.mistake
def roles_alone(self, x, mask=None):
    """The three roles were returned, and nobody has looked at anybody yet. What turns q, k and v
    into one result?"""
    return project(x, self.w_q, self.w_k, self.w_v)


@exercise.mistake
def scaled_by_values(self, x, mask=None):
    """The scores were divided by sqrt(d_v), the size of a value. Values play no part in a score:
    which size do its two vectors have?"""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q * (q.shape[-1] / v.shape[-1]) ** 0.5, k, v, mask)


@exercise.mistake
def scaled_by_words(self, x, mask=None):
    """The scores were divided by the root of the number of words. A score is one dot product: how
    many terms does it sum?"""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q * (q.shape[-1] / x.shape[-2]) ** 0.5, k, v, mask)


@exercise.mistake
def scaled_by_len(self, x, mask=None):
    """The scores were divided by the root of `len(x)`, the first axis: the number of words, or of
    sentences in a batch. Which axis holds the numbers that a dot product sums?"""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q * (q.shape[-1] / len(x)) ** 0.5, k, v, mask)


@exercise.mistake(raises=RuntimeError)
def keys_and_values_exchanged(self, x, mask=None):
    """Keys and values have changed places: the queries were compared with the values, and the keys
    were averaged. Which of the two says where to look?"""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q, v, k, mask)


@exercise.mistake(raises=RuntimeError)
def matrices_turned_over(self, x, mask=None):
    """The three matrices were turned over. Their rows are as many as a word has numbers: does `x @
    w` need another turn?"""
    q, k, v = project(x, self.w_q.mT, self.w_k.mT, self.w_v.mT)
    return scaled_dot_product_attention(q, k, v, mask)


stock.mask_inverted(exercise)
stock.ignored(exercise)
stock.over_queries(exercise)
stock.over_axis(exercise, 1)


@exercise.mistake
def scaled_twice(self, x, mask=None):
    """The scores were divided by sqrt(d_k) twice, so the weights are too much alike. What does
    `scaled_dot_product_attention` do already?"""
    q, k, v = project(x, self.w_q, self.w_k, self.w_v)
    return scaled_dot_product_attention(q / q.shape[-1] ** 0.5, k, v, mask)


@exercise.mistake
def residual(self, x, mask=None):
    """Where the sizes allow it, the words were added to what they found. A block does that, in
    lesson 06; the layer returns what was found."""
    found = SelfAttention.forward(self, x, mask)
    return found + x if found.shape == x.shape else found


@exercise.alternative
class Spelled(SelfAttention):
    def forward(self, x, mask=None):
        scores = (x @ self.w_q) @ (x @ self.w_k).mT / self.w_q.shape[1] ** 0.5
        if mask is None:
            return F.softmax(scores, dim=-1) @ (x @ self.w_v)
        weights = F.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1).masked_fill(~mask, 0.0)
        return weights @ (x @ self.w_v)


@exercise.alternative
class OneScoreMatrix(SelfAttention):
    def forward(self, x, mask=None):
        between = self.w_q @ self.w_k.transpose(0, 1) / self.w_k.shape[1] ** 0.5
        scores = torch.einsum("...id,de,...je->...ij", x, between, x)
        if mask is not None:
            scores = torch.where(mask, scores, -torch.inf)
        exponentials = torch.exp(scores - scores.amax(-1, keepdim=True).clamp(min=-1e30))
        weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)
        return torch.einsum("...ij,...jd,de->...ie", weights, x, self.w_v)

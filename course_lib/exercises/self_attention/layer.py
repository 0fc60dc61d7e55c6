"""One head of self-attention, with its three matrices."""

import torch
from torch.nn import functional as F

from course_lib.exercises.exercise import Draw, Exercise
from course_lib.self_attention import SelfAttention, project, scaled_dot_product_attention

exercise = Exercise(
    reference=SelfAttention,
    method="forward",
    lesson="03",
    title="A layer that attends",
    minutes=10,
    difficulty=2,
    hints=(
        "The layer keeps three matrices. Which words does each of them meet?",
        "You have built both halves already: one gives roles, the other one attends. What does "
        "the second need that the first returns, and in which order?",
    ),
    forbidden=(
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.functional.multi_head_attention_forward",
        "torch.nn.MultiheadAttention",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "two words", (draw.normal(2, 3),), (3, 2, 4)
    yield (
        "five words, a causal mask",
        (draw.normal(5, 4), torch.ones(5, 5).bool().tril()),
        (4, 3, 2),
    )
    yield "a batch of sentences", (draw.normal(2, 4, 3),), (3, 5, 2)
    yield "a mask for each sentence", (draw.normal(2, 4, 5), draw.mask(2, 4, 4)), (5, 2, 3)


@exercise.property("permuting the words permutes the outputs")
def equivariant(answer, draw: Draw):
    x, order = draw.normal(4, 3), torch.tensor([2, 0, 3, 1])
    plain = answer(x, build=(3, 2, 5))
    return plain.abs().max() > 0 and torch.allclose(
        answer(x[order], build=(3, 2, 5)), plain[order], atol=1e-5
    )


@exercise.mistake(
    "Behaves as if the scores were not divided by sqrt(d_k): the weights are sharper than they "
    "should be."
)
class Unscaled(SelfAttention):
    def forward(self, x, mask=None):
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q * q.shape[-1] ** 0.5, k, v, mask)


@exercise.mistake(
    "Queries and keys have changed places: the scores are transposed, so each word gives "
    "attention where it should receive it."
)
class Swapped(SelfAttention):
    def forward(self, x, mask=None):
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(k, q, v, mask)


@exercise.mistake(
    "The scores were divided by sqrt(d_model), the size of a word. It is the size of a query, "
    "d_k, that makes dot products grow."
)
class ScaledByModel(SelfAttention):
    def forward(self, x, mask=None):
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q * (q.shape[-1] / x.shape[-1]) ** 0.5, k, v, mask)


@exercise.mistake("The mask changes nothing: it is accepted and never handed on.")
class MaskIgnored(SelfAttention):
    def forward(self, x, mask=None):
        return super().forward(x)


@exercise.mistake(
    "The values were not projected: the words themselves were averaged, so the result has the "
    "size d_model and not d_v."
)
class WordsAsValues(SelfAttention):
    def forward(self, x, mask=None):
        q, k, _ = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, x, mask)


@exercise.alternative
class Spelled(SelfAttention):
    def forward(self, x, mask=None):
        scores = (x @ self.w_q) @ (x @ self.w_k).mT / self.w_q.shape[1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return F.softmax(scores, dim=-1) @ (x @ self.w_v)

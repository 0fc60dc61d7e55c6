"""The smallest block that can be stacked: positions, attention, a mask, and a nonlinearity."""

import torch

from course_lib.answers.answer import Named, Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.feed_forward import MinimalBlock
from course_lib.masks import causal_mask

exercise = Exercise(
    reference=MinimalBlock,
    method="forward",
    lesson="05_stack",
    title="Four necessities in one block",
    minutes=12,
    difficulty=2,
    hints=(
        "Attention sees a set of tokens. What must each of them carry with it, before it goes in, "
        "so that their order counts?",
        "The block keeps its parts under `self`: one of them makes positions, one attends. Which "
        "arguments does each take, and which mask have you built in this lesson?",
        "The last part works on each token by itself. What should it be given: the tokens, or "
        "what they have seen?",
    ),
    clauses={
        "neither residual connections nor norms": "residual_around_both",
        "The positions are added inside": "positions_after_attention",
        "a stack of blocks adds them": GIVEN,
        "make its parts": "other positions",
    },
    forbidden=FUSED_ATTENTION,
    # on one device, and added to x, positions are of its type anyway
    equivalent=("self.positions(n, d_model).to(x) -> self.positions(n, d_model)",),
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2, 4),), (4, 6)
    yield "five tokens", (draw.normal(5, 2),), (2, 8)
    yield "as many tokens as a token has numbers", (draw.normal(4, 4),), (4, 3)
    yield "one token", (draw.normal(1, 6),), (6, 5)
    yield "a batch of sentences", (draw.normal(3, 5, 4),), (4, 7)
    yield "two batch dimensions", (draw.normal(2, 3, 4, 2),), (2, 5)
    yield "other positions", (draw.normal(3, 4),), (4, 5, Probe("counted_positions"))
    other = Named("attention", Probe("sum_of_seen"))
    yield "another attention", (draw.normal(3, 4),), (4, 5, other)


@exercise.requires("a later token changes nothing for those before it, and something for itself")
def never_looks_ahead(answer, draw: Draw):
    x, word = draw.normal(6, 4), 3
    changed = torch.cat([x[:word], -x[word : word + 1], x[word + 1 :]])
    before, after = (answer(y, build=(4, 9)) for y in (x, changed))
    moved = (after - before).abs().amax(-1) > 1e-5
    return not moved[:word].any() and moved[word]


@exercise.requires("exchanging two earlier tokens changes what the last token returns")
def order_counts(answer, draw: Draw):
    # of one sequence alone, the last token may look at itself, or no hidden unit be active
    x = draw.normal(20, 4, 6)
    plain, exchanged = (answer(y, build=(6, 8))[:, -1] for y in (x, x[:, [1, 0, 2, 3]]))
    return not torch.allclose(plain, exchanged, atol=1e-5)


@exercise.steps
class Parts(MinimalBlock):
    """The steps of the block, one by one, for those who take them otherwise."""

    def with_positions(self, x):
        return x + self.positions(*x.shape[-2:]).to(x)

    def attend(self, x):
        return self.attention(x, causal_mask(x.shape[-2]).to(x.device))


@exercise.mistake
def no_positions(self, x):
    """No token knows its position: exchanging two earlier tokens changes nothing for the last one.
    What is to be added to the tokens before they look at each other?"""
    return self.feed_forward(self.attend(x))


@exercise.mistake
def no_mask(self, x):
    """Every token sees the whole sentence, its future too. Which mask hides it, and has the
    attention been given one?"""
    return self.feed_forward(self.attention(self.with_positions(x)))


@exercise.mistake
def no_positions_no_mask(self, x):
    """Two of the four necessities are missing: no token knows its position, and every token sees
    the future. What must be added to the tokens, and what must the attention be given?"""
    return self.feed_forward(self.attention(x))


@exercise.mistake
def no_feed_forward(self, x):
    """The block is only attention: nothing is bent, and a stack of such blocks gains little. What
    comes after the tokens have seen each other?"""
    return self.attend(self.with_positions(x))


@exercise.mistake
def no_relu(self, x):
    """The two last matrices act as one, for nothing is cut off between them. Which of the four
    necessities is missing?"""
    seen = self.attend(self.with_positions(x))
    ff = self.feed_forward
    return (seen @ ff.w_1 + ff.b_1) @ ff.w_2 + ff.b_2


@exercise.mistake
def no_attention(self, x):
    """The tokens did not look at each other at all: each one went through the network alone. What
    happens between the positions and the feed-forward network?"""
    return self.feed_forward(self.with_positions(x))


@exercise.mistake
def positions_after_attention(self, x):
    """The positions were added to what the attention returned, when the looking was over: nobody
    could tell a token's place while choosing whom to look at. When is it to be told?"""
    return self.feed_forward(self.with_positions(self.attend(x)))


@exercise.mistake
def positions_at_the_end(self, x):
    """The positions were added at the very end, when everything was seen and thought. When must a
    token know its position?"""
    return self.with_positions(self.feed_forward(self.attend(x)))


@exercise.mistake
def words_forgotten(self, x):
    """The positions alone went in: `x` plays no part, so every sentence of this length gives the
    same result. Is it p, or x + p, that attends?"""
    return self.feed_forward(self.attend(self.with_positions(x) - x))


@exercise.mistake
def positions_multiplied(self, x):
    """The tokens were multiplied by their positions. p_0 is made of zeros and ones, so half of the
    first token is gone: which sign is between x and p?"""
    return self.feed_forward(self.attend(x * self.positions(*x.shape[-2:]).to(x)))


@exercise.mistake
def residual_around_attention(self, x):
    """The tokens were added to what their attention saw, which is a residual connection. It is a
    good habit, and lesson 07 will say why; does the formula here have it?"""
    x = self.with_positions(x)
    return self.feed_forward(x + self.attend(x))


@exercise.mistake
def residual_around_feed_forward(self, x):
    """What was seen was added to what the network made of it, which is a residual connection. It is
    a good habit, and lesson 07 will say why; does the formula here have it?"""
    seen = self.attend(self.with_positions(x))
    return seen + self.feed_forward(seen)


@exercise.mistake
def residual_around_both(self, x):
    """Attention and network are each wrapped in a residual connection. It is a good habit, and
    lesson 07 will say why; does the formula here have any?"""
    x = self.with_positions(x)
    x = x + self.attend(x)
    return x + self.feed_forward(x)


@exercise.mistake
def residual_around_all(self, x):
    """The tokens were added to the block's result, which is a residual connection. It is a good
    habit, and lesson 07 will say why; does the formula here have it?"""
    return x + self.feed_forward(self.attend(self.with_positions(x)))


@exercise.mistake
def thinking_first(self, x):
    """The tokens thought before they looked. Read the formula from the inside: which of the two
    does x + p meet first?"""
    return self.attend(self.feed_forward(self.with_positions(x)))


@exercise.mistake
def seen_thrown_away(self, x):
    """The network was given the tokens as they came, without their positions and without what they
    have seen: was the result of the attention thrown away?"""
    self.attend(self.with_positions(x))
    return self.feed_forward(x)


@exercise.mistake
def looks_forward(self, x):
    """The mask is upside down: tokens see their future, and not their past. In this course True
    means that a query may look."""
    mask = causal_mask(x.shape[-2]).to(x.device)
    return self.feed_forward(self.attention(self.with_positions(x), mask.mT))


@exercise.mistake
def mask_inverted(self, x):
    """The mask has hidden the past and shown the future: it says True where a token is to be
    hidden, and here True means that a query may look."""
    mask = causal_mask(x.shape[-2]).to(x.device)
    return self.feed_forward(self.attention(self.with_positions(x), ~mask))


@exercise.mistake
def strict_mask(self, x):
    """No token may look at itself, so the first one sees nothing at all, and all its results are
    the same. What is on the diagonal: the future, or a token that has been read?"""
    mask = causal_mask(x.shape[-2]).to(x.device).tril(-1)
    return self.feed_forward(self.attention(self.with_positions(x), mask))


@exercise.mistake(raises=RuntimeError)
def words_on_the_first_axis(self, x):
    """Right for one sentence, not for a batch: the tokens were counted on the first axis, where a
    batch has its sentences. Which axis from the end are the tokens on?"""
    positions = self.positions(len(x), x.shape[-1]).to(x)
    return self.feed_forward(self.attention(x + positions, causal_mask(len(x)).to(x.device)))


@exercise.mistake(raises=ValueError)
def unpacks_three_sizes(self, x):
    """Right for a batch of sentences, but one sentence alone has no batch axis to unpack. How can
    you ask for the last two sizes only?"""
    _, n, d_model = x.shape
    x = x + self.positions(n, d_model).to(x)
    return self.feed_forward(self.attend(x))


@exercise.mistake(raises=ValueError)
def unpacks_two_sizes(self, x):
    """Right for one sentence, but a batch has more than two sizes to unpack. How can you ask for
    the last two only?"""
    n, d_model = x.shape
    x = x + self.positions(n, d_model).to(x)
    return self.feed_forward(self.attend(x))


@exercise.alternative
class Spelled(MinimalBlock):
    def forward(self, x):
        n, d_model = x.shape[-2:]
        x = self.positions(n, d_model).to(x) + x
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        seen, ff = self.attention(x, ~future), self.feed_forward
        hidden = (seen @ ff.w_1 + ff.b_1).clamp(min=0)
        return hidden @ ff.w_2 + ff.b_2


@exercise.alternative
class WordAfterWord(MinimalBlock):
    def forward(self, x):
        x = x + self.positions(x.size(-2), x.size(-1)).to(x)
        last = [self.attention(x[..., : i + 1, :])[..., -1, :] for i in range(x.size(-2))]
        return self.feed_forward(torch.stack(last, dim=-2))

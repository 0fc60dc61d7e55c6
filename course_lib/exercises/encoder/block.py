"""One block of the encoder: the words look at each other, then each thinks."""

import torch
from torch.nn import functional as F

from course_lib.add_norm import PreNorm
from course_lib.checking.exercise import Draw, Exercise
from course_lib.encoder import EncoderBlock

exercise = Exercise(
    reference=EncoderBlock,
    method="forward",
    lesson="08",
    title="Attend, then think",
    minutes=10,
    difficulty=1,
    hints=(
        "Draw the block as two boxes with one arrow between them. What goes into the first, and "
        "what comes along the arrow into the second?",
        "Look at what `__init__` puts around each layer. Who adds, and who normalises: you, or "
        "the two parts under `self`?",
        "`AsSelfAttention` and `FeedForward` have a `forward` each. Which of the two asks for a "
        "mask, and in which place, after x?",
    ),
    forbidden=(
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.MultiheadAttention",
        "torch.nn.TransformerEncoderLayer",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "two words", (draw.normal(2, 4),), (4, 2, 6)
    yield (
        "five words, a causal mask",
        (draw.normal(5, 6), torch.ones(5, 5).bool().tril()),
        (6, 3, 4),
    )
    yield "norm before the layers", (draw.normal(3, 4), draw.mask(3, 3)), (4, 1, 7, "pre")
    nowhere = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])
    yield "a word that may look nowhere", (draw.normal(3, 6), nowhere), (6, 2, 5)
    padding = torch.tensor([[[True, True, True, False]], [[True, False, False, False]]])
    yield "one row of mask for each sentence", (draw.normal(2, 4, 6), padding), (6, 3, 8, "pre")
    yield "a mask for each sentence", (draw.normal(3, 4, 6), draw.mask(3, 4, 4)), (6, 3, 5)
    yield "two batch dimensions", (draw.normal(3, 2, 5, 4),), (4, 2, 3)
    yield "one word", (draw.normal(1, 4),), (4, 2, 6)
    yield "as many words as each has numbers", (draw.normal(4, 4),), (4, 2, 5)


@exercise.property("permuting the words permutes the outputs, and each word sees all the others")
def equivariant(answer, draw: Draw):
    x, order = draw.normal(4, 6), torch.tensor([2, 0, 3, 1])
    for norm in ("post", "pre"):
        build = (6, 3, 5, norm)
        plain, permuted = answer(x, build=build), answer(x[order], build=build)
        moved = answer(torch.cat([x[:3], -x[3:]]), build=build)
        seen = (moved - plain)[:3].abs().amax(-1) > 1e-6
        if not (torch.allclose(permuted, plain[order], atol=1e-5) and seen.all()):
            return False
    return True


@exercise.property("a word that nobody may look at changes nobody but itself, and itself it does")
def hidden_word(answer, draw: Draw):
    x, mask = draw.normal(4, 6), torch.tensor([True, False, True, True]).expand(4, 4)
    others = torch.cat([x[:1], draw.normal(1, 6), x[2:]])
    for norm in ("post", "pre"):
        plain, again = (answer(words, mask, build=(6, 2, 5, norm)) for words in (x, others))
        moved = (again - plain).abs().amax(-1) > 1e-5
        if moved.tolist() != [False, True, False, False]:
            return False
    return True


@exercise.mistake(
    "The mask changes nothing: it came in, and was not handed on. Which of the two layers looks at "
    "other words, and so has to know whom it may see?"
)
class MaskIgnored(EncoderBlock):
    def forward(self, x, mask=None):
        return super().forward(x)


@exercise.mistake(
    "The mask is turned round on its way: what came in as True, may look, arrived as False."
)
class MaskInverted(EncoderBlock):
    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else ~mask)


@exercise.mistake(
    "`if mask` asks a whole tensor for one truth value. What do you want to know: what the mask "
    "says, or whether there is one? The layer takes None as well.",
    raises=RuntimeError,
)
class MaskAsCondition(EncoderBlock):
    def forward(self, x, mask=None):
        return super().forward(x, mask if mask else None)


@exercise.mistake(
    "The mask went in by its name, but what wraps the layer hands on places only: see "
    "`forward(self, x, *args)` in `PostNorm`. How else can an argument be handed over?",
    raises=TypeError,
)
class MaskByName(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask=mask))


@exercise.mistake(
    "The self-attention was given two arguments too many. `AsSelfAttention` makes query, key and "
    "value of x itself: what does its own `forward` ask for?",
    raises=TypeError,
)
class ThreeRoles(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, x, x, mask))


@exercise.mistake(
    "The feed-forward network was given something beside the words, such as the mask. Does it look "
    "at any word but its own?",
    raises=TypeError,
)
class MaskForTheNetwork(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask), mask)


@exercise.mistake(
    "The words thought before they had looked. In which order does the block name its two layers?"
)
class ThinkingFirst(EncoderBlock):
    def forward(self, x, mask=None):
        return self.attention(self.feed_forward(x), mask)


@exercise.mistake(
    "The network was given the words as they came, and what the attention returned was thrown "
    "away. What should each word think about?"
)
class SeenThrownAway(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward(x)


@exercise.mistake(
    "The words looked at each other, and that was all. Which of the block's two parts was never "
    "called?"
)
class NoFeedForward(EncoderBlock):
    def forward(self, x, mask=None):
        return self.attention(x, mask)


@exercise.mistake(
    "The words looked twice before they thought. How often should each of the two parts be called?"
)
class LookingTwice(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(self.attention(x, mask), mask))


@exercise.mistake(
    "The layers were taken out of their wrapping: what they found was neither added nor "
    "normalised. What do you call when you call `self.attention` itself?"
)
class NeitherAddedNorNormalised(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward.sublayer(self.attention.sublayer(x, mask))


@exercise.mistake(
    "The layers were taken out of their wrapping, and their results added by hand: nobody has "
    "normalised. What do you call when you call `self.attention` itself?"
)
class AddedByHand(EncoderBlock):
    def forward(self, x, mask=None):
        x = x + self.attention.sublayer(x, mask)
        return x + self.feed_forward.sublayer(x)


@exercise.mistake(
    "The words were added to what the parts returned, and the parts had added them already. Who is "
    "in charge of the residual connection here?"
)
class AddedTwice(EncoderBlock):
    def forward(self, x, mask=None):
        x = x + self.attention(x, mask)
        return x + self.feed_forward(x)


@exercise.mistake(
    "The words were added to what the attention returned, and it had added them already. Look into "
    "`__init__`: what is the attention wrapped in?"
)
class AddedTwiceAroundAttention(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward(x + self.attention(x, mask))


@exercise.mistake(
    "What was seen was added to what the network returned, and that had added it already. Look "
    "into `__init__`: what is the network wrapped in?"
)
class AddedTwiceAroundTheNetwork(EncoderBlock):
    def forward(self, x, mask=None):
        seen = self.attention(x, mask)
        return seen + self.feed_forward(seen)


@exercise.mistake(
    "The words were added once more to what the whole block had made of them. Both parts have a "
    "residual connection of their own; does the block need a third?"
)
class AddedAroundTheBlock(EncoderBlock):
    def forward(self, x, mask=None):
        return x + super().forward(x, mask)


@exercise.mistake(
    "Both parts read x, side by side, and their results were added. There are models built so, but "
    "here one comes after the other: what should the second one read?"
)
class SideBySide(EncoderBlock):
    def forward(self, x, mask=None):
        return self.attention(x, mask) + self.feed_forward(x)


@exercise.mistake(
    "The right results, but no gradient reaches the attention: `.detach()`, `.data` and `no_grad` "
    "cut it off, and what gets no gradient cannot learn where to look."
)
class AttentionDetached(EncoderBlock):
    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask).detach())


@exercise.alternative
class InALoop(EncoderBlock):
    def forward(self, x, mask=None):
        for part, more in ((self.attention, (mask,)), (self.feed_forward, ())):
            x = part(x, *more)
        return x


@exercise.alternative
class Spelled(EncoderBlock):
    def forward(self, x, mask=None):
        def norm(part, x):
            return F.layer_norm(x, x.shape[-1:], part.gain, part.bias)

        parts = self.attention, self.feed_forward
        attention, network = self.attention.sublayer.attention, self.feed_forward.sublayer
        layers = (
            lambda x: attention(x, x, x, mask),
            lambda x: F.relu(x @ network.w_1 + network.b_1) @ network.w_2 + network.b_2,
        )
        for part, layer in zip(parts, layers, strict=True):
            pre = isinstance(part, PreNorm)
            x = x + layer(norm(part, x)) if pre else norm(part, x + layer(x))
        return x

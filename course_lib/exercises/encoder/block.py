"""One block of the encoder, constructor and all: self-attention, then feed-forward."""

import torch
from torch import nn

from course_lib.add_norm import PostNorm, PreNorm, layer_norm
from course_lib.answers.answer import Misfit, Named, Probe
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import TRANSFORMER
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention
from course_lib.transformer import EncoderBlock, add_and_norm

exercise = Exercise(
    reference=EncoderBlock,
    method="forward",
    constructor=True,
    lesson="08",
    title="A block from an empty class",
    minutes=12,
    difficulty=2,
    hints=(
        "Draw the block as two boxes with one arrow between them. What goes into the first, and "
        "what comes along the arrow into the second?",
        "`add_and_norm(norm)` gives you a class, `PostNorm` or `PreNorm`. Read its constructor: "
        "which three things does it want, and which of them must you make first?",
        "`attention(d_model, heads)` makes a layer that wants query, key and value. Which of the "
        "given classes makes all three of the same x, and so has to go around it?",
        "Who adds, and who normalises: your `forward`, or the two parts under `self`? Which of the "
        "two asks for a mask, and in which place, after x?",
    ),
    clauses={
        "make the block's parts": "own_attention",
        "`norm_layer(x, gain, bias)` normalises": "own_norm",
        "`norm` says where": "always_post",
        "by these names": "NoModule",
        "is as in `MultiHeadAttention`": "one row of mask for each sentence",
    },
    forbidden=TRANSFORMER,
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
    yield (
        "another attention",
        (draw.normal(3, 6), draw.mask(3, 3)),
        (6, 4, 5, Named("attention", Probe("attention_to_all_alike"))),
    )
    yield (
        "another network, norm before the layers",
        (draw.normal(3, 4),),
        (4, 2, 7, "pre", Named("feed_forward", Probe("network_of_one_matrix"))),
    )
    for norm in ("post", "pre"):
        build = (6, 2, 5, norm, Named("norm_layer", Probe("stretch_and_shift")))
        yield f"another norm_layer, {norm}-norm", (draw.normal(3, 6),), build


@exercise.requires("permuting the words permutes the outputs, and each word sees all the others")
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


@exercise.requires("a word that nobody may look at changes nobody but itself, and itself it does")
def hidden_word(answer, draw: Draw):
    x, mask = draw.normal(4, 6), torch.tensor([True, False, True, True]).expand(4, 4)
    others = torch.cat([x[:1], draw.normal(1, 6), x[2:]])
    for norm in ("post", "pre"):
        plain, again = (answer(words, mask, build=(6, 2, 5, norm)) for words in (x, others))
        moved = (again - plain).abs().amax(-1) > 1e-5
        if moved.tolist() != [False, True, False, False]:
            return False
    return True


@exercise.steps
class Made(EncoderBlock):
    """The constructor in steps, so that a mistake is one step gone wrong."""

    def __init__(
        self,
        d_model,
        heads,
        d_ff,
        norm="post",
        *,
        attention=MultiHeadAttention,
        feed_forward=FeedForward,
        norm_layer=layer_norm,
    ):
        nn.Module.__init__(self)
        add = self.way(norm)
        look = AsSelfAttention(self.look(attention, d_model, heads))
        think = self.think(feed_forward, d_model, d_ff)
        self.attention = add(look, d_model, *self.norm_layer(norm_layer))
        self.feed_forward = add(think, d_model, *self.norm_layer(norm_layer))

    def way(self, norm):
        return add_and_norm(norm)

    def look(self, attention, d_model, heads):
        return attention(d_model, heads)

    def think(self, feed_forward, d_model, d_ff):
        return feed_forward(d_model, d_ff)

    def norm_layer(self, norm_layer):
        return (norm_layer,)


@exercise.mistake(step="way")
def always_post(self, norm):
    """`norm` changes nothing: the norm comes after the sum in every block. What does
    `add_and_norm` give you, if you ask it with `norm`?"""
    return PostNorm


@exercise.mistake(step="way")
def always_pre(self, norm):
    """`norm` changes nothing: the norm comes before the layer in every block. What does
    `add_and_norm` give you, if you ask it with `norm`?"""
    return PreNorm


@exercise.mistake(step="way")
def orders_exchanged(self, norm):
    """The two orders have changed places: "post" normalises before the layer, and "pre" after the
    sum. Where was the norm in 2017?"""
    return {"post": PreNorm, "pre": PostNorm}[norm]


@exercise.mistake(step="look")
def one_head(self, attention, d_model, heads):
    """`heads` changes nothing: there is one head, whatever is asked for. To whom does your
    constructor hand the number of heads?"""
    return attention(d_model, 1)


@exercise.mistake(step="think", raises=Misfit)
def hidden_as_wide_as_a_word(self, feed_forward, d_model, d_ff):
    """The hidden layer of the network is not d_ff wide. Which two sizes does `feed_forward`
    want?"""
    return feed_forward(d_model, d_model)


@exercise.mistake(step="think", raises=Misfit)
def sizes_exchanged(self, feed_forward, d_model, d_ff):
    """d_model and d_ff have changed places in the network. Which size comes in, and which is the
    hidden one?"""
    return feed_forward(d_ff, d_model)


@exercise.mistake(step="look", raises=Misfit)
def own_attention(self, attention, d_model, heads):
    """`attention` changes nothing: the block makes a `MultiHeadAttention`, whatever it was given. A
    real model will hand over its own: what do you call to make the layer?"""
    return MultiHeadAttention(d_model, heads if d_model % heads == 0 else 1)


@exercise.mistake(step="think", raises=Misfit)
def own_network(self, feed_forward, d_model, d_ff):
    """`feed_forward` changes nothing: the block makes a `FeedForward`, whatever it was given. A
    real model will hand over its own: what do you call to make the network?"""
    return FeedForward(d_model, d_ff)


@exercise.mistake(step="norm_layer")
def own_norm(self, norm_layer):
    """`norm_layer` changes nothing: `PostNorm` and `PreNorm` take it as their third argument, and
    normalise by `layer_norm` where they get none."""
    return ()


@exercise.mistake(raises=AttributeError)
class NoModule(EncoderBlock):
    """`super().__init__()` is missing, so torch has nowhere to put the layers. It has to come
    before the first of them."""

    def __init__(self, d_model, heads, d_ff, norm="post", **parts):
        add = add_and_norm(norm)
        self.attention = add(AsSelfAttention(MultiHeadAttention(d_model, 1)), d_model)


@exercise.mistake(raises=Misfit)
class NotWrapped(EncoderBlock):
    """The attention is not inside `AsSelfAttention`, so its parts have other names than those by
    which weights are copied. Who makes query, key and value of the same x?"""

    def __init__(self, d_model, heads, d_ff, norm="post", **parts):
        super().__init__(d_model, heads, d_ff, norm, **parts)
        self.attention.sublayer = self.attention.sublayer.attention


@exercise.mistake
def one_norm(self, x, mask=None):
    """One norm serves both layers: the gain and the bias of the first are those of the second. How
    many norms does the figure have?"""
    first, second = self.attention, self.feed_forward
    second.gain, second.bias = first.gain, first.bias
    return Made.forward(self, x, mask)


stock.ignored(exercise)
stock.mask_inverted(exercise)
stock.mask_as_condition(exercise)


@exercise.mistake(raises=TypeError)
def mask_by_name(self, x, mask=None):
    """The mask went in by its name, but what wraps the layer hands on places only: see
    `forward(self, x, *args)` in `PostNorm`. How else can an argument be handed over?"""
    return self.feed_forward(self.attention(x, mask=mask))


@exercise.mistake(raises=TypeError)
def three_roles(self, x, mask=None):
    """The self-attention was given two arguments too many. `AsSelfAttention` makes query, key and
    value of x itself: what does its own `forward` ask for?"""
    return self.feed_forward(self.attention(x, x, x, mask))


@exercise.mistake(raises=TypeError)
def mask_for_the_network(self, x, mask=None):
    """The feed-forward network was given something beside the words, such as the mask. Does it look
    at any word but its own?"""
    return self.feed_forward(self.attention(x, mask), mask)


@exercise.mistake
def thinking_first(self, x, mask=None):
    """The words thought before they had looked. In which order does the block name its two
    layers?"""
    return self.attention(self.feed_forward(x), mask)


@exercise.mistake
def seen_thrown_away(self, x, mask=None):
    """The network was given the words as they came, and what the attention returned was thrown
    away. What should each word think about?"""
    return self.feed_forward(x)


@exercise.mistake
def no_feed_forward(self, x, mask=None):
    """The words looked at each other, and that was all. Which of the block's two parts was never
    called?"""
    return self.attention(x, mask)


@exercise.mistake
def looking_twice(self, x, mask=None):
    """The words looked twice before they thought. How often should each of the two parts be
    called?"""
    return self.feed_forward(self.attention(self.attention(x, mask), mask))


@exercise.mistake
def neither_added_nor_normalised(self, x, mask=None):
    """The layers were taken out of their wrapping: what they found was neither added nor
    normalised. What do you call when you call `self.attention` itself?"""
    return self.feed_forward.sublayer(self.attention.sublayer(x, mask))


@exercise.mistake
def added_by_hand(self, x, mask=None):
    """The layers were taken out of their wrapping, and their results added by hand: nobody has
    normalised. What do you call when you call `self.attention` itself?"""
    x = x + self.attention.sublayer(x, mask)
    return x + self.feed_forward.sublayer(x)


@exercise.mistake
def added_twice(self, x, mask=None):
    """The words were added to what the parts returned, and the parts had added them already. Who is
    in charge of the residual connection here?"""
    x = x + self.attention(x, mask)
    return x + self.feed_forward(x)


@exercise.mistake
def added_twice_around_attention(self, x, mask=None):
    """The words were added to what the attention returned, and it had added them already. Look into
    `__init__`: what is the attention wrapped in?"""
    return self.feed_forward(x + self.attention(x, mask))


@exercise.mistake
def added_twice_around_the_network(self, x, mask=None):
    """What was seen was added to what the network returned, and that had added it already. Look
    into `__init__`: what is the network wrapped in?"""
    seen = self.attention(x, mask)
    return seen + self.feed_forward(seen)


@exercise.mistake
class AddedAroundTheBlock(EncoderBlock):
    """The words were added once more to what the whole block had made of them. Both parts have a
    residual connection of their own; does the block need a third?"""

    def forward(self, x, mask=None):
        return x + super().forward(x, mask)


@exercise.mistake
def side_by_side(self, x, mask=None):
    """Both parts read x, side by side, and their results were added. There are models built so, but
    here one comes after the other: what should the second one read?"""
    return self.attention(x, mask) + self.feed_forward(x)


@exercise.mistake
def thinking_twice(self, x, mask=None):
    """The feed-forward sublayer was applied twice. How often does a token pass through it?"""
    return self.feed_forward(self.feed_forward(self.attention(x, mask)))


@exercise.mistake
def normalised_again(self, x, mask=None):
    """The result was normalised once more. Both sublayers have their norms already: `add` puts one
    around each."""
    x = self.feed_forward(self.attention(x, mask))
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


@exercise.alternative
class Spelled(EncoderBlock):
    def forward(self, x, mask=None):
        def norm(part, x):
            return part.norm_layer(x, part.gain, part.bias)

        parts = self.attention, self.feed_forward
        attention, network = self.attention.sublayer.attention, self.feed_forward.sublayer
        layers = (lambda x: attention(x, x, x, mask), network)
        for part, layer in zip(parts, layers, strict=True):
            pre = isinstance(part, PreNorm)
            x = x + layer(norm(part, x)) if pre else norm(part, x + layer(x))
        return x


@exercise.alternative
class WrittenOut(EncoderBlock):
    def __init__(self, d_model, heads, d_ff, norm="post", **parts):
        nn.Module.__init__(self)
        around = PostNorm if norm == "post" else PreNorm
        norm_layer = parts.get("norm_layer", layer_norm)
        attention = parts.get("attention", MultiHeadAttention)(d_model, heads)
        network = parts.get("feed_forward", FeedForward)(d_model, d_ff)
        self.attention = around(AsSelfAttention(attention), d_model, norm_layer=norm_layer)
        self.feed_forward = around(network, d_model, norm_layer=norm_layer)

"""One block of the decoder, constructor and all: three sublayers, two of which look."""

import copy

import torch
from torch import nn

from course_lib.add_norm import PostNorm, PreNorm, layer_norm
from course_lib.answers.answer import Misfit, Named, Probe
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import TRANSFORMER
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention
from course_lib.transformer import DecoderBlock, add_and_norm

exercise = Exercise(
    reference=DecoderBlock,
    method="forward",
    constructor=True,
    lesson="08",
    title="The decoder's block",
    minutes=8,
    difficulty=2,
    hints=(
        "The encoder's block has two parts, this one has three. Which of the three is new, and "
        "between which two does it stand in the figure?",
        "Your encoder block's constructor makes two of the three layers. Which given class makes "
        "keys and values from a memory, and how many attentions do two layers that look need?",
        "Each layer reads what the one before it has returned. Which layer needs the memory beside "
        "that, and which one needs nothing?",
        "There are two masks. One has a column for each target word, the other one for each source "
        "word: whom does each layer look at?",
    ),
    clauses={
        "makes both attentions": "another attention",
        "`norm_layer(x, gain, bias)` normalises": "another norm_layer",
        "by these names": "NoModule",
        "Masks are as in": "one row of mask for each sentence",
        "for the tokens among themselves": "masks_exchanged",
        "causal where they are to be written": "causal_always",
        "which of the encoder's states may be seen": "memory_mask_ignored",
    },
    forbidden=TRANSFORMER,
)


@exercise.cases
def cases(draw: Draw):
    yield "two words, three source words", (draw.normal(2, 4), draw.normal(3, 4)), (4, 2, 6)
    yield (
        "a causal mask",
        (draw.normal(4, 6), draw.normal(3, 6), causal_mask(4)),
        (6, 3, 5),
    )
    yield (
        "a mask for the memory alone, norm before the layers",
        (draw.normal(3, 4), draw.normal(5, 4), None, draw.mask(3, 5)),
        (4, 1, 7, "pre"),
    )
    yield (
        "as many words as source words, two masks",
        (draw.normal(4, 6), draw.normal(4, 6), causal_mask(4), draw.mask(4, 4)),
        (6, 2, 3),
    )
    nowhere = torch.tensor([[True, False, True], [False, False, False]])
    yield (
        "a word that may look nowhere",
        (draw.normal(2, 4), draw.normal(3, 4), nowhere[:, :2], nowhere),
        (4, 2, 5),
    )
    padding = torch.tensor([[[True, True, True, False]], [[True, False, False, False]]])
    yield (
        "one row of mask for each sentence",
        (draw.normal(2, 3, 6), draw.normal(2, 4, 6), causal_mask(3), padding),
        (6, 3, 8, "pre"),
    )
    yield "two batch dimensions", (draw.normal(3, 2, 5, 4), draw.normal(3, 2, 4, 4)), (4, 2, 3)
    yield "one word", (draw.normal(1, 4), draw.normal(3, 4)), (4, 2, 6)
    yield "one source word", (draw.normal(3, 4), draw.normal(1, 4)), (4, 2, 6)
    yield "as many words as each has numbers", (draw.normal(4, 4), draw.normal(3, 4)), (4, 2, 5)
    parts = {
        "attention": Probe("attention_to_all_alike"),
        "feed_forward": Probe("network_of_one_matrix"),
        "norm_layer": Probe("stretch_and_shift"),
    }
    for name, part in parts.items():
        yield (
            f"another {name}",
            (draw.normal(3, 6), draw.normal(3, 6), causal_mask(3), draw.mask(3, 3)),
            (6, 2, 5, Named(name, part)),
        )


@exercise.edges
def edges(draw: Draw):
    yield (
        "as many words as source words, a mask for the words alone",
        (draw.normal(3, 4), draw.normal(3, 4), causal_mask(3)),
        (4, 2, 5),
    )
    yield (
        "another norm_layer, norm before the layers",
        (draw.normal(3, 6), draw.normal(4, 6), causal_mask(3)),
        (6, 2, 5, "pre", Named("norm_layer", Probe("stretch_and_shift"))),
    )


@exercise.requires("under a causal mask no word sees its future, and each sees its past")
def never_looks_ahead(answer, draw: Draw):
    x, memory, mask = draw.normal(5, 6), draw.normal(3, 6), causal_mask(5)
    others = torch.cat([x[:2], -x[2:3], x[3:]])
    plain, again = (answer(words, memory, mask, build=(6, 3, 4)) for words in (x, others))
    moved = (again - plain).abs().amax(-1) > 1e-6
    return moved.tolist() == [False, False, True, True, True]


@exercise.requires("a source word that is hidden changes nothing, one that is shown all the words")
def hidden_source_word(answer, draw: Draw):
    x, memory = draw.normal(3, 6), draw.normal(4, 6)
    others = torch.cat([memory[:1], -memory[1:2], memory[2:]])
    mask, build = torch.tensor([[True, False, True, True]]), (6, 2, 5, "pre")
    hidden = [answer(x, words, None, mask, build=build) for words in (memory, others)]
    shown = [answer(x, words, build=build) for words in (memory, others)]
    moved = [((b - a).abs().amax(-1) > 1e-5).tolist() for a, b in (hidden, shown)]
    return moved == [[False] * 3, [True] * 3]


@exercise.steps
class InSteps(DecoderBlock):
    """The block in steps, so that a mistake is one step gone wrong."""

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
        itself, across = self.two(attention, d_model, heads)
        network = self.network(feed_forward, d_model, d_ff)
        norm_layers = self.norm_layer(norm_layer)
        self.attention = add(AsSelfAttention(itself), d_model, *norm_layers)
        self.cross_attention = add(AsCrossAttention(across), d_model, *norm_layers)
        self.feed_forward = add(network, d_model, *norm_layers)

    def way(self, norm):
        return add_and_norm(norm)

    def two(self, attention, d_model, heads):
        return attention(d_model, heads), attention(d_model, heads)

    def network(self, feed_forward, d_model, d_ff):
        return feed_forward(d_model, d_ff)

    def norm_layer(self, norm_layer):
        return (norm_layer,)

    def look_back(self, x, mask):
        return self.attention(x, mask)

    def look_across(self, x, memory, mask):
        return self.cross_attention(x, memory, mask)

    def think(self, x):
        return self.feed_forward(x)

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.look_back(x, mask)
        return self.think(self.look_across(x, memory, memory_mask))


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


@exercise.mistake(step="two", raises=Misfit)
def one_attention_for_both(self, attention, d_model, heads):
    """One attention serves both layers, so the two share their matrices. How many attentions does
    the figure of the block have?"""
    both = attention(d_model, heads)
    return both, both


@exercise.mistake(step="two")
def one_head(self, attention, d_model, heads):
    """`heads` changes nothing: there is one head, whatever is asked for. To whom does your
    constructor hand the number of heads?"""
    return attention(d_model, 1), attention(d_model, 1)


@exercise.mistake(step="two", raises=Misfit)
def own_attention(self, attention, d_model, heads):
    """`attention` changes nothing: the block makes a `MultiHeadAttention`, whatever it was given. A
    real model will hand over its own: what do you call to make the layer?"""
    heads = heads if d_model % heads == 0 else 1
    return MultiHeadAttention(d_model, heads), MultiHeadAttention(d_model, heads)


@exercise.mistake(step="network", raises=Misfit)
def own_network(self, feed_forward, d_model, d_ff):
    """`feed_forward` changes nothing: the block makes a `FeedForward`, whatever it was given. A
    real model will hand over its own: what do you call to make the network?"""
    return FeedForward(d_model, d_ff)


@exercise.mistake(step="network", raises=Misfit)
def sizes_exchanged(self, feed_forward, d_model, d_ff):
    """d_model and d_ff have changed places in the network. Which size comes in, and which is the
    hidden one?"""
    return feed_forward(d_ff, d_model)


@exercise.mistake(step="norm_layer")
def own_norm(self, norm_layer):
    """`norm_layer` changes nothing: `PostNorm` and `PreNorm` take it as their third argument, and
    normalise by `layer_norm` where they get none."""
    return ()


@exercise.mistake(step="two")
def copied(self, attention, d_model, heads):
    """The second attention is a copy of the first, so both begin with the same weights. Who makes
    an attention here, and how many are wanted?"""
    itself = attention(d_model, heads)
    return itself, copy.deepcopy(itself)


@exercise.mistake(raises=AttributeError)
class NoModule(DecoderBlock):
    """`super().__init__()` is missing, so torch has nowhere to put the layers. It has to come
    before the first of them."""

    def __init__(self, d_model, heads, d_ff, norm="post", **parts):
        add = add_and_norm(norm)
        self.attention = add(AsSelfAttention(MultiHeadAttention(d_model, 1)), d_model)


@exercise.mistake(raises=Misfit)
class NotWrapped(DecoderBlock):
    """The second attention is not inside `AsCrossAttention`, so its parts have other names than
    those by which weights are copied. Who makes keys and values of one memory?"""

    def __init__(self, d_model, heads, d_ff, norm="post", **parts):
        super().__init__(d_model, heads, d_ff, norm, **parts)
        self.cross_attention.sublayer = self.cross_attention.sublayer.attention


@exercise.mistake(raises=TypeError)
class TwiceSelfAttention(DecoderBlock):
    """The second attention was made by `AsSelfAttention`, which has no place for a memory. Which
    given class makes its keys and values from one?"""

    def __init__(self, d_model, heads, d_ff, norm="post", **parts):
        super().__init__(d_model, heads, d_ff, norm, **parts)
        across = self.cross_attention.sublayer.attention
        self.cross_attention.sublayer = AsSelfAttention(across)


@exercise.mistake
def cross_first(self, x, memory, mask=None, memory_mask=None):
    """The words looked at the source before they had looked at each other. In the figure, which
    attention is below the other?"""
    x = self.look_across(x, memory, memory_mask)
    return self.think(self.look_back(x, mask))


@exercise.mistake
def thinking_between(self, x, memory, mask=None, memory_mask=None):
    """The words thought between the two attentions. In which order does the block name its three
    layers?"""
    x = self.think(self.look_back(x, mask))
    return self.look_across(x, memory, memory_mask)


@exercise.mistake
def thinking_first(self, x, memory, mask=None, memory_mask=None):
    """The words thought before they had seen anything. Which layer comes last?"""
    x = self.look_back(self.think(x), mask)
    return self.look_across(x, memory, memory_mask)


@exercise.mistake(step="look_across")
def no_cross_attention(self, x, memory, mask):
    """The encoder was never asked: the memory came in, and no layer was given it. Which of the
    three parts under `self` was not called, or lost its result?"""
    return x


@exercise.mistake(step="look_back")
def no_self_attention(self, x, mask):
    """The words looked at the source, and not at each other. Which of the three parts under `self`
    was not called, or lost its result?"""
    return x


@exercise.mistake(step="think")
def no_feed_forward(self, x):
    """The words looked twice, and did not think. Which of the three parts under `self` was not
    called, or lost its result?"""
    return x


@exercise.mistake
def seen_thrown_away(self, x, memory, mask=None, memory_mask=None):
    """The network alone was asked, and what both attentions returned was thrown away. What should
    each layer read?"""
    return self.think(x)


@exercise.mistake(raises=ValueError)
def masks_exchanged(self, x, memory, mask=None, memory_mask=None):
    """The two masks have changed places. Each has a column for every word that may be looked at:
    the target's own, or the source's?"""
    return InSteps.forward(self, x, memory, memory_mask, mask)


@exercise.mistake(raises=ValueError)
def memory_mask_for_both(self, x, memory, mask=None, memory_mask=None):
    """Both attentions were given `memory_mask`. The words among themselves have a mask of their
    own: what would they see without it?"""
    return InSteps.forward(self, x, memory, memory_mask, memory_mask)


@exercise.mistake(raises=ValueError)
def mask_for_both(self, x, memory, mask=None, memory_mask=None):
    """Both attentions were given `mask`. It says which target words may be seen: which mask speaks
    of the source's?"""
    return InSteps.forward(self, x, memory, mask, mask)


stock.ignored(exercise)
stock.ignored(exercise, "memory_mask")


@exercise.mistake
def masks_ignored(self, x, memory, mask=None, memory_mask=None):
    """Both masks came in, and neither was handed on. Which two layers look at other words?"""
    return InSteps.forward(self, x, memory)


stock.mask_inverted(exercise)
stock.mask_inverted(exercise, "memory_mask")


@exercise.mistake(step="look_back")
def causal_always(self, x, mask):
    """A causal mask was made where none was asked for: without `mask` all words see each other. Who
    decides whether the future is hidden, the block or whoever calls it?"""
    if mask is None:
        mask = causal_mask(x.shape[-2])
    return self.attention(x, mask)


@exercise.mistake(step="look_across", raises=ValueError)
def memory_asks(self, x, memory, mask):
    """The queries came from the memory, and the words were looked at: the encoder asked the
    decoder. Which of the two does `cross_attention` take first, see `AsCrossAttention`?"""
    return self.cross_attention(memory, x, mask)


@exercise.mistake(step="look_across", raises=ValueError)
def words_as_memory(self, x, memory, mask):
    """In the cross-attention too, the words looked at themselves: it was given x as its memory. Who
    has read the source?"""
    return self.cross_attention(x, x, mask)


@exercise.mistake
def cross_attention_reads_the_input(self, x, memory, mask=None, memory_mask=None):
    """The cross-attention read the block's own input, and what the words had found in their own
    text went past it: it was added afterwards. What should the second layer read?"""
    seen = self.look_back(x, mask)
    return self.think(seen + self.look_across(x, memory, memory_mask))


@exercise.mistake
def side_by_side(self, x, memory, mask=None, memory_mask=None):
    """All three layers read the block's input, side by side, and their results were added up. In
    the figure they are a chain: what should the second and the third layer read?"""
    seen = self.look_back(x, mask)
    return seen + self.look_across(x, memory, memory_mask) + self.think(x)


@exercise.mistake
def results_added_up(self, x, memory, mask=None, memory_mask=None):
    """The three sublayers were taken out of their wrapping, all read x, and what they found was
    added to it: nothing was normalized. In the figure they are a chain, each with its own add and
    norm."""
    found = self.attention.sublayer(x, mask)
    found = found + self.cross_attention.sublayer(x, memory, memory_mask)
    return x + found + self.feed_forward.sublayer(x)


@exercise.mistake
def results_added_to_x(self, x, memory, mask=None, memory_mask=None):
    """All three sublayers read the block's input, side by side, and their results were added to it.
    In the figure they are a chain: what should the second and the third sublayer read?"""
    seen = self.look_back(x, mask)
    return x + seen + self.look_across(x, memory, memory_mask) + self.think(x)


@exercise.mistake
def last_two_side_by_side(self, x, memory, mask=None, memory_mask=None):
    """Cross-attention and network both read what the self-attention returned, and the results were
    added up. In the figure they are a chain: what should the network read?"""
    x = self.look_back(x, mask)
    return x + self.look_across(x, memory, memory_mask) + self.think(x)


@exercise.mistake(step="look_back")
def thinking_twice(self, x, mask):
    """The network was called after each of the two attentions. How many feed-forward networks does
    a block of the decoder have, and where?"""
    return self.think(InSteps.look_back(self, x, mask))


@exercise.mistake(step="look_across", raises=TypeError)
def memory_twice(self, x, memory, mask):
    """The cross-attention was given one argument too many. `AsCrossAttention` makes keys and values
    of one memory, under one mask: what does its own `forward` ask for?"""
    return self.cross_attention(x, memory, memory, mask)


@exercise.mistake(step="look_back", raises=TypeError)
def three_roles(self, x, mask):
    """The self-attention was given two arguments too many. `AsSelfAttention` makes query, key and
    value of x itself: what does its own `forward` ask for?"""
    return self.attention(x, x, x, mask)


@exercise.mistake(step="look_back", raises=TypeError)
def mask_by_name(self, x, mask):
    """A mask went in by its name, but what wraps the layers hands on places only: see
    `forward(self, x, *args)` in `PostNorm`. How else can an argument be handed over?"""
    return self.attention(x, mask=mask)


@exercise.mistake
class NeitherAddedNorNormalised(InSteps):
    """The layers were taken out of their wrapping: what they found was neither added nor
    normalised. What do you call when you call `self.attention` itself?"""

    def look_back(self, x, mask):
        return self.attention.sublayer(x, mask)

    def look_across(self, x, memory, mask):
        return self.cross_attention.sublayer(x, memory, mask)

    def think(self, x):
        return self.feed_forward.sublayer(x)


@exercise.mistake
def added_twice(self, x, memory, mask=None, memory_mask=None):
    """The words were added to what each part returned, and the parts had added them already. Look
    into `__init__`: who is in charge of the residual connections?"""
    x = x + self.look_back(x, mask)
    x = x + self.look_across(x, memory, memory_mask)
    return x + self.think(x)


@exercise.mistake(step="look_back")
def causal_instead(self, x, mask):
    """The words were given a causal mask, whatever `mask` says. Who decides what a word may see?"""
    return self.attention(x, causal_mask(x.shape[-2], device=x.device))


@exercise.mistake
def words_as_memory_with_their_mask(self, x, memory, mask=None, memory_mask=None):
    """The second attention looked at the target's own words, under their own mask, and `memory` was
    never used. Where do its keys and values come from?"""
    x = self.look_back(x, mask)
    return self.think(self.look_across(x, x, mask))


@exercise.alternative
class Spelled(DecoderBlock):
    def forward(self, x, memory, mask=None, memory_mask=None):
        def norm(part, x):
            return part.norm_layer(x, part.gain, part.bias)

        parts = self.attention, self.cross_attention, self.feed_forward
        across = self.cross_attention.sublayer.attention
        layers = (
            lambda x: self.attention.sublayer(x, mask),
            lambda x: across(x, memory, memory, memory_mask),
            self.feed_forward.sublayer,
        )
        for part, layer in zip(parts, layers, strict=True):
            pre = isinstance(part, PreNorm)
            x = x + layer(norm(part, x)) if pre else norm(part, x + layer(x))
        return x

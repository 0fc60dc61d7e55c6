"""Cross-attention: queries from one sentence, keys and values from another."""

import torch

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.transformer import cross_attention

exercise = Exercise(
    reference=cross_attention,
    lesson="08_one_page",
    title="Cross-attention",
    minutes=5,
    difficulty=1,
    hints=(
        "Who wants to know something here, and who knows it? Which of the two sentences is asked, "
        "and which one asks?",
        "Four target words look at six source words. Which shape have the scores, and which "
        "sentence gives the result its number of rows?",
        "You have built attention for any queries, keys and values. Which of z and h does each of "
        "the three matrices meet, by their sizes d_z and d_h?",
    ),
    clauses={
        "The result is softmax": "unscaled",
        "Z are the decoder's states": "self_attention_of_h",
        "target tokens by source tokens": "transposed_scores",
    },
    forbidden=FUSED_ATTENTION,
)


@exercise.cases
def cases(draw: Draw):
    yield "one target word, two source words", _states(draw, 1, 2, (3, 4, 2, 5))
    yield "three target words, five source words", _states(draw, 3, 5, (4, 3, 5, 2))
    yield "more target words than source words", _states(draw, 6, 4, (2, 5, 3, 4))
    yield "states and roles of one size", _states(draw, 3, 5, (4, 4, 4, 4))
    yield "as many target words as source words", _states(draw, 4, 4, (3, 3, 3, 3))
    yield "some source words masked", (*_states(draw, 4, 6, (3, 5, 2, 4)), draw.mask(4, 6))
    nowhere = torch.tensor([[False, False, False], [True, False, True]])
    yield "a word that may look nowhere", (*_states(draw, 2, 3, (5, 4, 3, 2)), nowhere)
    yield (
        "one row of mask for each sentence",
        (*_states(draw, 3, 4, (5, 3, 4, 2), 2), draw.mask(2, 1, 4)),
    )
    yield "two batch dimensions", _states(draw, 2, 5, (3, 4, 2, 6), 4, 3)
    yield "one source word", _states(draw, 3, 1, (4, 5, 2, 3))
    yield "as many target words as each has numbers", _states(draw, 3, 5, (3, 4, 2, 6))


@exercise.edges
def edges(draw: Draw):
    yield (
        "one mask for the whole batch, with an axis for it",
        (*_states(draw, 3, 5, (4, 3, 2, 5), 2), draw.mask(1, 3, 5)),
    )


def _states(draw: Draw, n_q, n_k, sizes, *batch):
    """Draw states of both sentences and the three matrices; sizes are d_z, d_h, d_k, d_v."""
    d_z, d_h, d_k, d_v = sizes
    z, h = draw.normal(*batch, n_q, d_z), draw.normal(*batch, n_k, d_h)
    return z, h, draw.normal(d_z, d_k), draw.normal(d_h, d_k), draw.normal(d_h, d_v)


@exercise.requires("permuting the source words changes nothing, changing one of them does")
def source_is_a_set(answer, draw: Draw):
    z, h, *matrices = _states(draw, 3, 4, (5, 4, 2, 3))
    others = torch.cat([h[:1], -h[1:2], h[2:]])
    plain = answer(z, h, *matrices)
    permuted = answer(z, h[torch.tensor([2, 0, 3, 1])], *matrices)
    changed = answer(z, others, *matrices)
    return torch.allclose(permuted, plain, atol=1e-5) and not torch.allclose(
        changed, plain, atol=1e-3
    )


@exercise.requires("each target word asks for itself: changing one changes its own row alone")
def each_asks_for_itself(answer, draw: Draw):
    z, h, *matrices = _states(draw, 4, 3, (5, 4, 2, 3))
    others = torch.cat([z[:2], -z[2:3], z[3:]])
    plain, changed = answer(z, h, *matrices), answer(others, h, *matrices)
    moved = (changed - plain).abs().amax(-1) > 1e-5
    return moved.tolist() == [False, False, True, False]


@exercise.requires("a masked source word might as well not be there")
def masked_word(answer, draw: Draw):
    z, h, *matrices = _states(draw, 3, 5, (4, 3, 2, 6))
    shown = torch.tensor([True, True, False, True, False])
    found, alone = answer(z, h, *matrices, shown.expand(3, 5)), answer(z, h[shown], *matrices)
    everything = answer(z, h, *matrices)
    return torch.allclose(found, alone, atol=1e-5) and not torch.allclose(
        everything, alone, atol=1e-3
    )


@exercise.mistake
def residual_added(z, h, w_q, w_k, w_v, mask=None):
    """z was added to what was found. That is the block's residual connection: is it in this
    formula?"""
    found = cross_attention(z, h, w_q, w_k, w_v, mask)
    return z + found if found.shape == z.shape else found


@exercise.mistake(raises=RuntimeError)
def keys_from_z(z, h, w_q, w_k, w_v, mask=None):
    """The keys were made of z: each target word looked at target words. Whom does the decoder want
    to find?"""
    return scaled_dot_product_attention(z @ w_q, z @ w_k, h @ w_v, mask)


@exercise.mistake(raises=RuntimeError)
def values_from_z(z, h, w_q, w_k, w_v, mask=None):
    """The values were made of z: the right words were found, and others handed over. What is found
    by its key should be given by the same word."""
    return scaled_dot_product_attention(z @ w_q, h @ w_k, z @ w_v, mask)


@exercise.mistake(raises=RuntimeError)
def self_attention_of_z(z, h, w_q, w_k, w_v, mask=None):
    """Keys and values were made of z, so this is self-attention, and the encoder was never asked.
    What is h for?"""
    return scaled_dot_product_attention(z @ w_q, z @ w_k, z @ w_v, mask)


@exercise.mistake(raises=RuntimeError)
def self_attention_of_h(z, h, w_q, w_k, w_v, mask=None):
    """The queries were made of h, so this is self-attention of the source, and the decoder never
    asked. What is z for?"""
    return scaled_dot_product_attention(h @ w_q, h @ w_k, h @ w_v, mask)


@exercise.mistake(raises=RuntimeError)
def roles_exchanged(z, h, w_q, w_k, w_v, mask=None):
    """The two sentences have changed roles: the encoder asked, and the decoder was looked at. How
    many rows should the result have: one for each target word, or for each source word?"""
    return scaled_dot_product_attention(h @ w_q, z @ w_k, z @ w_v, mask)


@exercise.mistake(raises=RuntimeError)
def encoder_asks_one_projection(z, h, w_q, w_k, w_v, mask=None):
    """The encoder asked: queries were made of h by w_k, and z w_q served as keys and as values. Who
    asks here, the encoder or the decoder?"""
    mask = None if mask is None else mask.mT
    return scaled_dot_product_attention(h @ w_k, z @ w_q, z @ w_q, mask)


@exercise.mistake(raises=RuntimeError)
def transposed_scores(z, h, w_q, w_k, w_v, mask=None):
    """Queries and keys have changed places in the product: the scores are source words by target
    words. Which of the two should be the rows?"""
    return scaled_dot_product_attention(h @ w_k, z @ w_q, h @ w_v, mask)


@exercise.mistake(raises=RuntimeError)
def matrices_exchanged(z, h, w_q, w_k, w_v, mask=None):
    """Two matrices have changed places: w_k met the queries' words, and w_q the keys'. Do they have
    the same number of rows?"""
    return scaled_dot_product_attention(z @ w_k, h @ w_q, h @ w_v, mask)


@exercise.mistake
def values_not_projected(z, h, w_q, w_k, w_v, mask=None):
    """The source states themselves were averaged, and w_v was never used. What does a word hand
    over: all that it is, or what its value says?"""
    return scaled_dot_product_attention(z @ w_q, h @ w_k, h, mask)


@exercise.mistake
def keys_as_values(z, h, w_q, w_k, w_v, mask=None):
    """The keys served as values as well: the result has the size d_k, and w_v was never used."""
    return scaled_dot_product_attention(z @ w_q, h @ w_k, h @ w_k, mask)


@exercise.mistake
def unscaled(z, h, w_q, w_k, w_v, mask=None):
    """Behaves as if the scores were not divided by sqrt(d_k): the weights are sharper than they
    should be."""
    return _scaled_by(1, z, h, w_q, w_k, w_v, mask)


@exercise.mistake
def scaled_by_d_z(z, h, w_q, w_k, w_v, mask=None):
    """The scores were divided by sqrt(d_z), the size of the decoder's states. A score is one dot
    product: how many terms does it sum?"""
    return _scaled_by(z.shape[-1], z, h, w_q, w_k, w_v, mask)


@exercise.mistake
def scaled_by_d_h(z, h, w_q, w_k, w_v, mask=None):
    """The scores were divided by sqrt(d_h), the size of the encoder's states. A score is one dot
    product: how many terms does it sum?"""
    return _scaled_by(h.shape[-1], z, h, w_q, w_k, w_v, mask)


@exercise.mistake
def scaled_by_square(z, h, w_q, w_k, w_v, mask=None):
    """The scores were divided by d_k itself, which makes the weights too much alike. A sum of d_k
    independent products grows as what of d_k?"""
    return _scaled_by(w_q.shape[-1] ** 2, z, h, w_q, w_k, w_v, mask)


def _scaled_by(size, z, h, w_q, w_k, w_v, mask):
    q = z @ w_q
    return scaled_dot_product_attention(q * (q.shape[-1] / size) ** 0.5, h @ w_k, h @ w_v, mask)


stock.ignored(exercise)
stock.mask_inverted(exercise)
stock.nowhere_is_nan(exercise)
stock.nowhere_is_everywhere(exercise)


@exercise.mistake(raises=RuntimeError)
def keys_and_values_exchanged(z, h, w_q, w_k, w_v, mask=None):
    """Keys and values have changed places: the target words were compared with the values, and the
    keys were averaged. Which of the two says where to look?"""
    return scaled_dot_product_attention(z @ w_q, h @ w_v, h @ w_k, mask)


@exercise.mistake(raises=RuntimeError)
def roles_and_matrices_exchanged(z, h, w_q, w_k, w_v, mask=None):
    """The two sentences have changed roles, and the matrices with them: queries were made of h by
    w_k, and keys and values of z. Who asks here, the encoder or the decoder?"""
    return scaled_dot_product_attention(h @ w_k, z @ w_q, z @ w_v, mask)


@exercise.mistake
def causal_too(z, h, w_q, w_k, w_v, mask=None):
    """Target word i looked at the first i source words only: a causal mask was added. What is there
    to hide in a source that is known from its first word to its last?"""
    early = torch.ones(z.shape[-2], h.shape[-2], dtype=torch.bool, device=z.device).tril()
    return cross_attention(z, h, w_q, w_k, w_v, early if mask is None else mask & early)


@exercise.alternative
def spelled(z, h, w_q, w_k, w_v, mask=None):
    scores = torch.einsum("...id,dk,ek,...je->...ij", z, w_q, w_k, h) / w_k.size(1) ** 0.5
    if mask is None:
        return scores.softmax(-1) @ h @ w_v
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).masked_fill(~mask, 0.0)
    return weights @ h @ w_v


@exercise.alternative
def word_after_word(z, h, w_q, w_k, w_v, mask=None):
    keys, values, rows = h @ w_k, h @ w_v, []
    for i in range(z.shape[-2]):
        query = z[..., i, :] @ w_q
        scores = (keys * query.unsqueeze(-2)).sum(-1) / query.shape[-1] ** 0.5
        if mask is not None:
            shown = mask[..., i if mask.shape[-2] > 1 else 0, :]
            scores = scores.masked_fill(~shown, float("-inf"))
        weights = torch.exp(scores - scores.amax(-1, keepdim=True).clamp(min=-1e30))
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
        rows.append((weights.unsqueeze(-1) * values).sum(-2))
    return torch.stack(rows, dim=-2)

"""Induction heads: a head that finds what followed the same token before (07_induction_heads)."""

import torch
from jaxtyping import Float
from torch import Tensor


def induction_weights(
    vocab: int,
) -> tuple[
    Float[Tensor, "d_model d_k"],
    Float[Tensor, "d_model d_k"],
    Float[Tensor, "d_model d_v"],
    Float[Tensor, "d_v d_model"],
]:
    """Set by hand the matrices (w_q, w_k, w_v, w_o) of an induction head.

    The stream of a token is d_model = 3 * vocab + 16 numbers: the token as a one-hot vector; the
    token before it, one-hot, as an earlier layer has written it; the prediction, still empty; 16
    numbers of position. The causal head reads x, and its output, added to the stream, fills the
    prediction alone. Where the same token occurred before, the prediction is the token that
    followed it there (the average of those tokens, if it occurred several times), to within 0.002.
    Elsewhere the prediction is free. This holds for texts of up to 600 tokens and a vocab of up to
    200. d_k and d_v are free. Source: Elhage et al. 2021, "A Mathematical Framework for Transformer
    Circuits".
    """
    token, before, prediction = (slice(part * vocab, (part + 1) * vocab) for part in range(3))
    same = torch.eye(vocab)
    w_q, w_k, w_v = torch.zeros(3, 3 * vocab + 16, vocab)
    w_o = torch.zeros(vocab, 3 * vocab + 16)
    # choose which part of the stream a query reads, and which part a key reads
    w_q[token], w_k[before] = same, same
    # choose how large the scores are
    w_q *= 30 * vocab**0.5
    # choose which part a value reads, and which part the output goes to
    w_v[token], w_o[:, prediction] = same, same
    return w_q, w_k, w_v, w_o

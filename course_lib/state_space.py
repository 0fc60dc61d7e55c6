"""Scans and state spaces: a recurrence that training need not run step by step (lesson 15)."""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def scan(a: Float[Tensor, "... n d"], b: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
    """Run a linear recurrence: h_t = a_t h_(t-1) + b_t, number by number, and keep all states.

    The first state is b_1, as if a state of zeros had come before. Time O(n d), in n steps, one
    after another. Source: Blelloch 1990, section 1.4.

    >>> scan(torch.tensor([[0.5], [0.5], [0.5]]), torch.tensor([[8.0], [0.0], [1.0]])).tolist()
    [[8.0], [4.0], [3.0]]
    """
    # begin with zeros
    state, states = torch.zeros_like(b[..., 0, :]), []
    for t in range(b.shape[-2]):
        # let the state decay, and add what is new
        state = a[..., t, :] * state + b[..., t, :]
        states.append(state)
    # lay the states side by side
    return torch.stack(states, dim=-2)


def parallel_scan(
    a: Float[Tensor, "... n d"], b: Float[Tensor, "... n d"]
) -> Float[Tensor, "... n d"]:
    """Compute what `scan` does in about log2(n) rounds, each of them over all places at once.

    A stretch of steps is again one step, h -> a h + b, and two stretches, the earlier (a', b') and
    the later (a, b), join to (a a', a b' + b). In round r each place joins its own stretch, of
    2^r steps, with the one that ends 2^r places before it. Time O(n d log n), in O(log n) calls of
    torch. No division: a decay may be 0. Source: Hillis & Steele 1986; Blelloch 1990, section 1.4.
    """
    n = b.shape[-2]
    for r in range((n - 1).bit_length()):
        # every stretch is this long by now
        reach = 2**r
        # look up the stretch that ends `reach` places before, where there is one
        before_a = F.pad(a[..., :-reach, :], (0, 0, reach, 0), value=1.0)
        before_b = F.pad(b[..., :-reach, :], (0, 0, reach, 0))
        # join the two stretches
        a, b = a * before_a, a * before_b + b
    # every stretch begins at the first place: from a state of zeros, b is what it leaves
    return b


def selective(
    x: Float[Tensor, "... n d"],
    delta: Float[Tensor, "... n d"],
    a: Float[Tensor, "d s"],
    b: Float[Tensor, "... n s"],
    c: Float[Tensor, "... n s"],
) -> Float[Tensor, "... n d"]:
    """Read a sequence into a state of d x s numbers, with gates that depend on the token.

    h_t = exp(delta_t a) h_(t-1) + (exp(delta_t a) - 1) / a b_t x_t and y_t = c_t . h_t: each of d
    channels has s numbers, delta_t (of d) says how much it lets in and how much it forgets, b_t (of
    s) where x_t is written, c_t where y_t is read. a is negative, so that states decay. Time and
    memory O(n d s), in n steps; with `parallel_scan` in the place of `scan`, log n times the work
    in O(log n) rounds. Source: Gu & Dao 2023, algorithm 2 and equation 4, the zero-order hold
    (their code takes the simpler step delta_t b_t x_t).
    """
    # how much of each number of the state is kept
    exponent = einsum(delta, a, "... n d, d s -> ... n d s")
    kept = exponent.exp()
    # what a constant input writes into it meanwhile
    written = einsum(exponent.expm1() / a, x, b, "... n d s, ... n d, ... n s -> ... n d s")
    # run the recurrence on all d x s numbers side by side
    flat = (rearrange(z, "... n d s -> ... n (d s)") for z in (kept, written))
    states = rearrange(scan(*flat), "... n (d s) -> ... n d s", s=a.shape[-1])
    # read the state
    return einsum(states, c, "... n d s, ... n s -> ... n d")

"""An assistant: what it learns of a conversation, how, and what it may write (lesson 17)."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.pretraining import IGNORED


def answer_targets(
    tokens: Int[Tensor, "batch n"],
    asked: Int[Tensor, " batch"],
    lengths: Int[Tensor, " batch"],
) -> Int[Tensor, "batch n"]:
    """Ask for the tokens of the answers, and for nothing else: return the targets.

    A row begins with `asked` tokens of the prompt, one at least. The answer follows, whose last
    token ends it, up to `lengths` tokens; the rest of the row is padding. The target of a place is
    the token after it if that belongs to the answer, and -100 otherwise. Source: Touvron et al.
    2023, section 3.1.

    >>> tokens = torch.tensor([[5, 6, 7, 8, 2, 0]])  # 5 6 asks, 7 8 2 answers, 0 is padding
    >>> answer_targets(tokens, torch.tensor([2]), torch.tensor([5]))
    tensor([[-100,    7,    8,    2, -100, -100]])
    """
    # number the places of the tokens that come next
    places = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)
    # find those that belong to the answer: behind the prompt, before the padding
    answered = (places >= asked[:, None]) & (places < lengths[:, None])
    # give each place the token one further right; after the last there is none
    following = F.pad(tokens[:, 1:], (0, 1))
    # keep the answers' tokens
    return torch.where(answered, following, IGNORED)


def constrained(
    score: Callable[[list[int], int], Tensor], prompt: list[int], allowed: Sequence[list[int]]
) -> list[int]:
    """Write one of the allowed answers: at each step the likeliest token that can still become one.

    `score(tokens, rows)` returns the scores of the next token after each of the last `rows` tokens,
    of shape (rows, vocab). Each allowed answer is a list of tokens that ends with a token that no
    other place has, so that none is the beginning of another. Returns the answer's tokens. Source:
    Willard & Louf 2023, section 2, for a list in place of a grammar. Raises ValueError where no
    answer is allowed.

    >>> def score(tokens, rows):  # 3 is likeliest, then 2, then 1
    ...     return torch.arange(4.0).expand(rows, 4)
    >>> constrained(score, [1, 2], [[1, 2, 0], [1, 1, 0], [2, 1, 0]])
    [2, 1, 0]
    """
    if not allowed:
        raise ValueError("an answer is written only where one is allowed, and this list is empty")
    written = []
    while written not in allowed:
        n = len(written)
        # collect the tokens that come next in an answer that begins with what is written
        possible = {answer[n] for answer in allowed if answer[:n] == written}
        # score the next token, and write the best of these
        [scores] = score(prompt + written, 1).tolist()
        written = [*written, max(possible, key=scores.__getitem__)]
    return written


class LowRankLinear(nn.Module):
    """Add a trained change of low rank to a frozen linear layer: W x + alpha/rank B A x.

    The given layer is kept as `linear`; its weight and bias get no gradients any more. The
    parameter `a`, of shape (rank, d_in), is drawn as `nn.Linear` draws its weight: uniformly
    between -1/sqrt(d_in) and 1/sqrt(d_in). The parameter `b`, of shape (d_out, rank), begins with
    zeros, so that the layer begins as the given one. Source: Hu et al. 2021, section 4.1, eq. 3;
    the paper draws `a` from a normal distribution, its code as here.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        # call the constructor of nn.Module, and keep the layer, frozen
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.alpha = alpha
        # make a, from d_in to the rank, and b, from there to d_out
        self.a = nn.Parameter(linear.weight.new_zeros(rank, linear.in_features))
        self.b = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        # draw a, and leave b zero
        nn.init.kaiming_uniform_(self.a, a=5**0.5)

    def forward(self, x: Float[Tensor, "... d_in"]) -> Float[Tensor, "... d_out"]:
        """Apply the frozen layer, and add the scaled change."""
        # send x down to the rank, and up again
        change = x @ self.a.mT @ self.b.mT
        # scale it, and add it to what the frozen layer returns
        return self.linear(x) + self.alpha / len(self.a) * change


def merged(
    weight: Float[Tensor, "d_out d_in"],
    a: Float[Tensor, "rank d_in"],
    b: Float[Tensor, "d_out rank"],
    alpha: float,
) -> Float[Tensor, "d_out d_in"]:
    """Return the weight of one linear layer that does what weight, a and b do: W + alpha/rank B A.

    Source: Hu et al. 2021, section 4.1.
    """
    # multiply the two thin matrices
    change = b @ a
    # add the scaled product to a copy of the weight
    return weight + alpha / len(a) * change


def adapt(
    model: nn.Module, names: Collection[str], layer: Callable[[nn.Linear], nn.Module]
) -> list[nn.Parameter]:
    """Freeze a model, and put `layer(linear)` in the place of each linear layer of these names.

    A name is the attribute that holds the layer, such as "w_q". Returns the parameters that are
    trained. Raises ValueError where no linear layer has such a name.
    """
    linears = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Linear)
    ]
    if not any(name in names for _, name, _ in linears):
        there = ", ".join(sorted({name for _, name, _ in linears})) or "none"
        raise ValueError(f"no linear layer is called {' or '.join(names)}; there are: {there}")
    model.requires_grad_(False)
    for parent, name, linear in linears:
        if name in names:
            setattr(parent, name, layer(linear))
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


@contextmanager
def switched_off(adapter: Sequence[nn.Parameter]) -> Iterator[None]:
    """Within it, what `adapt` returned is zero: the model is as it was before any training."""
    learned = [parameter.detach().clone() for parameter in adapter]
    with torch.no_grad():
        for parameter in adapter:
            parameter.zero_()
        try:
            yield
        finally:
            for parameter, value in zip(adapter, learned, strict=True):
                parameter.copy_(value)


def merge_all(model: nn.Module, alpha: float) -> None:
    """Put linear layers with merged weights in the place of all layers that `adapt` has put there.

    Such a layer has a `linear`, `a` and `b`; its `linear` gets the merged weight. Raises ValueError
    where there is none.
    """
    layers = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if all(hasattr(child, part) for part in ("linear", "a", "b"))
    ]
    if not layers:
        raise ValueError("no layer has a linear, a and b, so there is nothing to merge")
    for parent, name, child in layers:
        linear = cast(nn.Linear, child.linear)
        a, b = child.get_parameter("a").detach(), child.get_parameter("b").detach()
        weight = merged(linear.weight.detach(), a, b, alpha)
        linear.weight = nn.Parameter(weight, requires_grad=False)
        setattr(parent, name, linear)


def answer_log_probs(
    scores: Float[Tensor, "batch n vocab"], targets: Int[Tensor, "batch n"]
) -> Float[Tensor, " batch"]:
    """Return log p(answer) of each row: the sum of log p(target) over its places with a target.

    A target of -100 is none; a row without a target has the sum 0. Scores are logits. Source:
    Rafailov et al. 2023, section 3, where it is log π(y | x).
    """
    log_probabilities = scores.log_softmax(dim=-1)
    # find the places with a target; -100 is no token, and 0 takes its place
    counts = targets != -100
    looked_up = targets.masked_fill(~counts, 0).unsqueeze(-1)
    # look up what each target was given
    found = log_probabilities.gather(-1, looked_up).squeeze(-1)
    # add up each row
    return found.masked_fill(~counts, 0.0).sum(dim=-1)


def preference_loss(
    chosen: Float[Tensor, " batch"],
    rejected: Float[Tensor, " batch"],
    chosen_before: Float[Tensor, " batch"],
    rejected_before: Float[Tensor, " batch"],
    beta: float,
) -> Float[Tensor, ""]:
    """Average -log sigmoid(beta ((c - c_before) - (r - r_before))) over the pairs, in nats.

    c and r are log p of the chosen and the rejected answer under the model that learns, and with
    `before` under the model that it began as. It stays exact where the sigmoid itself would be
    0 or 1. Source: Rafailov et al. 2023, eq. 7.
    """
    # say how much likelier each answer has become
    chosen_gain = chosen - chosen_before
    rejected_gain = rejected - rejected_before
    # take the logarithm of the sigmoid in one piece, and average
    return -F.logsigmoid(beta * (chosen_gain - rejected_gain)).mean()

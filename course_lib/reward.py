"""Learning from reward: answers are scored, and what scored well gets likelier (lesson 18)."""

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that one of k answers is right, estimated from n of which c are.

    It is the chance for k of the n, drawn without replacement: 1 - C(n - c, k) / C(n, k). As a
    product of c factors it holds for n in the thousands. Source: Chen et al. 2021, section 2.1.
    Raises ValueError where c is no number from 0 to n, or k none from 1 to n.
    """
    if not 0 <= c <= n:
        raise ValueError(f"of {n} answers from 0 to {n} may be right, but c is {c}")
    if not 1 <= k <= n:
        raise ValueError(f"from 1 to {n} of {n} answers can be drawn, but k is {k}")
    # where fewer than k are wrong, k of them cannot all be
    if n - c < k:
        return 1.0
    # multiply the chances that each right answer is not among the k
    missed = 1.0
    for i in range(n - c + 1, n + 1):
        missed *= 1 - k / i
    # one at least is, otherwise
    return 1 - missed


def vote(answers: Sequence[str | None]) -> str | None:
    """Return the commonest answer, and of equally common ones the one that came first.

    None, where no answer was found, wins only where there is nothing else. Source: Wang et al.
    2023, who call it self-consistency.
    """
    found = Counter(answer for answer in answers if answer is not None)
    return found.most_common(1)[0][0] if found else None


def group_advantage(
    rewards: Float[Tensor, "... group"], eps: float = 1e-4
) -> Float[Tensor, "... group"]:
    """Return by how much each reward exceeds the mean of its group, in standard deviations.

    A = (r - mean) / (std + eps), with the standard deviation of n - 1. The advantage is a number
    to learn by: it has no gradient. Source: Shao et al. 2024, section 4.1.2. Raises ValueError for
    a group of fewer than two answers.
    """
    rewards = rewards.detach()
    if rewards.shape[-1] < 2:
        raise ValueError(f"a group has two answers at least, but got {rewards.shape[-1]}")
    # compare each answer with the others to the same question
    centred = rewards - rewards.mean(dim=-1, keepdim=True)
    # measure it by how much the group's rewards differ
    return centred / (rewards.std(dim=-1, keepdim=True) + eps)


def answer_tokens(drawn: Int[Tensor, "... n"], stop: int) -> Bool[Tensor, "... n"]:
    """Return which drawn tokens belong to the answer: all up to its first `stop`, and that, too.

    What stands behind the first `stop` is padding, which may be `stop` again.

    >>> answer_tokens(torch.tensor([7, 8, 2, 2]), stop=2)
    tensor([ True,  True,  True, False])
    """
    # count the stops to the left of each token
    ends = drawn == stop
    before = ends.cumsum(dim=-1) - ends.long()
    # a token belongs to the answer while there is none
    return before == 0


def policy_loss(
    new: Float[Tensor, "group n"],
    old: Float[Tensor, "group n"],
    advantages: Float[Tensor, " group"],
    mask: Bool[Tensor, "group n"],
    clip: float = 0.2,
) -> Float[Tensor, ""]:
    """Return minus the mean of min(r A, clip(r, 1 - clip, 1 + clip) A), r = exp(new - old).

    `new` and `old` are log-probabilities of the drawn tokens, under the model that learns and
    under the one that drew them. An advantage A counts for each token of its answer; the mean is
    over all tokens of the group at which `mask` is True. Source: Schulman et al. 2017, eq. 7; one
    mean over all tokens as in Yu et al. 2025, section 3.3.
    """
    # how much likelier has each token become since it was drawn?
    ratio = torch.exp(new - old)
    advantage = advantages.unsqueeze(-1)
    # nothing is gained by going further than the clip allows
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    # average over the answers' tokens
    return -gain[mask].mean()


def preference_loss(
    chosen: Float[Tensor, " batch"], rejected: Float[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Average -log sigmoid(chosen - rejected), in nats, over pairs of learned rewards.

    The sigmoid of the difference is the chance that the first is preferred. It stays exact where
    that is 0 or 1. Source: Bradley & Terry 1952; Ouyang et al. 2022, eq. 1.
    """
    # by how much is the chosen one better?
    margin = chosen - rejected
    # take the logarithm of the sigmoid in one piece, and average
    return -F.logsigmoid(margin).mean()

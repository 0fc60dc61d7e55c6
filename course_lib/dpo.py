"""Direct preference optimization: of two answers, which one is better (lesson 17)."""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


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

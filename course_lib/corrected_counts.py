"""A network that corrects counts, rather than learn again what can be counted (lesson 10)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.ngrams import NGrams


class CorrectedCounts(nn.Module):
    """Add the logarithms of counted probabilities to a network's logits.

    softmax(a log P(w | h) + b z_w): a product of two experts, with a and b learned. a begins at 1
    and b at 0, so the model begins as the counts. Source: after Jozefowicz et al. 2016 and He et
    al. 2016: what a layer need not learn is added to its output.
    """

    def __init__(self, network: nn.Module, counts: NGrams):
        super().__init__()
        self.network, self.counts = network, counts
        self.a, self.b = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(0.0))

    def forward(
        self,
        tokens: Int[Tensor, "*batch n"],
        log_counted: Float[Tensor, "*batch n vocab"] | None = None,
    ) -> Float[Tensor, "*batch n vocab"]:
        """Return the logits of the token after each of `tokens`.

        `log_counted` are used in place of the counts: in training those of `cross_fitted`.
        """
        if log_counted is None:
            log_counted = self.counts.probabilities(tokens).log()
        return self.a * log_counted + self.b * self.network(tokens)

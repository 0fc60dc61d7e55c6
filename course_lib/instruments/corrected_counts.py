"""A language model that corrects counts, in place of learning them again (lesson 10)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.corpus import NGrams
from course_lib.language_model import LanguageModel
from course_lib.masks import causal_mask


class CorrectedCounts(LanguageModel):
    """Read what counts predict, and add a correction to its logarithm.

    logits = a log P(w | h) + z_w, with P of `counts` and z the network's logits; at its input, the
    network gets sqrt(P) times a matrix beside the embedding. a begins at 1, and the output matrix
    is untied and begins with zeros, so an untrained model predicts as the counts do. This is a
    residual connection around all layers (He et al. 2016). `sizes` and `parts` are those of
    `LanguageModel`.
    """

    def __init__(self, counts: NGrams, *sizes: int, **parts: object):
        super().__init__(counts.vocab, *sizes, **parts)
        vocab, d_model = counts.vocab, self.output.in_features
        self.counts, self.a = counts, nn.Parameter(torch.tensor(1.0))
        self.read = nn.Linear(vocab, d_model, bias=False)
        self.output = nn.Linear(d_model, vocab, bias=False)
        nn.init.zeros_(self.output.weight)

    def forward(
        self,
        tokens: Int[Tensor, "*batch n"],
        log_counted: Float[Tensor, "*batch n vocab"] | None = None,
    ) -> Float[Tensor, "*batch n vocab"]:
        """Return the logits of the token after each of `tokens`.

        `log_counted` takes the place of log P, since a model learns from probabilities that were
        counted in other texts: see `cross_fitted`.
        """
        # look up what counts predict after each token
        if log_counted is None:
            log_counted = self.counts.probabilities(tokens).log()
        # let the network read it beside the tokens
        x = self.positions(self.embedding(tokens)) + self.read(torch.exp(log_counted / 2))
        mask = causal_mask(tokens.shape[-1], device=tokens.device)
        for block in self.blocks:
            x = block(x, mask)
        # add the correction
        return self.a * log_counted + self.output(self.last_norm(x))

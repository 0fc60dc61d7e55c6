"""Hold each component against an independent implementation: results and gradients, in float64.

Each module here has the comparisons of the component module of its name.
"""

from course_lib.verify import (
    adamw,
    add_norm,
    assistant,
    attention,
    decoder,
    delta_rule,
    dpo,
    efficient,
    encoder,
    feed_forward,
    grouped_query,
    head_scores,
    induction,
    label_smoothing,
    language_model,
    lora,
    mixture,
    multi_head,
    muon,
    ngrams,
    pooling,
    positions,
    pretraining,
    reward,
    rnn,
    sampling,
    scaling,
    self_attention,
    squared_relu,
    start,
    state_space,
    swiglu,
    transformer,
    vision,
    windows,
)
from course_lib.verify.comparison import Comparison, Row, measure

__all__ = ["COMPARISONS", "TRIALS", "Comparison", "Row", "measure", "verify"]

TRIALS = 20  # random shapes for each comparison

IN_ORDER_OF_LESSONS = (
    start,
    rnn,
    windows,
    attention,
    self_attention,
    positions,
    feed_forward,
    multi_head,
    head_scores,
    add_norm,
    induction,
    encoder,
    decoder,
    transformer,
    pooling,
    grouped_query,
    swiglu,
    ngrams,
    adamw,
    muon,
    squared_relu,
    language_model,
    sampling,
    label_smoothing,
    scaling,
    mixture,
    vision,
    state_space,
    delta_rule,
    efficient,
    pretraining,
    assistant,
    lora,
    dpo,
    reward,
)
COMPARISONS: list[Comparison] = [
    value
    for module in IN_ORDER_OF_LESSONS
    for value in vars(module).values()
    if isinstance(value, Comparison) and value.possible
]


def verify() -> list[Row]:
    """Compare each component with its oracle."""
    return [measure(comparison, TRIALS) for comparison in COMPARISONS]

"""Ready-made versions that exercises forbid: their names, other names of theirs, operations."""

from collections.abc import Iterable

SOFTMAX = (
    "torch.softmax",
    "torch.log_softmax",
    "torch.logsumexp",
    "torch.logaddexp",
    "torch.logcumsumexp",
    "torch.special.softmax",
    "torch.special.log_softmax",
    "torch.Tensor.softmax",
    "torch.Tensor.log_softmax",
    "torch.Tensor.logsumexp",
    "torch.Tensor.logcumsumexp",
    "torch.nn.functional.softmax",
    "torch.nn.functional.log_softmax",
    "torch.nn.functional.softmin",
    "torch.nn.Softmax",
    "torch.nn.Softmax2d",
    "torch.nn.LogSoftmax",
    "torch.nn.Softmin",
)
FUSED_ATTENTION = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch.nn.MultiheadAttention",
)
TRANSFORMER = (
    *FUSED_ATTENTION,
    "torch.nn.Transformer",
    "torch.nn.TransformerEncoder",
    "torch.nn.TransformerEncoderLayer",
    "torch.nn.TransformerDecoder",
    "torch.nn.TransformerDecoderLayer",
)
RECURRENT = (
    "torch.rnn_tanh",
    "torch.rnn_tanh_cell",
    "torch.gru",
    "torch.gru_cell",
    "torch.lstm",
    "torch.lstm_cell",
    "torch.nn.RNN",
    "torch.nn.RNNCell",
    "torch.nn.GRU",
    "torch.nn.GRUCell",
    "torch.nn.LSTM",
    "torch.nn.LSTMCell",
)
CONVOLUTION = (
    "torch.conv1d",
    "torch.conv_tbc",
    "torch.convolution",
    "torch.nn.functional.conv1d",
    "torch.nn.Conv1d",
)
NORMS = (
    "torch.layer_norm",
    "torch.native_layer_norm",
    "torch.group_norm",
    "torch.native_group_norm",
    "torch.instance_norm",
    "torch.batch_norm",
    "torch.native_batch_norm",
    "torch.rms_norm",
    "torch.nn.functional.layer_norm",
    "torch.nn.functional.group_norm",
    "torch.nn.functional.instance_norm",
    "torch.nn.functional.batch_norm",
    "torch.nn.functional.rms_norm",
    "torch.nn.LayerNorm",
    "torch.nn.GroupNorm",
    "torch.nn.InstanceNorm1d",
    "torch.nn.BatchNorm1d",
    "torch.nn.BatchNorm2d",
    "torch.nn.BatchNorm3d",
    "torch.nn.SyncBatchNorm",
    "torch.nn.RMSNorm",
)
CROSS_ENTROPY = (
    "torch.nn.functional.cross_entropy",
    "torch.nn.functional.nll_loss",
    "torch.nn.CrossEntropyLoss",
    "torch.nn.NLLLoss",
)
LEAST_SQUARES = (
    "numpy.polyfit",
    "numpy.polynomial.Polynomial.fit",
    "numpy.linalg.lstsq",
    "numpy.linalg.pinv",
    "numpy.linalg.solve",
    "torch.linalg.lstsq",
    "torch.linalg.pinv",
    "torch.linalg.solve",
    "torch.linalg.solve_ex",
    "torch.linalg.tensorsolve",
    "torch.lstsq",
    "torch.pinverse",
)

FAMILIES = {
    "torch's softmax, log_softmax and logsumexp": SOFTMAX,
    "torch's Transformer, its blocks and its attention": TRANSFORMER,
    "torch's own attention": FUSED_ATTENTION,
    "torch's recurrent layers and cells": RECURRENT,
    "torch's convolutions": CONVOLUTION,
    "torch's norms": NORMS,
    "torch's cross-entropy and nll_loss": CROSS_ENTROPY,
    "numpy's and torch's fits and solvers": LEAST_SQUARES,
}


def in_words(names: Iterable[str]) -> list[str]:
    """Name what may not be called as a learner reads it: families, then the shortest names."""
    left, said = set(names), []
    for words, family in FAMILIES.items():
        if left.issuperset(family):
            said.append(words)
            left.difference_update(family)
    shortest: dict[str, str] = {}
    for name in sorted(left, key=lambda x: (not x.islower(), len(x), x)):
        # a function and its module are one, under the function's name
        shortest.setdefault(_kin(name), f"`{name}`")
    return [*said, *shortest.values()]


def _kin(name: str) -> str:
    return name.rpartition(".")[2].lower().replace("_", "").removesuffix("loss")


# what carries, judges and grades answers: its layers and references are no answer's
MACHINERY = ("course_lib.answers", "course_lib.checking", "course_lib.grading")
# a notebook's own: what they give inside of an answer would be another answer
DOORS = tuple(f"course_lib.exercises.{x}" for x in ("mine", "check", "solution", "hint"))
# other public names by which the same, or most of it, is computed: torch's and numpy's functions
# were called on sample arguments, and those of equal results are here
FITS = [
    f"numpy.polynomial.{name}"
    for name in (
        "Chebyshev Hermite HermiteE Laguerre Legendre Polynomial chebyshev.chebfit hermite.hermfit"
        " hermite_e.hermefit laguerre.lagfit legendre.legfit polynomial.polyfit"
    ).split()
]
SAME = {
    "torch.optim.AdamW": "torch.optim.adamw.adamw torch.optim.adam.adam torch._fused_adamw_",
    "torch.optim.Adam": "torch.optim.adam.adam torch.optim.adamw.adamw torch._fused_adam_",
    "torch.nn.functional.cross_entropy": "torch.distributions.Categorical"
    " torch.distributions.OneHotCategorical torch.distributions.Multinomial",
    "numpy.polyfit": " ".join(["statistics.linear_regression", *FITS]),
    "torch.linalg.lstsq": "numpy.linalg.lstsq numpy.polyfit numpy.polynomial.polynomial.polyfit"
    " numpy.polynomial.Polynomial.fit",
    "torch.linalg.pinv": "torch.pinverse torch.Tensor.pinverse numpy.linalg.pinv",
    "torch.linalg.solve": "torch.linalg.solve_ex torch.linalg.tensorsolve numpy.linalg.solve"
    " numpy.linalg.tensorsolve torch.cholesky_solve torch.lu_solve torch.linalg.lu_solve",
    "torch.logaddexp": "torch.Tensor.logaddexp torch.masked.logaddexp numpy.logaddexp"
    " torch.logaddexp2 torch.Tensor.logaddexp2 numpy.logaddexp2",
    "torch.logsumexp": "torch.special.logsumexp torch.masked.logsumexp",
    "torch.log_softmax": "torch.masked.log_softmax torch.sparse.log_softmax",
    "torch.softmax": "torch.distributions.Categorical torch.distributions.OneHotCategorical"
    " torch.nn.functional.gumbel_softmax torch.special.softmax torch.masked.softmax"
    " torch.masked.softmin torch.sparse.softmax",
    "torch.nn.functional.scaled_dot_product_attention": "torch.nn.MultiheadAttention"
    " torch.nn.functional.multi_head_attention_forward",
    "torch.nn.BatchNorm1d": "torch.nn.LazyBatchNorm1d",
    "torch.nn.Conv1d": "torch.nn.LazyConv1d",
    "torch.nn.InstanceNorm1d": "torch.nn.LazyInstanceNorm1d",
    "torch.nn.NLLLoss": "torch.nn.NLLLoss2d",
}
# what a forbidden function comes down to is forbidden by any name: a part of the names of torch's
# own operations, so that "softmax" is `aten._softmax` and `aten._log_softmax` alike
OPERATIONS = {
    "torch.optim.AdamW": "fused_adam",
    "torch.softmax": "softmax",
    "torch.logsumexp": "logsumexp",
    "torch.logaddexp": "logaddexp",
    "torch.logcumsumexp": "logcumsumexp",
    "torch.nn.functional.scaled_dot_product_attention": "scaled_dot_product_",
    "torch.nn.functional.conv1d": "conv",
    "torch.nn.functional.layer_norm": "layer_norm",
    "torch.nn.functional.group_norm": "group_norm",
    "torch.nn.functional.batch_norm": "batch_norm",
    "torch.linalg.solve_ex": "linalg_solve_ex",
}

"""The encoder-decoder: one network reads a sequence, another writes its answer (lessons 01, 02).

Tokens are numbers, and three of them mean the same in every vocabulary: PAD fills a batch up,
START opens what the decoder reads, STOP ends a sequence.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.before_attention import gru_cell

PAD, START, STOP = 0, 1, 2


class GRU(nn.Module):
    """Read a batch of sequences with `gru_cell`, one step after another.

    The weights begin as those of torch's `nn.GRU` do: uniform, within 1 / sqrt(d_hidden) of 0.
    """

    def __init__(self, d_in: int, d_hidden: int):
        super().__init__()
        bound = d_hidden**-0.5

        def weight(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))

        self.w_x, self.w_h = weight(d_in, 3 * d_hidden), weight(d_hidden, 3 * d_hidden)
        self.b_x, self.b_h = weight(3 * d_hidden), weight(3 * d_hidden)

    def forward(
        self,
        xs: Float[Tensor, "batch n d_in"],
        h: Float[Tensor, "batch d_hidden"],
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch n d_hidden"]:
        """Return the state after each step; where `mask` is False the state stays as it was."""
        states = []
        for step, x in enumerate(xs.unbind(dim=1)):
            moved = gru_cell(x, h, self.w_x, self.w_h, self.b_x, self.b_h)
            h = moved if mask is None else torch.where(mask[:, step, None], moved, h)
            states.append(h)
        return torch.stack(states, dim=1)


class RecurrentEncoder(nn.Module):
    """Read the source; return the state at each token, and the one vector that has seen them all.

    A bidirectional encoder has a second reader, from right to left. Each reader then has half of
    d_hidden, so states and context have the same size either way.

    Raises ValueError for a bidirectional encoder whose d_hidden is odd.
    """

    def __init__(self, vocab: int, d_embedding: int, d_hidden: int, bidirectional: bool = False):
        super().__init__()
        if bidirectional and d_hidden % 2:
            raise ValueError(
                f"d_hidden must be even, since each direction takes half of it, but is {d_hidden}"
            )
        self.d_reader = d_hidden // 2 if bidirectional else d_hidden
        self.embedding = nn.Embedding(vocab, d_embedding)
        self.rightward = GRU(d_embedding, self.d_reader)
        self.leftward = GRU(d_embedding, self.d_reader) if bidirectional else None

    def forward(
        self, source: Int[Tensor, "batch source"]
    ) -> tuple[Float[Tensor, "batch source d_hidden"], Float[Tensor, "batch d_hidden"]]:
        """Return (states, context). Padding changes neither, wherever the real tokens are."""
        mask = source != PAD
        xs = self.embedding(source)
        h = xs.new_zeros(len(source), self.d_reader)
        states = self.rightward(xs, h, mask)
        context = states[:, -1]
        if self.leftward is None:
            return states, context
        # the second reader begins at the other end; put its states back in the tokens' order
        back = self.leftward(xs.flip(1), h, mask.flip(1)).flip(1)
        return torch.cat([states, back], dim=-1), torch.cat([context, back[:, 0]], dim=-1)


def decode_greedy(
    step: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    state: Float[Tensor, "batch d"],
    start: int,
    stop: int,
    most: int,
) -> Int[Tensor, "batch n"]:
    """Write one sequence per row, each time the likeliest next token; return them, n <= most.

    `step(tokens, state)` maps the last tokens `(batch,)` and the state to the logits of the next
    ones `(batch, vocab)` and the new state. `start` is left out of the result. A row that has
    written `stop` holds `stop` from there on, and writing ends as soon as every row has one.
    """
    if most < 1:
        return torch.zeros(len(state), 0, dtype=torch.long, device=state.device)
    # every row begins with the start token, and none has stopped
    tokens = torch.full((len(state),), start, device=state.device)
    stopped = torch.zeros_like(tokens, dtype=torch.bool)
    written = []
    while len(written) < most and not stopped.all():
        # one step: the last tokens go in, logits and a new state come out
        logits, state = step(tokens, state)
        # take the likeliest token, but nothing more after a stop
        tokens = logits.argmax(dim=-1).masked_fill(stopped, stop)
        stopped = tokens == stop
        written.append(tokens)
    # stack the steps as columns
    return torch.stack(written, dim=1)


class Encoded(NamedTuple):
    """What a decoder may look at: a state a token, the last state, and where the tokens are."""

    states: Float[Tensor, "batch source d_hidden"]
    context: Float[Tensor, "batch d_hidden"]
    mask: Bool[Tensor, "batch 1 source"]


class Seq2Seq(nn.Module):
    """An encoder, a context and a decoder; with attention, a context anew for each step.

    h_t = GRU([y_(t-1)], h_(t-1)) with h_0 = c, the encoder's last state. `context` tells what
    else the decoder sees of c: "first" is nothing (Sutskever et al. 2014), "every" gives it to
    each step, GRU([y_(t-1); c], h_(t-1)) (Cho et al. 2014).

    `attend` is a function or module of (queries, states, mask) that returns (contexts, weights):
    the queries are the decoder's states `(batch, target, d_hidden)`, keys and values are the
    encoder's `(batch, source, d_hidden)`, and mask `(batch, 1, source)` is True at real tokens.
    The output then reads [h_t; c_t], as in Luong et al. 2015, eq. 5 without its tanh layer.
    `BahdanauSeq2Seq` is the older kind.

    Raises ValueError for another context.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_embedding: int,
        d_hidden: int,
        *,
        bidirectional: bool = False,
        context: str = "first",
        attend: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
    ):
        super().__init__()
        if context not in ("first", "every"):
            raise ValueError(f"context must be 'first' or 'every', not {context!r}")
        self.context, self.attend = context, attend
        self.encoder = RecurrentEncoder(source_vocab, d_embedding, d_hidden, bidirectional)
        self.embedding = nn.Embedding(target_vocab, d_embedding)
        self.decoder = GRU(d_embedding + (d_hidden if context == "every" else 0), d_hidden)
        self.output = nn.Linear(d_hidden * (2 if attend else 1), target_vocab)

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab"]:
        """Return the logits of the token that follows each of `target`, which opens with START."""
        encoded = self._encode(source)
        read, _, _ = self._steps(target, encoded.context, encoded)
        return self.output(read)

    @torch.no_grad()
    def weights(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target source"]:
        """Return where the decoder looks when it predicts what follows each token of `target`.

        Raises ValueError for a model without attention.
        """
        if self.attend is None:
            raise ValueError("this model has no attention, so it has no weights to show")
        encoded = self._encode(source)
        return self._steps(target, encoded.context, encoded)[2]

    def start(
        self, source: Int[Tensor, "batch source"]
    ) -> tuple[Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], Float[Tensor, "batch d_hidden"]]:
        """Read the source; return the `step` and the first `state` that `decode_greedy` takes."""
        encoded = self._encode(source)

        def step(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
            read, state, _ = self._steps(tokens[:, None], state, encoded)
            return self.output(read[:, -1]), state

        return step, encoded.context

    @torch.no_grad()
    def decode(
        self, source: Int[Tensor, "batch source"], max_new_tokens: int
    ) -> Int[Tensor, "batch target"]:
        """Write greedily until each row has a STOP, or `max_new_tokens` tokens.

        START is left out, and STOP follows STOP.
        """
        return decode_greedy(*self.start(source), START, STOP, max_new_tokens)

    def _encode(self, source: Tensor) -> Encoded:
        states, context = self.encoder(source)
        return Encoded(states, context, (source != PAD)[:, None])

    def _steps(self, target: Tensor, h: Tensor, encoded: Encoded) -> tuple[Tensor, Tensor, Any]:
        """Read `target` from state h; return what the output reads, the last state, the weights."""
        xs = self.embedding(target)
        if self.context == "every":
            xs = torch.cat([xs, encoded.context[:, None].expand(-1, xs.shape[1], -1)], dim=-1)
        hidden = self.decoder(xs, h)
        if self.attend is None:
            return hidden, hidden[:, -1], None
        contexts, weights = self.attend(hidden, encoded.states, encoded.mask)
        return torch.cat([hidden, contexts], dim=-1), hidden[:, -1], weights


class BahdanauSeq2Seq(Seq2Seq):
    """Attention before the decoder's step: h_t = GRU([y_(t-1); c_t], h_(t-1)), as first published.

    c_t is what `attend` returns for the query h_(t-1), and the output reads h_t alone. No step can
    be computed before the one before it, in training either. Source: Bahdanau et al. 2015,
    section 3.1; our output is one linear layer.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_embedding: int,
        d_hidden: int,
        *,
        attend: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
        bidirectional: bool = False,
    ):
        sizes = (source_vocab, target_vocab, d_embedding, d_hidden)
        super().__init__(*sizes, bidirectional=bidirectional, context="every")
        self.attend = attend

    def _steps(self, target: Tensor, h: Tensor, encoded: Encoded) -> tuple[Tensor, Tensor, Any]:
        assert self.attend
        hidden, looked = [], []
        for x in self.embedding(target).split(1, dim=1):
            c, weights = self.attend(h[:, None], encoded.states, encoded.mask)
            h = self.decoder(torch.cat([x, c], dim=-1), h)[:, -1]
            hidden.append(h)
            looked.append(weights)
        return torch.stack(hidden, dim=1), h, torch.cat(looked, dim=1)


def next_token_loss(
    model: Seq2Seq,
    batch: tuple[Int[Tensor, "batch source"], Int[Tensor, "batch target"]],
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of predicting each next token of the target, in nats per token.

    The decoder reads the true tokens before it, not its own (teacher forcing). PAD is not counted.
    """
    source, target = batch
    logits = model(source, target[:, :-1])
    expected = target[:, 1:].flatten()
    return nn.functional.cross_entropy(logits.flatten(0, 1), expected, ignore_index=PAD)

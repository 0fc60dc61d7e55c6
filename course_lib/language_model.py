"""A language model: predict the next token of a text, and write with it (lesson 10)."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.add_norm import Norm, layer_norm
from course_lib.masks import causal_mask
from course_lib.positions import LearnedPositions
from course_lib.transformer import EncoderBlock


def examples(
    tokens: Int[Tensor, " all"], length: int, stride: int
) -> tuple[Int[Tensor, "m length"], Int[Tensor, "m length"]]:
    """Cut a text into windows, and give each token of a window the one that follows it.

    Window i begins at token i stride. Only whole windows are cut, and the last one too needs a
    token after its end; where none fits, there are no windows (0, length).

    >>> examples(torch.tensor([5, 6, 7, 8, 9]), length=2, stride=2)
    (tensor([[5, 6],
            [7, 8]]), tensor([[6, 7],
            [8, 9]]))
    """
    if len(tokens) <= length:
        return tokens.new_empty(0, length), tokens.new_empty(0, length)
    # find where windows begin, up to the last one whose next token is still in the text
    starts = torch.arange(0, len(tokens) - length, stride, device=tokens.device)
    # list the places of each window
    places = starts.unsqueeze(-1) + torch.arange(length, device=tokens.device)
    # read the text there, and one place further right
    return tokens[places], tokens[places + 1]


def cross_entropy(
    logits: Float[Tensor, "*batch vocab"],
    targets: Int[Tensor, "*batch"],
    ignore: int | None = None,
) -> Float[Tensor, ""]:
    """Average -log p(target) over all targets but those that are `ignore`, in nats.

    -log p(t) = log sum_v exp(z_v) - z_t. Where all targets are ignored the loss is 0, and so is its
    gradient. A loss of log(vocab) is what equal probabilities reach. Source: Bengio et al. 2003,
    section 2, whose log-likelihood has the other sign.
    """
    if ignore is not None and (targets == ignore).all():
        return logits[..., :0].sum()
    # turn the logits into logarithms of probabilities, by the logarithm of a sum of exponentials
    log_probabilities = logits - torch.logsumexp(logits, dim=-1, keepdim=True)
    # find the targets that count; the others may be no tokens at all, and 0 takes their place
    counts = torch.ones_like(targets, dtype=torch.bool) if ignore is None else targets != ignore
    chosen = targets.masked_fill(~counts, 0).unsqueeze(-1)
    # look up the target's, and leave out what does not count
    losses = -log_probabilities.gather(-1, chosen).squeeze(-1)
    # average over the targets that count
    return losses.masked_fill(~counts, 0.0).sum() / counts.sum()


def perplexity(
    losses: Float[Tensor, "..."], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, ""]:
    """Return exp of the mean loss: how many equally likely tokens would be as hard to guess.

    `losses` are in nats, one a token. The mean is over all tokens of the batch together that are
    real, where `mask` is True; without any, the perplexity is 1. Source: Jelinek et al. 1977.
    """
    if mask is not None and not mask.any():
        return losses.new_ones(())
    # without a mask every token is real
    real = torch.ones_like(losses, dtype=torch.bool) if mask is None else mask
    # average over all real tokens together
    mean = losses.masked_fill(~real, 0.0).sum() / real.sum()
    # go back from logarithms
    return torch.exp(mean)


def next_token_losses(
    logits: Float[Tensor, "*batch n vocab"], tokens: Int[Tensor, "*batch n"]
) -> Float[Tensor, "*batch n-1"]:
    """Return the loss of each token of a text but the first, in nats.

    Row t of the logits was computed from tokens 0 to t, and scores the token after them. Source:
    Radford et al. 2019, eq. 1.
    """
    log_probabilities = logits.log_softmax(dim=-1)
    # the last row scores a token that is not in the text
    scoring = log_probabilities[..., :-1, :]
    # each other row scores the token one place further right
    following = tokens[..., 1:]
    # look up what the tokens that came had been given
    return -scoring.gather(-1, following.unsqueeze(-1)).squeeze(-1)


class TokenEmbedding(nn.Module):
    """Hold one vector for each token of the vocabulary, and learn them."""

    def __init__(self, vocab: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocab, d_model) / d_model**0.5)

    def forward(self, tokens: Int[Tensor, "..."]) -> Float[Tensor, "... d_model"]:
        """Look up the tokens."""
        return self.table[tokens]


class LanguageModel(nn.Module):
    """Score every token of the vocabulary as the next one, after each token of a text.

    Token embeddings plus learned positions, pre-norm blocks under a causal mask, a last norm, and
    an output layer without a bias whose matrix is the embedding's table (Press & Wolf 2017).
    Source: Radford et al. 2019, section 2.3. `embedding(vocab, d_model)` makes what looks tokens
    up, and has a `table`; `positions(max_length, d_model)` what adds their positions; `block` is
    as in `Encoder`; `norm_layer(x, gain, bias)` is the last norm.
    """

    def __init__(
        self,
        vocab: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        max_length: int,
        *,
        embedding: Callable[[int, int], nn.Module] = TokenEmbedding,
        positions: Callable[[int, int], nn.Module] = LearnedPositions,
        block: Callable[..., nn.Module] = EncoderBlock,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        self.embedding = embedding(vocab, d_model)
        self.positions = positions(max_length, d_model)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, "pre") for _ in range(layers))
        self.last_norm = Norm(d_model, norm_layer)
        self.output = nn.Linear(d_model, vocab, bias=False)
        self.output.weight = self.embedding.get_parameter("table")

    def forward(self, tokens: Int[Tensor, "*batch n"]) -> Float[Tensor, "*batch n vocab"]:
        """Return the logits of the token after each of `tokens`.

        Raises ValueError for more tokens than `max_length`.
        """
        # look up the tokens, and add their positions
        x = self.positions(self.embedding(tokens))
        # pass them through block after block, under a causal mask
        mask = causal_mask(tokens.shape[-1], device=tokens.device)
        for block in self.blocks:
            x = block(x, mask)
        # normalise what no block has normalised, and score every token of the vocabulary
        return self.output(self.last_norm(x))


class SquaredReLU(nn.Module):
    """Widen each token, cut off what is negative, square the rest, and bring it back.

    W_2 max(0, W_1 x)^2, two matrices without biases. Source: So et al. 2021, section 3.
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff, bias=False)
        self.w_2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Send every token through the network."""
        return self.w_2(torch.relu(self.w_1(x)).square())


def temper(logits: Float[Tensor, "... vocab"], temperature: float) -> Float[Tensor, "... vocab"]:
    """Make likely tokens likelier (below 1), or all more alike (above 1): logits / temperature.

    Source: Ackley et al. 1985. Raises ValueError for a temperature that is not positive.
    """
    if not temperature > 0:
        raise ValueError(
            f"a temperature must be positive, not {temperature}: take the argmax for the limit 0"
        )
    return logits / temperature


def top_k(logits: Float[Tensor, "... vocab"], k: int) -> Float[Tensor, "... vocab"]:
    """Keep the k largest logits, and make all others minus infinity.

    Of equal logits the lower ids stay; k above the vocabulary keeps all. Source: Fan et al. 2018.
    Raises ValueError for k < 1.
    """
    if k < 1:
        raise ValueError(f"top-k keeps at least one token, so k must be 1 or more, not {k}")
    if k >= logits.shape[-1]:
        return logits
    # order the tokens from the largest logit down, lower ids first among equals
    order = logits.argsort(dim=-1, descending=True, stable=True)
    # mark the first k of them at their places in the vocabulary
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order[..., :k], True)
    # hide the rest
    return logits.masked_fill(~kept, -torch.inf)


def top_p(logits: Float[Tensor, "... vocab"], p: float) -> Float[Tensor, "... vocab"]:
    """Keep the fewest likeliest tokens whose probabilities sum to at least p; hide the others.

    Hidden logits become minus infinity; one token at least stays, and of equally likely ones the
    lower ids. Also called nucleus sampling. Source: Holtzman et al. 2020, section 3.1. Raises
    ValueError for p outside (0, 1].
    """
    if not 0 < p <= 1:
        raise ValueError(f"p is a share of probability, above 0 and at most 1, not {p}")
    # order the tokens from the likeliest down, lower ids first among equals
    order = logits.argsort(dim=-1, descending=True, stable=True)
    probabilities = torch.softmax(logits, dim=-1).gather(-1, order)
    # a token is needed while those before it sum to less than p
    before = probabilities.cumsum(-1) - probabilities
    # mark the needed ones at their places in the vocabulary, and hide the rest
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)
    return logits.masked_fill(~kept, -torch.inf)


@torch.no_grad()
def generate(
    model: Callable[[Tensor], Tensor],
    prompt: Int[Tensor, " n"],
    max_new_tokens: int,
    max_length: int,
    generator: torch.Generator,
    choose: Callable[[Tensor], Tensor] = lambda logits: logits,
) -> Int[Tensor, " all"]:
    """Go on with a prompt: draw each next token from softmax(choose(logits)).

    `model(tokens)` returns a row of logits for the token after each of `tokens`, and reads the last
    `max_length` tokens at most. `choose` changes logits, such as `lambda logits: logits / 0.8`.
    Each token is one draw of `torch.multinomial` by the generator. Returns the prompt and what was
    written. Source: Shannon 1948, section 3. Raises ValueError for an empty prompt.
    """
    if not len(prompt):
        raise ValueError(
            "a model goes on with a prompt, and this one is empty: give it a line break, at least"
        )
    tokens = prompt
    for _ in range(max_new_tokens):
        # score every token as the next one, by what the model has room for
        logits = model(tokens[-max_length:])[-1]
        # turn what is chosen of them into probabilities
        probabilities = torch.softmax(choose(logits), dim=0)
        # draw one token, and read it from now on
        drawn = torch.multinomial(probabilities, 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return tokens

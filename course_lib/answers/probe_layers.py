"""Layers that a `Probe` names: each side of the handle makes its own, and no live one passes."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

LAYERS: dict[str, Callable[..., Callable]] = {}


def layer(make: Callable) -> Callable:
    """Let a probe name the function below."""
    LAYERS[make.__name__] = make
    return make


@layer
def linear(d_in: int, d_out: int, bias: bool = True) -> nn.Module:
    """Map each word by a matrix and a bias, if any, which are weights like any others."""
    return nn.Linear(d_in, d_out, bias)


class _WithoutCopy(nn.Linear):
    """A layer of known weights, whose copy has others."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__(d_in, d_out)
        with torch.no_grad():
            self.weight.copy_(torch.arange(d_in * d_out).view(d_out, d_in))

    def __deepcopy__(self, memo: dict) -> nn.Module:
        return nn.Linear(self.in_features, self.out_features)


@layer
def linear_that_has_no_copy(d_in: int, d_out: int) -> nn.Module:
    """Map each word by the matrix of 0, 1, 2, ...; a copy has another one."""
    return _WithoutCopy(d_in, d_out)


@layer
def running_mean() -> Callable:
    """Average each word with those before it: causal."""
    return lambda x: x.cumsum(-2) / torch.arange(1, x.shape[-2] + 1).unsqueeze(-1).to(x)


@layer
def whole_mean(factor: float = 1.0) -> Callable:
    """Average all words, times a factor: only the last one has no future to see."""
    return lambda x: factor * x.mean(-2, keepdim=True).expand_as(x)


@layer
def scaled() -> Callable:
    """Multiply the words by a factor that comes as a second argument."""

    def multiply(x: Tensor, factor: Tensor) -> Tensor:
        return x * factor

    return multiply


@layer
def ahead(places: int) -> Callable:
    """Add to each word the one that stands so many places to its right, where there is one."""

    def add_later(x: Tensor) -> Tensor:
        beyond = torch.zeros_like(x[..., :places, :])
        return x + torch.cat([x[..., places:, :], beyond], dim=-2)

    return add_later


@layer
def next_above_zero(sign: int) -> Callable:
    """Add to each word what of the next one, times a sign, is above zero."""

    def add_later(x: Tensor) -> Tensor:
        return x + torch.cat([(sign * x[..., 1:, :]).relu(), torch.zeros_like(x[..., :1, :])], -2)

    return add_later


@layer
def one_leak(position: int, word: int) -> Callable:
    """Let one position see one word beside its own, and all others their own only."""

    def mix(x: Tensor) -> Tensor:
        seen = torch.eye(x.shape[-2]).to(x)
        seen[position : position + 1, word : word + 1] = 1
        return seen @ x

    return mix


@layer
def opened_by_first_word() -> Callable:
    """Average all words of a sentence whose first number is positive; leave others as they are."""
    return lambda x: torch.where(x[..., :1, :1] > 0, x.mean(-2, keepdim=True), x)


@layer
def mean_in_last_column() -> Callable:
    """Give each word one number more: the mean over all words of its last one."""

    def append(x: Tensor) -> Tensor:
        mean = x[..., -1:].mean(-2, keepdim=True)
        return torch.cat([x, mean.expand_as(x[..., -1:])], dim=-1)

    return append


@layer
def mean_and_its_opposite() -> Callable:
    """Give each word two numbers more: the mean of all, and minus that, which cancel in a sum."""

    def append(x: Tensor) -> Tensor:
        mean = x.mean((-2, -1), keepdim=True).expand_as(x[..., :1])
        return torch.cat([x, mean, -mean], dim=-1)

    return append


@layer
def mean_of_centred() -> Callable:
    """Average all words, each brought to mean 0 before, as a norm does."""

    def average(x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred.mean(-2, keepdim=True).expand_as(x).clone()

    return average


@layer
def rounded_by_later() -> Callable:
    """Multiply the words by a number that later ones change, and divide by it: causal, rounded."""

    def there_and_back(x: Tensor) -> Tensor:
        size = 3 + x.square().sum((-2, -1), keepdim=True)
        return x * size / size

    return there_and_back


@layer
def first_is_nan() -> Callable:
    """Give the first word NaN, and leave the others as they are: causal."""

    def spoil(x: Tensor) -> Tensor:
        first = torch.arange(x.shape[-2]).unsqueeze(-1) == 0
        return x.masked_fill(first.to(x.device), torch.nan)

    return spoil


@layer
def unchanged() -> Callable:
    """Return the very tensor that came in, as dropout does that is off."""
    return lambda x: x


@layer
def one_mean_for_all() -> Callable:
    """Average all words, and give each of them the same memory: nobody may write there."""
    return lambda x: x.mean(-2, keepdim=True).expand_as(x)


@layer
def told_apart() -> Callable:
    """Add to the words what comes after them, each with its own factor; any of it may be None."""

    def add_all(
        x: Tensor,
        first: Tensor | None = None,
        second: Tensor | None = None,
        third: Tensor | None = None,
    ) -> Tensor:
        given = enumerate((first, second, third), 2)
        return 0.5 * x + sum(factor * y for factor, y in given if y is not None)

    return add_all


@layer
def nan_before_negative() -> Callable:
    """Make NaN of each number that one below zero follows, and leave the others as they are."""

    def spoil(x: Tensor) -> Tensor:
        negative = torch.cat(
            [x[..., 1:, :] < 0, torch.zeros_like(x[..., :1, :], dtype=torch.bool)], -2
        )
        return x.masked_fill(negative, torch.nan)

    return spoil


@layer
def mean_beside_nan() -> Callable:
    """Average all words, and give each result one number more, NaN."""

    def average(x: Tensor) -> Tensor:
        mean = x.mean(-2, keepdim=True).expand_as(x)
        return torch.cat([torch.full_like(x[..., :1], torch.nan), mean], dim=-1)

    return average


@layer
def scaled_and_shifted() -> Callable:
    """Multiply the words by a second argument, and add a third."""

    def multiply_and_add(x: Tensor, factor: Tensor, shift: Tensor) -> Tensor:
        return x * factor + shift

    return multiply_and_add


@layer
def counting_decoder(vocab: int, factor: int, largest: int = 0) -> Callable:
    """Take one step of a decoder: what it writes depends on the last tokens and on the state.

    The largest logit is always the same.
    """

    def step(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        likeliest = (factor * tokens + state.sum(-1).round().long()).remainder(vocab)
        distance = torch.arange(vocab, device=tokens.device) - likeliest.unsqueeze(-1)
        return (largest - distance.square()).to(state), state + 1

    return step


@layer
def counting_translator(vocab: int, factor: int, stop: int, learns: bool = False) -> nn.Module:
    """Make an encoder-decoder without parameters, whose next token depends on all that it may see.

    About one in seven of its tokens is `stop`; the others are 1 to 9, and 11. The decoder's states
    are how far each token is from the next one, of which the output makes logits. One that
    `learns` refuses to be called without gradients.
    """

    def visible(source: Tensor, mask: Tensor | None) -> Tensor:
        return torch.ones_like(source) if mask is None else mask.squeeze(-2).to(source)

    class Opposite(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            return -states

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.output = Opposite()

        def encoder(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
            source = tokens.to(torch.float32)
            total = (source * visible(source, mask)).sum(-1, keepdim=True)
            return (source + total).unsqueeze(-1)

        def decoder(self, tokens: Tensor, memory: Tensor, memory_mask: Tensor | None = None):
            states = memory.squeeze(-1)
            read = (states * visible(states, memory_mask)).sum(-1, keepdim=True)
            places = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)
            number = factor * (tokens * places).cumsum(-1) + places + read.long()
            others = torch.where(number % 11 == 5, 11, 1 + number % 9)
            likeliest = torch.where(number % 7 == 3, stop, others)
            every = torch.arange(vocab, device=tokens.device)
            return (every - likeliest.unsqueeze(-1)).square().to(memory)

        def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None):
            if learns and not torch.is_grad_enabled():
                raise RuntimeError("asked under `no_grad`: no gradient would reach the model")
            return self.output(self.decoder(target, self.encoder(source, source_mask), source_mask))

    return Translator()


@layer
def stretch_and_shift() -> Callable:
    """Leave out a norm's division, and keep what it has learned."""

    def stretch(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return gain * x + bias

    return stretch


@layer
def average_of_values() -> Callable:
    """Attend to all keys alike, whatever the queries."""

    # no default: whoever attends hands a mask over, or None
    def average(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return v.mean(-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1])

    return average


@layer
def attention_by_softmax() -> Callable:
    """Attend by a softmax of scaled dot products; heads may share their keys in groups."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1) @ v

    return attend


@layer
def attention_without_softmax() -> Callable:
    """Attend by the dot products themselves, as a rule without a softmax does."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = q @ k.mT
        return (scores if mask is None else scores.masked_fill(~mask, 0.0)) @ v

    return attend


@layer
def attention_to_all_alike() -> Callable:
    """Make of (d_model, heads) an attention of one matrix that adds up all that it may see."""

    class AllAlike(nn.Module):
        def __init__(self, d_model: int, heads: int):
            super().__init__()
            self.w, self.heads = nn.Linear(d_model, d_model, bias=False), heads

        def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
            seen = torch.ones(query.shape[-2], key.shape[-2]).to(query)
            seen = seen if mask is None else seen * mask
            return self.w(query) / self.heads + seen @ value

        def __deepcopy__(self, memo: dict) -> nn.Module:
            # whoever wants another one makes it: a copy is told by its number of heads
            return AllAlike(self.w.in_features, 2 * self.heads)

    return AllAlike


@layer
def network_of_one_matrix() -> Callable:
    """Make of (d_model, d_ff) a network of one matrix, divided by d_ff."""

    class OneMatrix(nn.Module):
        def __init__(self, d_model: int, d_ff: int):
            super().__init__()
            self.w, self.d_ff = nn.Linear(d_model, d_model), d_ff

        def forward(self, x: Tensor) -> Tensor:
            return self.w(x) / self.d_ff

    return OneMatrix


@layer
def sum_of_seen() -> Callable:
    """Make of (d_model, *sizes) a layer of one matrix that adds up all words it may see."""

    class SumOfSeen(nn.Module):
        def __init__(self, d_model: int, *sizes: int | str):
            super().__init__()
            self.w = nn.Linear(d_model, d_model, bias=False)
            self.number = sum(size for size in sizes if isinstance(size, int))

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            seen = torch.ones(x.shape[-2], x.shape[-2]).to(x)
            seen = seen if mask is None else seen * mask
            return self.w(x) / self.number + seen @ x

    return SumOfSeen


@layer
def sum_of_seen_and_memory() -> Callable:
    """Make of (d_model, *sizes) such a layer that adds up what it may see of the memory too."""

    class SumOfSeenAndMemory(sum_of_seen()):
        def forward(
            self,
            x: Tensor,
            memory: Tensor,
            mask: Tensor | None = None,
            memory_mask: Tensor | None = None,
        ) -> Tensor:
            seen = torch.ones(x.shape[-2], memory.shape[-2]).to(x)
            seen = seen if memory_mask is None else seen * memory_mask
            return super().forward(x, mask) + seen @ memory

    return SumOfSeenAndMemory


@layer
def doubled_table() -> Callable:
    """Make of (vocab, d_model) a table of tokens whose rows are read twice as large."""

    class DoubledTable(nn.Module):
        def __init__(self, vocab: int, d_model: int):
            super().__init__()
            self.table = nn.Parameter(torch.randn(vocab, d_model))

        def forward(self, tokens: Tensor) -> Tensor:
            return 2 * self.table[tokens]

    return DoubledTable


@layer
def number_added() -> Callable:
    """Make of (max_length, d_model) a layer that adds each place's number to its word."""

    class NumberAdded(nn.Module):
        def __init__(self, max_length: int, d_model: int):
            super().__init__()
            self.share = 1 / (max_length * d_model)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.share * torch.arange(x.shape[-2]).to(x).unsqueeze(-1)

    return NumberAdded


@layer
def counted_positions() -> Callable:
    """Describe each position by its number, in every column."""
    return lambda n, d_model: torch.arange(float(n)).unsqueeze(-1).expand(n, d_model)


@layer
def next_token(vocab: int, factor: int, never: int = 0) -> Callable:
    """Give each prefix, whose length counts too, its own log-probabilities of the next token.

    About one token in `never` has the probability 0 (all of them for 1, none for 0). More than
    200 prefixes at once are refused, before an answer that drops none fills the memory.
    """

    def step(prefixes: Tensor) -> Tensor:
        if len(prefixes) > 200:
            raise ValueError(f"no beam here needs {len(prefixes)} prefixes at once: drop the rest")
        places = torch.arange(1, prefixes.shape[-1] + 1)
        number = (prefixes * places * factor + places).sum(-1, keepdim=True)
        every = torch.arange(vocab)
        logits = 2 * torch.sin((number * (every + 2) + factor * every).to(torch.float64))
        if never:
            logits = logits.masked_fill((number + every) % never == 0, -torch.inf)
        return torch.log_softmax(logits, -1).nan_to_num(nan=-torch.inf, neginf=-torch.inf)

    return step


@layer
def probabilities_of(written: int, factor: int) -> Callable:
    """Give each source of a batch the probabilities of so many tokens: each place counts apart."""

    def read(sources: Tensor) -> Tensor:
        _, length = sources.shape
        places = torch.arange(1, length + 1) + length * torch.arange(written).unsqueeze(-1)
        number = (factor * places * (sources.unsqueeze(-2) + places)).sum(-1)
        return torch.sin(number.to(torch.float64)).square().float()

    return read


@layer
def text_scores(vocab: int, factor: int) -> Callable:
    """Score the next token after each of the last `rows` tokens of a text, by all before it."""
    step = next_token(vocab, factor)

    def score(tokens: list[int], rows: int) -> Tensor:
        ends = range(len(tokens) - rows + 1, len(tokens) + 1)
        return torch.cat([step(torch.tensor([tokens[:end]])) for end in ends])

    return score


@layer
def scores_of_each(vocab: int, factor: int) -> Callable:
    """Score the next token after each token of a text, by all up to it; no log-probabilities."""
    score = text_scores(vocab, factor)
    return lambda tokens: 1.5 * score(tokens.tolist(), len(tokens)) + 1


@layer
def signed_text_scores(vocab: int, factor: int) -> Callable:
    """Score the next token as `text_scores` does, but some above zero and some below."""
    score = text_scores(vocab, factor)
    return lambda tokens, rows: score(tokens, rows) + math.log(vocab)


@layer
def random_numbers(seed: int) -> torch.Generator:
    """Draw from this seed."""
    return torch.Generator().manual_seed(seed)


@layer
def divided_by(temperature: float) -> Callable:
    """Divide logits by a temperature."""
    return lambda logits: logits / temperature


@layer
def likeliest_alone() -> Callable:
    """Keep the largest logit, and make all others minus infinity."""
    return lambda logits: logits.masked_fill(logits < logits.max(), -torch.inf)

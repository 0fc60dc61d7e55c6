"""Ways of saying where words stand, behind one interface, in one small model (lesson 04)."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.positions import LearnedPositions, alibi, relative_attention, rotary, sinusoidal
from course_lib.self_attention import scaled_dot_product_attention

Turn = Callable[[Tensor, Tensor], Tensor]  # turns queries or keys by their positions


class NoPositions(nn.Module):
    """Say nothing: to plain self-attention, the words are a set.

    Every scheme below changes one of the two methods, and leaves the other as it is here.
    """

    def encode(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Encode the words' positions into the words, before they meet."""
        return x

    def attend(
        self,
        q: Float[Tensor, "*batch query d_k"],
        k: Float[Tensor, "*batch key d_k"],
        v: Float[Tensor, "*batch key d_k"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
        tree: Int[Tensor, "*batch query key"] | None = None,
    ) -> Float[Tensor, "*batch query d_k"]:
        """Let the words meet; `tree` counts the edges between any two, for schemes that use it."""
        return scaled_dot_product_attention(q, k, v, mask)


class Sinusoidal(NoPositions):
    """Add waves: x_i + p_i. Costs no parameters.

    Source: Vaswani et al. 2017, section 3.5.
    """

    def encode(self, x):
        """Add to each word the waves of its position."""
        return x + sinusoidal(*x.shape[-2:]).to(x)


class Learned(NoPositions):
    """Add a learned vector: x_i + p_i. Costs max_length * d_model parameters.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.positions = LearnedPositions(max_length, d_model)

    def encode(self, x):
        """Add to each word the vector of its position; ValueError past `max_length` words."""
        return self.positions(x)


class Concatenated(NoPositions):
    """Lay a learned vector beside the word: [x_i; p_i]. The word gives up its last columns for it.

    Costs max_length * columns parameters.
    """

    def __init__(self, max_length: int, columns: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, columns) / columns**0.5)

    def encode(self, x):
        """Put the vector of its position into the last columns of each word."""
        n, columns = x.shape[-2], self.table.shape[-1]
        places = self.table[:n].expand(*x.shape[:-1], columns)
        return torch.cat([x[..., :-columns], places], dim=-1)


class Relative(NoPositions):
    """Add a learned vector of the distance to each key and each value.

    Costs 2 (2 max_distance + 1) d_k parameters and O(n^2 d_k) memory. Source: Shaw et al. 2018.
    """

    def __init__(self, max_distance: int, d_k: int):
        super().__init__()
        rows = 2 * max_distance + 1
        self.key_table = nn.Parameter(torch.randn(rows, d_k) / d_k**0.5)
        self.value_table = nn.Parameter(torch.randn(rows, d_k) / d_k**0.5)

    def attend(self, q, k, v, mask=None, tree=None):
        """Let the words meet, knowing how far away and on which side the other is."""
        return relative_attention(q, k, v, self.key_table, self.value_table, mask)


class Dependency(NoPositions):
    """Add a learned vector of the distance in the dependency tree to each key and each value.

    Costs 2 (max_distance + 1) d_k parameters and O(n^2 d_k) memory; longer paths count as
    `max_distance`. Source: after Wang et al. 2019, whose distances have signs for up and down.
    """

    def __init__(self, max_distance: int, d_k: int):
        super().__init__()
        self.max_distance = max_distance
        self.key_table = nn.Parameter(torch.randn(max_distance + 1, d_k) / d_k**0.5)
        self.value_table = nn.Parameter(torch.randn(max_distance + 1, d_k) / d_k**0.5)

    def attend(self, q, k, v, mask=None, tree=None):
        """Let the words meet, knowing how many edges lie between. Raises ValueError for no tree."""
        if tree is None:
            raise ValueError(
                "expected the edges between each two words, but got no tree: "
                "pass positions.tree_distance(heads) as `tree`"
            )
        row = tree.clamp(max=self.max_distance)
        # each query has keys and values of its own now, so each query attends alone
        keys = k.unsqueeze(-3) + self.key_table[row]
        values = v.unsqueeze(-3) + self.value_table[row]
        mask = None if mask is None else mask.unsqueeze(-2)
        return scaled_dot_product_attention(q.unsqueeze(-2), keys, values, mask).squeeze(-2)


class Rotary(NoPositions):
    """Turn queries and keys by their positions. Costs no parameters, and O(n d_k) time.

    `turn(x, positions)` is `rotary`, or turns by other angles. Distances above `clamp`, if it is
    given, are read as `clamp`. Source: Su et al. 2021; Shaw et al. 2018 clip distances.
    """

    def __init__(self, turn: Turn = rotary, clamp: int | None = None):
        super().__init__()
        self.turn, self.clamp = turn, clamp

    def scores(
        self, q: Float[Tensor, "*batch n d_k"], k: Float[Tensor, "*batch n d_k"]
    ) -> Float[Tensor, "*batch n n"]:
        """Return the dot products of turned queries and keys."""
        places = torch.arange(q.shape[-2], device=q.device)
        scores = dot_scores(self.turn(q, places), self.turn(k, places))
        if self.clamp is None:
            return scores
        far = places.unsqueeze(-1) - places > self.clamp
        as_clamp = self.turn(q, torch.full_like(places, self.clamp))
        return torch.where(far, dot_scores(as_clamp, k), scores)

    def attend(self, q, k, v, mask=None, tree=None):
        """Let the words meet, turned."""
        return weighted_sum(softmax(self.scores(q, k) / q.shape[-1] ** 0.5, mask), v)


def interpolated(
    x: Float[Tensor, "... n d"],
    positions: Real[Tensor, " n"],
    stretch: float,
    trained: int = 0,
    turn: Turn = rotary,
) -> Float[Tensor, "... n d"]:
    """Turn as `turn` does, by positions divided by `stretch`, and the fast pairs as before.

    Fast are the pairs that turn all the way round within `trained` positions. Source: Chen et al.
    2023, with trained = 0; Peng et al. 2024, section 3.2, who blend the two.
    """
    d = x.shape[-1]
    wavelengths = 2 * torch.pi * 10000.0 ** (torch.arange(0, d, 2, device=x.device) / d)
    slow = (wavelengths > trained).repeat(2)
    return torch.where(slow, turn(x, positions / stretch), turn(x, positions))


class Alibi(NoPositions):
    """Take 1/2 off each score for each step of distance. Costs no parameters.

    Source: Press et al. 2022, whose eight heads have slopes from 1/2 to 1/256. There is one head
    here, and it takes the steepest.
    """

    def attend(self, q, k, v, mask=None, tree=None):
        """Let the words meet, the near ones rather than the far ones."""
        (n_q, d_k), n_k = q.shape[-2:], k.shape[-2]
        scores = dot_scores(q, k) / d_k**0.5 + alibi(n_q, n_k, heads=8)[0].to(q)
        return weighted_sum(softmax(scores, mask), v)


class Reader(nn.Module):
    """Read words and answer each of them with a word: attention, then a small network.

    Both are added to what was there. At each call every word of the vocabulary gets a new random
    vector as its name, of a length near 1, so no model can learn which words occur together: what
    it knows of places is all that helps. With `causal`, words see only themselves and those to
    their left.
    """

    def __init__(self, scheme: NoPositions, vocab: int, d_model: int = 64, causal: bool = False):
        super().__init__()
        self.scheme, self.vocab, self.d_model, self.causal = scheme, vocab, d_model, causal
        # the biases let a query ask for a place, whichever word is there
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model)
        )

    def read(
        self, x: Float[Tensor, "... n d_model"], tree: Int[Tensor, "... n n"] | None = None
    ) -> Float[Tensor, "... n d_model"]:
        """Read words that are vectors, and return one vector for each."""
        n = x.shape[-2]
        mask = torch.ones(n, n, dtype=torch.bool, device=x.device).tril() if self.causal else None
        x = self.scheme.encode(x)
        x = x + self.scheme.attend(self.query(x), self.key(x), self.value(x), mask, tree)
        return x + self.feed_forward(x)

    def forward(
        self, words: Int[Tensor, "... n"], tree: Int[Tensor, "... n n"] | None = None
    ) -> Float[Tensor, "... n vocab"]:
        """Name the words anew, read them, and score each answer against every name."""
        names = torch.randn(self.vocab, self.d_model, device=words.device) / self.d_model**0.5
        return self.read(names[words], tree) @ names.mT


def naming_loss(model: Reader, batch: tuple[Tensor, Tensor, Tensor]) -> Float[Tensor, ""]:
    """Return the cross-entropy of the wanted words, in a batch (words, tree, wanted).

    A word with nothing to name wants -1, and does not count.
    """
    words, tree, wanted = batch
    return F.cross_entropy(model(words, tree).flatten(0, -2), wanted.flatten(), ignore_index=-1)


@torch.no_grad()
def answers(
    model: Reader, batch: tuple[Tensor, Tensor, Tensor], seed: int = 0
) -> Int[Tensor, "batch n"]:
    """Return the word that each word of a batch answers with; the seed draws the names."""
    words, tree, _ = batch
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model(words, tree).argmax(-1)

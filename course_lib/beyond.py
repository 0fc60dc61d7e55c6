"""Beyond the Transformer: images, state spaces, memories of fixed size, drafts (lesson 15)."""

from collections.abc import Callable, Sequence

import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import Norm
from course_lib.positions import LearnedPositions
from course_lib.transformer import EncoderBlock


def patches(
    images: Float[Tensor, "*batch channels height width"], size: int
) -> Float[Tensor, "*batch n patch"]:
    """Cut images into squares of size x size pixels, row by row, and lay each out as a vector.

    A vector has size x size numbers of the first channel, then of the second, and so on. Source:
    Dosovitskiy et al. 2021, section 3.1. Raises ValueError for a size that does not divide the
    height and the width.

    >>> patches(torch.arange(8.0).reshape(1, 2, 4), size=2).tolist()
    [[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]
    """
    height, width = images.shape[-2:]
    if size < 1 or height % size or width % size:
        raise ValueError(
            f"patches of {size} x {size} pixels do not fill an image of {height} x {width}: choose "
            "a size that divides both, or cut the image"
        )
    # cut both sides of the image, and join what belongs to one patch
    return rearrange(
        images,
        "... channels (rows a) (columns b) -> ... (rows columns) (channels a b)",
        a=size,
        b=size,
    )


class VisionTransformer(nn.Module):
    """Classify images by an encoder: the patches are its tokens.

    A learned class token is put before the patches, and its last state is what the head reads.
    `block(d_model, heads, d_ff, norm)` makes each block. Source: Dosovitskiy et al. 2021, eq. 1 to
    4. Raises ValueError for a patch size that does not divide the image's side.
    """

    def __init__(
        self,
        classes: int,
        channels: int,
        image: int,
        patch: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        n, size = patches(torch.zeros(channels, image, image), patch).shape
        self.image, self.patch = image, patch
        self.project = nn.Linear(size, d_model)
        self.class_token = nn.Parameter(torch.randn(d_model) / d_model**0.5)
        self.positions = LearnedPositions(n + 1, d_model)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, "pre") for _ in range(layers))
        self.last_norm = Norm(d_model)
        self.head = nn.Linear(d_model, classes)

    def forward(
        self, images: Float[Tensor, "*batch channels side side"]
    ) -> Float[Tensor, "*batch classes"]:
        """Return the logits of the classes, for each image.

        Raises ValueError for images of another size than the positions were learned for.
        """
        height, width = images.shape[-2:]
        if (height, width) != (self.image, self.image):
            raise ValueError(
                f"the positions are those of {self.image} x {self.image} pixels, but the images "
                f"have {height} x {width}: scale or cut them"
            )
        # cut the images into patches, and project each one
        tokens = self.project(patches(images, self.patch))
        # put the class token before the patches of every image
        first = self.class_token.expand(*tokens.shape[:-2], 1, -1)
        x = torch.cat([first, tokens], dim=-2)
        # add the positions, and pass the tokens through block after block
        x = self.positions(x)
        for block in self.blocks:
            x = block(x)
        # read the class token alone, normalised
        return self.head(self.last_norm(x[..., 0, :]))


def contrastive_loss(
    images: Float[Tensor, "b d"], texts: Float[Tensor, "b d"], temperature: float
) -> Float[Tensor, ""]:
    """Ask of each image which text is its own, and of each text which image: the mean of both.

    s_ij = cos(image_i, text_j) / temperature, and the loss is the mean of the cross-entropy of the
    rows and of the columns of s, where the right answer is the diagonal, in nats. Source: Radford
    et al. 2021, figure 3, whose t is the logarithm of 1 / temperature.
    """
    # bring every vector to length one
    images, texts = F.normalize(images, dim=-1), F.normalize(texts, dim=-1)
    # compare every image with every text
    scores = images @ texts.mT / temperature
    # the text of image i is text i
    own = torch.arange(len(scores), device=scores.device)
    # rows choose among texts, columns among images
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.mT, own)) / 2


def scan(a: Float[Tensor, "... n d"], b: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
    """Run a linear recurrence: h_t = a_t h_(t-1) + b_t, number by number, and keep all states.

    The first state is b_1, as if a state of zeros had come before. Time O(n d), in n steps, one
    after another. Source: Blelloch 1990, section 1.4.

    >>> scan(torch.tensor([[0.5], [0.5], [0.5]]), torch.tensor([[8.0], [0.0], [1.0]])).tolist()
    [[8.0], [4.0], [3.0]]
    """
    # begin with zeros
    state, states = torch.zeros_like(b[..., 0, :]), []
    for t in range(b.shape[-2]):
        # let the state decay, and add what is new
        state = a[..., t, :] * state + b[..., t, :]
        states.append(state)
    # lay the states side by side
    return torch.stack(states, dim=-2)


def parallel_scan(
    a: Float[Tensor, "... n d"], b: Float[Tensor, "... n d"]
) -> Float[Tensor, "... n d"]:
    """Compute what `scan` does in about log2(n) rounds, each of them over all places at once.

    A stretch of steps is again one step, h -> a h + b, and two stretches, the earlier (a', b') and
    the later (a, b), join to (a a', a b' + b). In round r each place joins its own stretch, of
    2^r steps, with the one that ends 2^r places before it. Time O(n d log n), in O(log n) calls of
    torch. No division: a decay may be 0. Source: Hillis & Steele 1986; Blelloch 1990, section 1.4.
    """
    n = b.shape[-2]
    for r in range((n - 1).bit_length()):
        # every stretch is this long by now
        reach = 2**r
        # look up the stretch that ends `reach` places before, where there is one
        before_a = F.pad(a[..., :-reach, :], (0, 0, reach, 0), value=1.0)
        before_b = F.pad(b[..., :-reach, :], (0, 0, reach, 0))
        # join the two stretches
        a, b = a * before_a, a * before_b + b
    # every stretch begins at the first place: from a state of zeros, b is what it leaves
    return b


def selective(
    x: Float[Tensor, "... n d"],
    delta: Float[Tensor, "... n d"],
    a: Float[Tensor, "d s"],
    b: Float[Tensor, "... n s"],
    c: Float[Tensor, "... n s"],
) -> Float[Tensor, "... n d"]:
    """Read a sequence into a state of d x s numbers, with gates that depend on the token.

    h_t = exp(delta_t a) h_(t-1) + (exp(delta_t a) - 1) / a b_t x_t and y_t = c_t . h_t: each of d
    channels has s numbers, delta_t (of d) says how much it lets in and how much it forgets, b_t (of
    s) where x_t is written, c_t where y_t is read. a is negative, so that states decay. Time and
    memory O(n d s), in n steps; with `parallel_scan` in the place of `scan`, log n times the work
    in O(log n) rounds. Source: Gu & Dao 2023, algorithm 2 and equation 4, the zero-order hold
    (their code takes the simpler step delta_t b_t x_t).
    """
    # how much of each number of the state is kept
    exponent = einsum(delta, a, "... n d, d s -> ... n d s")
    kept = exponent.exp()
    # what a constant input writes into it meanwhile
    written = einsum(exponent.expm1() / a, x, b, "... n d s, ... n d, ... n s -> ... n d s")
    # run the recurrence on all d x s numbers side by side
    flat = (rearrange(z, "... n d s -> ... n (d s)") for z in (kept, written))
    states = rearrange(scan(*flat), "... n (d s) -> ... n d s", s=a.shape[-1])
    # read the state
    return einsum(states, c, "... n d s, ... n s -> ... n d")


CHUNK = 32  # tokens that `delta_rule_in_chunks` reads at once


def delta_rule(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    beta: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Store values under keys in one matrix, and replace what a key had stored before.

    S_t = S_(t-1) + beta_t k_t (v_t - S_(t-1)^T k_t)^T and o_t = S_t^T q_t, with vectors as columns;
    S is `(d, d_v)`, of zeros before the first token. For a key of norm 1 and beta 1, S_t^T k_t is
    v_t exactly. Time O(n d d_v), in n steps; memory of the state O(d d_v), whatever n.
    Source: Schlag et al. 2021, section 4.2, without their feature map; Yang et al. 2024, section 2.
    """
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    for t in range(q.shape[-2]):
        # ask the state what it holds under this key
        held = einsum(k[..., t, :], state, "... d, ... d d_v -> ... d_v")
        # compare with the value that it should hold, and write a share of the difference
        change = beta[..., t, None] * (v[..., t, :] - held)
        state = state + einsum(k[..., t, :], change, "... d, ... d_v -> ... d d_v")
        # read by the query
        outputs.append(einsum(q[..., t, :], state, "... d, ... d d_v -> ... d_v"))
    return torch.stack(outputs, dim=-2)


def delta_rule_in_chunks(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    beta: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Compute what `delta_rule` does, chunk by chunk: matrix products in the place of steps.

    Time O(n (chunk + d) d_v) in n / chunk steps. Inside a chunk, the changes u_t that the tokens
    write solve u_t + beta_t sum_(j < t) (k_t . k_j) u_j = beta_t (v_t - k_t S), a triangular system
    of linear equations. Source: Yang et al. 2024, section 3.
    """
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    chunks = (x.split(CHUNK, dim=-2) for x in (q, k, v, beta.unsqueeze(-1)))
    for q_now, k_now, v_now, share in zip(*chunks, strict=True):
        # solve for what each token of the chunk writes
        earlier = (share * k_now @ k_now.mT).tril(-1)
        change = torch.linalg.solve_triangular(
            earlier, share * (v_now - k_now @ state), upper=False, unitriangular=True
        )
        # read the state before the chunk, and what the chunk has written up to each token
        outputs.append(q_now @ state + (q_now @ k_now.mT).tril() @ change)
        state = state + k_now.mT @ change
    return torch.cat(outputs, dim=-2)


def matrix_memory(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    decay: Float[Tensor, "... n"],
    erase: Float[Tensor, "... n"],
    write: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Store values under keys in one matrix that decays, erases and writes.

    S_t = decay_t (S_(t-1) - erase_t k_t k_t^T S_(t-1)) + write_t k_t v_t^T and o_t = S_t^T q_t,
    with vectors as columns; S is `(d, d_v)`, of zeros before the first token. With decay 1 and
    erase 0 it is linear attention without a normaliser, with erase = write = beta the delta rule,
    gated where it also decays. Time O(n d d_v), in n steps; memory of the state O(d d_v), whatever
    n. Source: Yang et al. 2025 (the gated delta rule), section 3.
    """
    state = q.new_zeros(*v.shape[:-2], q.shape[-1], v.shape[-1])
    outputs = []
    for t in range(q.shape[-2]):
        key = k[..., t, :]
        # let the whole memory decay
        state = decay[..., t, None, None] * state
        # ask what is left under this key
        held = einsum(key, state, "... d, ... d d_v -> ... d_v")
        # write the new value, and take the old one out
        change = write[..., t, None] * v[..., t, :] - erase[..., t, None] * held
        state = state + einsum(key, change, "... d, ... d_v -> ... d d_v")
        # read by the query
        outputs.append(einsum(q[..., t, :], state, "... d, ... d d_v -> ... d_v"))
    return torch.stack(outputs, dim=-2)


def matrix_memory_at_once(
    q: Float[Tensor, "... n d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n d_v"],
    decay: Float[Tensor, "... n"],
    erase: Float[Tensor, "... n"],
    write: Float[Tensor, "... n"],
) -> Float[Tensor, "... n d_v"]:
    """Compute what `matrix_memory` does without a loop, for short texts and decays above 0.

    What token j wrote has decayed by g_tj, the product of the decays from j + 1 to t, when token t
    comes. The changes u_t solve u_t + erase_t sum_(j < t) g_tj (k_t . k_j) u_j = write_t v_t, a
    triangular system. Time O(n^2 (d + d_v)). Source: Yang et al. 2025, section 3.
    """
    logs = decay.log().cumsum(-1)
    faded = (logs.unsqueeze(-1) - logs.unsqueeze(-2)).tril().exp()
    # solve for what each token changes
    earlier = (erase.unsqueeze(-1) * faded * (k @ k.mT)).tril(-1)
    change = torch.linalg.solve_triangular(
        earlier, write.unsqueeze(-1) * v, upper=False, unitriangular=True
    )
    # read all that has been changed so far, as far as it has decayed
    return (faded * (q @ k.mT)).tril() @ change


# (tokens so far, how many at most) -> (tokens drafted, the distribution that each was drawn from)
Draft = Callable[[list[int], int], tuple[Int[Tensor, " m"], Float[Tensor, "m vocab"]]]
# (tokens so far, how many rows) -> distributions of the next token after each of the last rows
Score = Callable[[list[int], int], Float[Tensor, "rows vocab"]]


def accept(
    drafted: Int[Tensor, " m"],
    draft: Float[Tensor, "m vocab"],
    target: Float[Tensor, "m+1 vocab"],
    uniform: Float[Tensor, " m"],
) -> tuple[int, Float[Tensor, " vocab"]]:
    """Accept the first drafted tokens that a test passes: returns (count, probabilities).

    Token x_i was drawn from draft_i; target_i is what the large model says there. It is accepted
    while uniform_i < target_i(x_i) / draft_i(x_i), and the first refusal ends it. `probabilities`
    are those of the one token to draw next: max(target_i - draft_i, 0), divided by its sum, at the
    first refusal i; the last row of target where nothing was refused. With uniform drawn from
    [0, 1), the text is distributed as the large model's own. Source: Leviathan et al. 2023,
    algorithm 1.
    """
    rows = torch.arange(len(drafted), device=drafted.device)
    # look up the probability that each model gave to the drafted token
    wanted, offered = target[rows, drafted], draft[rows, drafted]
    # count the tokens before the first refusal
    passes = uniform * offered < wanted
    count = int(passes.cumprod(dim=0).sum())
    # nothing refused: the large model's next distribution is at hand
    if count == len(drafted):
        return count, target[count]
    # otherwise draw from where the large model wants more than the draft offered
    missing = (target[count] - draft[count]).clamp(min=0)
    return count, missing / missing.sum()


def speculate(
    score: Score, draft: Draft, tokens: Sequence[int], new: int, ahead: int, seed: int
) -> tuple[list[int], int]:
    """Write `new` tokens, `ahead` of them drafted at a time: returns (all tokens, rounds).

    Each round calls `score` once, for the token after the text and after each drafted token. The
    text is distributed as if `score` alone had drawn token after token. Source: Leviathan et al.
    2023, algorithm 1.
    """
    generator = torch.Generator().manual_seed(seed)
    text, rounds, end = list(tokens), 0, len(tokens) + new
    while len(text) < end:
        # the last token of a round is the large model's own
        drafted, offered = draft(text, min(ahead, end - len(text) - 1))
        target = score(text + drafted.tolist(), len(drafted) + 1)
        uniform = torch.rand(len(drafted), generator=generator)
        count, probabilities = accept(drafted, offered, target, uniform)
        drawn = int(torch.multinomial(probabilities, 1, generator=generator))
        text += [*drafted[:count].tolist(), drawn]
        rounds += 1
    return text, rounds

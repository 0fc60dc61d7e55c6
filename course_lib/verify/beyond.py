"""The comparisons of `course_lib.beyond`."""

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import beyond
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights, part, torch_block


@compare(beyond.patches, "`F.unfold`")
def _patches(inputs: Inputs):
    channels, rows, columns, size = inputs.sizes(4, 1, 4)
    images = inputs.normal(*inputs.batch(), channels, rows * size, columns * size)
    flat = images.reshape(-1, *images.shape[-3:])
    theirs = F.unfold(flat, size, stride=size).mT
    return beyond.patches(images, size), theirs.reshape(*images.shape[:-3], *theirs.shape[1:])


@compare(beyond.VisionTransformer, "`F.conv2d`, a stack of `nn.TransformerEncoderLayer`")
def _vision_transformer(inputs: Inputs):
    classes, channels, side, patch, layers, heads, d_k, d_ff, batch = inputs.sizes(9, 1, 3)
    d_model = heads * d_k
    ours = beyond.VisionTransformer(
        classes, channels, side * patch, patch, layers, d_model, heads, d_ff
    )
    weights = draw_weights(inputs, ours)
    images = inputs.normal(batch, channels, side * patch, side * patch)
    # a convolution whose steps are as wide as its window projects patch by patch
    kernel = weights["project.weight"].unflatten(1, (channels, patch, patch))
    seen = F.conv2d(images, kernel, weights["project.bias"], stride=patch).flatten(2).mT
    first = weights["class_token"].expand(batch, 1, -1)
    x = torch.cat([first, seen], dim=1) + weights["positions.table"]
    everything = torch.ones(batch, 1, x.shape[1], dtype=torch.bool)
    for i in range(layers):
        x = torch_block(part(weights, f"blocks.{i}."), heads, "pre", x, everything)
    last = (weights["last_norm.gain"], weights["last_norm.bias"])
    state = F.layer_norm(x, (d_model,), *last)[:, 0]
    theirs = F.linear(state, weights["head.weight"], weights["head.bias"])
    return functional_call(ours, weights, images), theirs


@compare(beyond.contrastive_loss, "`F.cosine_similarity`, and the loss pair by pair")
def _contrastive_loss(inputs: Inputs):
    b, d, tenths = inputs.sizes(3, 1, 8)
    images, texts = inputs.normal(b, d), inputs.normal(b, d)
    scores = F.cosine_similarity(images[:, None], texts[None], dim=-1) * 10 / tenths
    losses = [torch.logsumexp(x[i], 0) - x[i, i] for x in (scores, scores.mT) for i in range(b)]
    return beyond.contrastive_loss(images, texts, tenths / 10), torch.stack(losses).mean()


@compare(beyond.scan, "each state as a weighted sum of all that came before")
def _scan(inputs: Inputs):
    a, b, shown = _steps(inputs)
    return beyond.scan(a * shown, b), _weighted_sums(a * shown, b)


@compare(beyond.parallel_scan, "the same")
def _parallel_scan(inputs: Inputs):
    a, b, shown = _steps(inputs)
    return beyond.parallel_scan(a * shown, b), _weighted_sums(a * shown, b)


@compare(beyond.selective, "its recurrence, token by token and number by number")
def _selective(inputs: Inputs):
    n, d, s = inputs.sizes(3)
    x, delta, a = inputs.normal(n, d), inputs.normal(n, d), inputs.normal(d, s)
    b, c = inputs.normal(n, s), inputs.normal(n, s)
    ours = beyond.selective(x, delta.abs(), -a.abs(), b, c)
    delta, a = delta.abs(), -a.abs()
    state = [[torch.zeros((), dtype=x.dtype) for _ in range(s)] for _ in range(d)]
    rows = []
    for t in range(n):
        for i in range(d):
            for j in range(s):
                kept = torch.exp(delta[t, i] * a[i, j])
                held = (kept - 1) / a[i, j] * b[t, j] * x[t, i]
                state[i][j] = kept * state[i][j] + held
        states = torch.stack([torch.stack(channel) for channel in state])
        rows.append((c[t] * states).sum(-1))
    return ours, torch.stack(rows)


def _steps(inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Draw decays, what is new, and a mask of the decays that are not 0."""
    batch, (n,), (d,) = inputs.batch(), inputs.sizes(1, 2, 9), inputs.sizes(1)
    a, b = inputs.normal(*batch, n, d), inputs.normal(*batch, n, d)
    return a, b, inputs.mask(n, d)


def _weighted_sums(a: Tensor, b: Tensor) -> Tensor:
    rows = []
    for i in range(b.shape[-2]):
        decays = [a[..., j + 1 : i + 1, :].prod(dim=-2) for j in range(i + 1)]
        rows.append(sum(decay * b[..., j, :] for j, decay in enumerate(decays)))
    return torch.stack([torch.as_tensor(row) for row in rows], dim=-2)


@compare(beyond.delta_rule, "S_t = (I - beta_t k_t k_t^T) S_(t-1) + beta_t k_t v_t^T")
def _delta_rule(inputs: Inputs):
    return _both(inputs, beyond.delta_rule, longest=6)


@compare(beyond.delta_rule_in_chunks, "the same")
def _in_chunks(inputs: Inputs):
    return _both(inputs, beyond.delta_rule_in_chunks, longest=70)


@compare(beyond.matrix_memory, "products of matrices, which decay last")
def _matrix_memory(inputs: Inputs):
    return _memories(inputs, beyond.matrix_memory)


@compare(beyond.matrix_memory_at_once, "the same")
def _at_once(inputs: Inputs):
    return _memories(inputs, beyond.matrix_memory_at_once)


def _memories(inputs: Inputs, ours):
    batch, (n,), (d, d_v) = inputs.batch(), inputs.sizes(1, 1, 9), inputs.sizes(2)
    q, k, v = (inputs.normal(*batch, n, size) for size in (d, d, d_v))
    given = [inputs.normal(*batch, n) for _ in range(3)]
    found = ours(q, _short(k), v, *map(torch.sigmoid, given))
    return found, _by_products(q, _short(k), v, *map(torch.sigmoid, given))


def _both(inputs: Inputs, ours, longest: int):
    batch, (n,), (d, d_v) = inputs.batch(), inputs.sizes(1, 1, longest), inputs.sizes(2)
    q, k, v = (inputs.normal(*batch, n, size) for size in (d, d, d_v))
    beta = inputs.normal(*batch, n)
    found, share = ours(q, _short(k), v, torch.sigmoid(beta)), torch.sigmoid(beta)
    return found, _by_products(q, _short(k), v, torch.ones_like(share), share, share)


def _by_products(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor, erase: Tensor, write: Tensor
) -> Tensor:
    """Multiply the state by decay (I - erase k k^T), a matrix, and add write k v^T."""
    (*batch, n, d), d_v = q.shape, v.shape[-1]
    state, rows = torch.zeros(*batch, d, d_v, dtype=q.dtype), []
    for t in range(n):
        key, value = k[..., t, :, None], v[..., t, None, :]
        keep, out, in_ = (x[..., t, None, None] for x in (decay, erase, write))
        state = keep * (torch.eye(d) - out * key @ key.mT) @ state + in_ * key @ value
        rows.append(q[..., t, None, :] @ state)
    return torch.cat(rows, dim=-2)


def _short(k: Tensor) -> Tensor:
    """Shorten keys to less than 1, so that the state stays small."""
    return k / (1 + k.norm(dim=-1, keepdim=True))


@compare(beyond.accept, "one token after another, in a loop")
def _accept(inputs: Inputs):
    m, vocab = inputs.sizes(2, 2)
    logits = inputs.normal(m, vocab), inputs.normal(m + 1, vocab)
    drafted = logits[0].argmin(-1)
    # the last one is refused, so that the draft has a gradient
    uniform = torch.linspace(0.1, 1, m).double()
    uniform[-1] = torch.inf
    _, ours = beyond.accept(drafted, logits[0].softmax(-1), logits[1].softmax(-1), uniform)
    draft, target = (x.softmax(-1) for x in logits)
    for i, token in enumerate(drafted):
        if not uniform[i] < target[i, token] / draft[i, token]:
            missing = torch.where(target[i] > draft[i], target[i] - draft[i], 0)
            return ours, missing / missing.sum()
    raise AssertionError("the last one is refused")

"""The Transformer of 2017 on one page: the parts of course_lib, by `make pages`.

It needs torch and einops, and learns to sort letters in a minute. § as in Vaswani et al. 2017.
"""

import torch
import torch.nn as nn
from einops import einsum, rearrange, reduce


# § 3.2.1
def softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    peak = reduce(scores.detach(), "... key -> ... 1", "max")
    exponentials = torch.exp(scores - peak.masked_fill(peak == float("-inf"), 0.0))
    total = reduce(exponentials, "... key -> ... 1", "sum")
    return exponentials / total.masked_fill(total == 0, 1.0)


# § 3.2.1
def dot_scores(q, k):
    return einsum(q, k, "... query d_k, ... key d_k -> ... query key")


def weighted_sum(weights, v):
    return einsum(weights, v, "... query key, ... key d_v -> ... query d_v")


# § 3.2.1
def scaled_dot_product_attention(q, k, v, mask=None):
    d_k = q.shape[-1]
    scores = dot_scores(q, k) / d_k**0.5
    return weighted_sum(softmax(scores, mask), v)


# § 3.2.2
def split_heads(x, heads):
    d_model = x.shape[-1]
    return rearrange(x, "... n (heads d_k) -> ... heads n d_k", heads=heads)


# § 3.2.2
def merge_heads(x):
    return rearrange(x, "... heads n d_k -> ... n (heads d_k)")


# § 3.2.2
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads, rule=scaled_dot_product_attention):
        super().__init__()
        self.heads, self.rule = (heads, rule)
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        if mask is not None:
            mask = rearrange(mask, "... query key -> ... 1 query key")
        attended = self.rule(q, k, v, mask)
        return self.w_o(merge_heads(attended))


# § 3.2.3
class AsSelfAttention(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x, mask=None):
        return self.attention(x, x, x, mask)


# § 3.2.3
class AsCrossAttention(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x, memory, mask=None):
        return self.attention(x, memory, memory, mask)


# § 3.2.3
def causal_mask(n_q, n_k=None, *, device=None):
    n_k = n_q if n_k is None else n_k
    everywhere = torch.ones(n_q, n_k, dtype=torch.bool)
    return everywhere.tril(n_k - n_q)


# § 3.3
def feed_forward(x, w_1, b_1, w_2, b_2):
    hidden = torch.relu(x @ w_1 + b_1)
    return hidden @ w_2 + b_2


# § 3.3
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, network=feed_forward):
        super().__init__()
        self.network = network
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.network(x, self.w_1, self.b_1, self.w_2, self.b_2)


# § 3.5
def sinusoidal(n, d_model, *, device=None):
    places = torch.arange(n, dtype=torch.get_default_dtype())
    speeds = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = places.unsqueeze(-1) * speeds
    waves = torch.stack([torch.sin(angles), torch.cos(angles)])
    return rearrange(waves, "wave n c -> n (c wave)")


# § 3.4 and 3.5
class Embedding(nn.Module):
    def __init__(self, vocab, d_model, max_length, positions=sinusoidal):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocab, d_model) / d_model**0.5)
        self.register_buffer("positions", positions(max_length, d_model), persistent=False)

    def forward(self, tokens):
        n, (max_length, d_model) = (tokens.shape[-1], self.positions.shape)
        return d_model**0.5 * self.table[tokens] + self.positions[:n].to(self.table)


# § 3.1
def layer_norm(x, gain, bias, eps=1e-05):
    centred = x - reduce(x, "... d -> ... 1", "mean")
    variance = reduce(centred**2, "... d -> ... 1", "mean")
    return gain * centred / torch.sqrt(variance + eps) + bias


# § 3.1
class PostNorm(nn.Module):
    def __init__(self, sublayer, d_model, norm_layer=layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = (sublayer, norm_layer)
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, *args):
        added = x + self.sublayer(x, *args)
        return self.norm_layer(added, self.gain, self.bias)


# Xiong et al. 2020
class PreNorm(nn.Module):
    def __init__(self, sublayer, d_model, norm_layer=layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = (sublayer, norm_layer)
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, *args):
        read = self.norm_layer(x, self.gain, self.bias)
        return x + self.sublayer(read, *args)


def add_and_norm(norm):
    ways = {"post": PostNorm, "pre": PreNorm}
    return ways[norm]


# § 3.1
class EncoderBlock(nn.Module):
    def __init__(
        self,
        d_model,
        heads,
        d_ff,
        norm="post",
        *,
        attention=MultiHeadAttention,
        feed_forward=FeedForward,
        norm_layer=layer_norm,
    ):
        super().__init__()
        add = add_and_norm(norm)
        self.attention = add(AsSelfAttention(attention(d_model, heads)), d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(self, x, mask=None):
        seen = self.attention(x, mask)
        return self.feed_forward(seen)


class Norm(nn.Module):
    def __init__(self, d_model, norm_layer=layer_norm):
        super().__init__()
        self.norm_layer = norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.norm_layer(x, self.gain, self.bias)


# § 3.1
class Encoder(nn.Module):
    def __init__(
        self, vocab, layers, d_model, heads, d_ff, max_length, norm="post", *, block=EncoderBlock
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList((block(d_model, heads, d_ff, norm) for _ in range(layers)))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(self, tokens, mask=None):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.last_norm(x)


# § 3.1
class DecoderBlock(nn.Module):
    def __init__(
        self,
        d_model,
        heads,
        d_ff,
        norm="post",
        *,
        attention=MultiHeadAttention,
        feed_forward=FeedForward,
        norm_layer=layer_norm,
    ):
        super().__init__()
        add = add_and_norm(norm)
        itself = AsSelfAttention(attention(d_model, heads))
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(itself, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.attention(x, mask)
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)


# § 3.1
class Decoder(nn.Module):
    def __init__(
        self, vocab, layers, d_model, heads, d_ff, max_length, norm="post", *, block=DecoderBlock
    ):
        super().__init__()
        self.embedding = Embedding(vocab, d_model, max_length)
        self.blocks = nn.ModuleList((block(d_model, heads, d_ff, norm) for _ in range(layers)))
        self.last_norm = Norm(d_model) if norm == "pre" else nn.Identity()

    def forward(self, tokens, memory, memory_mask=None):
        x = self.embedding(tokens)
        mask = causal_mask(tokens.shape[-1])
        for block in self.blocks:
            x = block(x, memory, mask, memory_mask)
        return self.last_norm(x)


# § 3, figure 1
class Transformer(nn.Module):
    def __init__(
        self,
        vocab,
        layers,
        d_model,
        heads,
        d_ff,
        max_length,
        norm="post",
        tied=True,
        *,
        encoder_block=EncoderBlock,
        decoder_block=DecoderBlock,
    ):
        super().__init__()
        sizes = (vocab, layers, d_model, heads, d_ff, max_length, norm)
        self.encoder = Encoder(*sizes, block=encoder_block)
        self.decoder = Decoder(*sizes, block=decoder_block)
        self.output = nn.Linear(d_model, vocab, bias=False)
        if tied:
            self.decoder.embedding.table = self.encoder.embedding.table
            self.output.weight = self.encoder.embedding.table

    def forward(self, source, target, source_mask=None):
        memory = self.encoder(source, source_mask)
        states = self.decoder(target, memory, source_mask)
        return self.output(states)


# § 3.1
def shift_right(tokens, start):
    first = torch.full_like(tokens[..., :1], start)
    return torch.cat([first, tokens[..., :-1]], dim=-1)


# § 3.1
@torch.no_grad()
def greedy(model, source, start, stop, most, source_mask=None):
    memory = model.encoder(source, source_mask)
    target = torch.full_like(source[:, :1], start)
    for _ in range(most):
        if (target[:, 1:] == stop).any(-1).all():
            break
        states = model.decoder(target, memory, source_mask)
        target = torch.cat([target, model.output(states[:, -1:]).argmax(-1)], dim=-1)
    return target[:, 1:]


# %% the task: eight different letters come in, and go out in the order of the alphabet
START, STOP = 26, 27
torch.manual_seed(0)
model = Transformer(vocab=28, layers=2, d_model=64, heads=4, d_ff=256, max_length=9)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for step in range(600):
    optimizer.param_groups[0]["lr"] = 0.003 * min((step + 1) / 60, 1 - step / 600)
    source = torch.rand(32, 26).argsort(-1)[:, :8]
    target = source.sort(-1).values
    logits = model(source, shift_right(target, START))
    loss = torch.nn.functional.cross_entropy(logits.mT, target)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
unseen = torch.rand(1000, 26).argsort(-1)[:, :8]
right = (greedy(model, unseen, START, STOP, most=8) == unseen.sort(-1).values).all(-1)
print(f"{right.float().mean():.1%} of {len(unseen)} unseen sequences of letters are sorted")

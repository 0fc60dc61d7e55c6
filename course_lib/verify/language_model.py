"""The comparisons of `course_lib.language_model`."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import language_model
from course_lib.masks import causal_mask
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_sizes, draw_weights, part, torch_causal_block


@compare(language_model.cross_entropy, "`F.cross_entropy`, some targets ignored")
def _cross_entropy(inputs: Inputs):
    batch, [vocab] = inputs.batch(), inputs.sizes(1, 2)
    logits = inputs.normal(*batch, vocab)
    count = logits[..., 0].numel()
    counted = inputs.mask(2, count)[1]
    counted[0] = True
    targets = torch.tensor(inputs.sizes(count, 0, vocab - 1)).where(counted, -100)
    theirs = F.cross_entropy(logits.reshape(count, vocab), targets, ignore_index=-100)
    ours = language_model.cross_entropy(logits, targets.reshape(logits.shape[:-1]), -100)
    return ours, theirs


@compare(language_model.perplexity, "`torch.masked.mean`, then `exp`")
def _perplexity(inputs: Inputs):
    losses = inputs.normal(*inputs.batch(), *inputs.sizes(2))
    mask = inputs.mask(*losses.shape)
    mask[..., 0, 0] = True
    return language_model.perplexity(losses, mask), torch.masked.mean(losses, mask=mask).exp()


@compare(language_model.next_token_losses, "`F.cross_entropy` of the shifted text")
def _next_token_losses(inputs: Inputs):
    n, vocab = inputs.sizes(2, 2)
    logits, tokens = inputs.normal(n, vocab), torch.tensor(inputs.sizes(n, 0, vocab - 1))
    theirs = F.cross_entropy(logits[:-1], tokens[1:], reduction="none")
    return language_model.next_token_losses(logits, tokens), theirs


@compare(language_model.TokenEmbedding, "`F.embedding`")
def _token_embedding(inputs: Inputs):
    vocab, d_model, n = inputs.sizes(3)
    ours = language_model.TokenEmbedding(vocab, d_model)
    weights = draw_weights(inputs, ours)
    tokens = torch.tensor(inputs.sizes(n, 0, vocab - 1))
    return functional_call(ours, weights, tokens), F.embedding(tokens, weights["table"])


@compare(language_model.LanguageModel, "a stack of torch's encoder layers, causal, output tied")
def _language_model(inputs: Inputs):
    sizes = draw_sizes(inputs)
    ours = language_model.LanguageModel(*sizes.values())
    weights = draw_weights(inputs, ours)
    batch, n = inputs.sizes(2, 1, 4)
    tokens = torch.tensor(inputs.sizes(batch * n, 0, sizes["vocab"] - 1)).reshape(batch, n)
    x = F.embedding(tokens, weights["embedding.table"]) + weights["positions.table"][:n]
    for i in range(sizes["layers"]):
        block = part(weights, f"blocks.{i}.")
        x = torch_causal_block(block, sizes["heads"], x, causal_mask(n))
    gain, bias = weights["last_norm.gain"], weights["last_norm.bias"]
    x = F.layer_norm(x, x.shape[-1:], gain, bias)
    return functional_call(ours, weights, tokens), F.linear(x, weights["embedding.table"])


@compare(language_model.SquaredReLU, "`torch.einsum`, `torch.where`")
def _squared_relu(inputs: Inputs):
    d_model, d_ff = inputs.sizes(2)
    ours = language_model.SquaredReLU(d_model, d_ff)
    weights, x = draw_weights(inputs, ours), inputs.normal(*inputs.batch(), d_model)
    hidden = torch.einsum("...d,fd->...f", x, weights["w_1.weight"])
    hidden = torch.where(hidden > 0, hidden * hidden, 0)
    theirs = torch.einsum("...f,df->...d", hidden, weights["w_2.weight"])
    return functional_call(ours, weights, x), theirs


def _logits(inputs: Inputs):
    return inputs.normal(*inputs.batch(), *inputs.sizes(1, 2))


@compare(language_model.temper, "probabilities to the power 1 / temperature, normalised anew")
def _temper(inputs: Inputs):
    logits, temperature = _logits(inputs), inputs.sizes(1)[0] / 2
    powers = torch.softmax(logits, -1) ** (1 / temperature)
    ours = torch.softmax(language_model.temper(logits, temperature), -1)
    return ours, powers / powers.sum(-1, keepdim=True)


@compare(language_model.top_k, "`torch.topk`'s probabilities, normalised anew")
def _top_k(inputs: Inputs):
    logits, [k] = _logits(inputs), inputs.sizes(1)
    shares = torch.softmax(logits, -1)
    likeliest = shares.topk(min(k, logits.shape[-1]))
    kept = torch.zeros_like(shares).scatter(-1, likeliest.indices, likeliest.values)
    ours = torch.softmax(language_model.top_k(logits, k), -1)
    return ours, kept / kept.sum(-1, keepdim=True)


@compare(language_model.top_p, "a loop that takes the likeliest until they sum to p")
def _top_p(inputs: Inputs):
    logits, p = _logits(inputs), inputs.sizes(1)[0] / 6.5
    rows = []
    for shares in torch.softmax(logits, -1).reshape(-1, logits.shape[-1]):
        kept = torch.zeros_like(shares)
        while (shares * kept).sum() < p:
            kept[(shares - 2 * kept).argmax()] = 1
        taken = shares * kept
        rows.append(taken / taken.sum())
    ours = torch.softmax(language_model.top_p(logits, p), -1)
    return ours, torch.stack(rows).view_as(logits)

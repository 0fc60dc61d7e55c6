"""Lesson 15: images as sequences, held against torch's own layers."""

import torch
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import vision
from course_lib.verify.comparison import Inputs, compare
from course_lib.verify.torch_stacks import draw_weights, part, torch_block


@compare(vision.patches, "`F.unfold`")
def _patches(inputs: Inputs):
    channels, rows, columns, size = inputs.sizes(4, 1, 4)
    images = inputs.normal(*inputs.batch(), channels, rows * size, columns * size)
    flat = images.reshape(-1, *images.shape[-3:])
    theirs = F.unfold(flat, size, stride=size).mT
    return vision.patches(images, size), theirs.reshape(*images.shape[:-3], *theirs.shape[1:])


@compare(vision.VisionTransformer, "`F.conv2d`, a stack of `nn.TransformerEncoderLayer`")
def _vision_transformer(inputs: Inputs):
    classes, channels, side, patch, layers, heads, d_k, d_ff, batch = inputs.sizes(9, 1, 3)
    d_model = heads * d_k
    ours = vision.VisionTransformer(
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


@compare(vision.contrastive_loss, "`F.cosine_similarity`, and the loss pair by pair")
def _contrastive_loss(inputs: Inputs):
    b, d, tenths = inputs.sizes(3, 1, 8)
    images, texts = inputs.normal(b, d), inputs.normal(b, d)
    scores = F.cosine_similarity(images[:, None], texts[None], dim=-1) * 10 / tenths
    losses = [torch.logsumexp(x[i], 0) - x[i, i] for x in (scores, scores.mT) for i in range(b)]
    return vision.contrastive_loss(images, texts, tenths / 10), torch.stack(losses).mean()

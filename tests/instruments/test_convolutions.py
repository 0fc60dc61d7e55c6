"""What windows of an encoder-decoder of convolutions see, and what they do not."""

import pytest
import torch
from torch.nn import functional as F

from course_lib.instruments.convolutions import (
    ConvolutionalDecoderBlock,
    ConvolutionalEncoderBlock,
    GatedConvolution,
)
from course_lib.transformer import Transformer

D = 6


@pytest.fixture
def model():
    torch.manual_seed(0)
    blocks = {
        "encoder_block": ConvolutionalEncoderBlock,
        "decoder_block": ConvolutionalDecoderBlock,
    }
    return Transformer(11, 2, D, 2, 0, 20, norm="pre", tied=False, **blocks)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("causal", [False, True])
def test_it_is_torchs_convolution_and_torchs_gate(width, causal):
    torch.manual_seed(0)
    layer, x = GatedConvolution(D, width, causal), torch.randn(2, 7, D)
    torch.nn.init.normal_(layer.bias)
    before = width - 1 if causal else width // 2
    padded = F.pad(x.mT, (before, width - 1 - before))
    mixed = F.conv1d(padded, layer.weight.permute(2, 1, 0), layer.bias)
    torch.testing.assert_close(layer(x), F.glu(mixed.mT, dim=-1))


def test_a_causal_window_sees_its_own_token_and_those_before_alone():
    torch.manual_seed(0)
    layer, x = GatedConvolution(D, 3, causal=True), torch.randn(9, D, requires_grad=True)
    layer(x)[5].sum().backward()
    assert (x.grad != 0).any(-1).nonzero().flatten().tolist() == [3, 4, 5]


def test_the_decoder_sees_no_future(model):
    source, target = torch.randint(11, (2, 3, 8))
    changed = target.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    one, other = model(source, target), model(source, changed)
    torch.testing.assert_close(one[:, :5], other[:, :5])
    assert (one[:, 5:] != other[:, 5:]).any(-1).all()


def test_padding_of_the_source_changes_nothing(model):
    source, target = torch.randint(1, 11, (2, 3, 8))
    padded = F.pad(source, (0, 4))
    for filler in (0, 7):
        padded[:, 8:] = filler
        mask = (torch.arange(12) < 8).expand(3, 1, 12)
        torch.testing.assert_close(model(padded, target, mask), model(source, target))

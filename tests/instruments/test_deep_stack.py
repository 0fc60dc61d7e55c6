"""The laws of a stack of blocks, however its layers are held together."""

import pytest
import torch
from torch import nn

from course_lib.add_norm import PostNorm, PreNorm
from course_lib.instruments import training
from course_lib.instruments.deep_stack import (
    NormAlone,
    Residual,
    RunningBatchNorm,
    Stack,
    bare,
    follow,
    redraw,
)
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention

WRAPS = [bare, Residual, NormAlone, PostNorm, PreNorm]


def new(wrap, blocks=3):
    with training.seeded(0):
        return Stack(vocab=11, blocks=blocks, d_model=12, heads=3, wrap=wrap).double()


@pytest.fixture
def tokens():
    return torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("wrap", WRAPS)
def test_each_character_gets_scores_and_every_parameter_a_gradient(wrap, tokens):
    model = new(wrap)
    scores = model(tokens)
    assert scores.shape == (2, 7, 11)
    scores.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("wrap", WRAPS)
def test_no_character_sees_a_later_one(wrap, tokens):
    model, changed = new(wrap), tokens.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 11
    torch.testing.assert_close(model(changed)[:, :4], model(tokens)[:, :4])
    assert not torch.allclose(model(changed)[:, 4:], model(tokens)[:, 4:])


def test_there_is_a_stream_below_and_one_above_each_block(tokens):
    model = new(PreNorm, blocks=4)
    streams = model.streams(tokens)
    assert len(streams) == 5
    torch.testing.assert_close(model.read(streams[-1]), model(tokens))


def test_stacks_of_one_seed_begin_with_the_same_layers():
    one, other = (dict(new(wrap).named_parameters()) for wrap in (Residual, PreNorm))
    shared = one.keys() & other.keys()
    assert shared == one.keys()
    assert all(torch.equal(one[name], other[name]) for name in shared)


def test_wrapped_layers_are_in_the_way_beside_it_or_behind_a_norm():
    x = torch.randn(5, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    layer = AsSelfAttention(MultiHeadAttention(12, 3)).double()
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(bare(layer, 12)(x, mask), layer(x, mask))
    torch.testing.assert_close(Residual(layer, 12)(x, mask), x + layer(x, mask))
    pre_norm = PreNorm(layer, 12).double()
    torch.testing.assert_close(NormAlone(layer, 12).double()(x, mask), pre_norm(x, mask) - x)


def test_a_last_norm_is_the_only_thing_between_the_stream_and_the_scores(tokens):
    with training.seeded(0):
        model = Stack(11, 3, d_model=12, heads=3, wrap=PreNorm, last_norm=True).double()
    plain = new(PreNorm)
    streams, others = model.streams(tokens), plain.streams(tokens)
    torch.testing.assert_close(streams, others)
    normed = torch.nn.functional.layer_norm(streams[-1], (12,))
    torch.testing.assert_close(model(tokens), plain.scores(normed))


def test_without_a_causal_mask_each_character_sees_all_others(tokens):
    with training.seeded(0):
        model = Stack(11, 3, d_model=12, heads=3, wrap=PreNorm, causal=False).double()
    changed = tokens.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 11
    assert ((model(changed) - model(tokens))[:, :4].abs().amax(-1) > 1e-6).all()


class Silent(nn.Module):
    """A layer with a matrix, which writes nothing."""

    def __init__(self, d_model, size):
        super().__init__()
        self.matrix = nn.Linear(d_model, d_model)

    def forward(self, query, *others):
        return torch.zeros_like(query)


def test_a_stack_is_made_of_the_parts_that_it_is_given(tokens):
    model = Stack(11, 3, 12, 3, Residual, attention=Silent, feed_forward=Silent).double()
    first, *others = model.streams(tokens)
    assert all(torch.equal(first, stream) for stream in others)

    def nothing(x, gain, bias):
        return 0 * x

    model = Stack(11, 3, 12, 3, Residual, last_norm=True, norm_layer=nothing).double()
    torch.testing.assert_close(model(tokens), model.scores.bias.expand(2, 7, 11))


def test_matrices_of_any_layer_are_drawn_anew_and_nothing_else_is():
    model = Stack(11, 3, 48, 3, PreNorm, attention=Silent, last_norm=True)
    before = {name: x.clone() for name, x in model.named_parameters()}
    redraw(model, "N(0, 0.02²)")
    for name, now in model.named_parameters():
        if name.split(".")[0] not in ("attention", "feed_forward") or name.endswith(".gain"):
            assert torch.equal(now, before[name]), name
        elif now.dim() == 2:
            assert 0.018 < now.std() < 0.022, name
        else:
            assert not now.any(), name


def test_a_letter_stays_its_own_where_layers_write_nothing_and_fades_behind_norms_alone(tokens):
    still = Stack(11, 3, 12, 3, Residual, attention=Silent, feed_forward=Silent).double()
    fate = follow(still, tokens, 4)
    assert fate["own"] == [1.0] * 4
    assert fate["size"] == [fate["size"][0]] * 4
    assert follow(new(NormAlone, blocks=12), tokens, 4)["own"][-1] < 0.01


def test_running_batch_norm_is_torchs_in_training_and_after_it():
    generator = torch.Generator().manual_seed(0)
    ours, torchs = RunningBatchNorm(8).double(), nn.BatchNorm1d(8).double()
    gain, bias = torch.ones(8).double(), torch.zeros(8).double()
    for trained in (True, True, False):
        x = 2 + 3 * torch.randn(4, 5, 8, generator=generator, dtype=torch.float64)
        ours.train(trained)
        torchs.train(trained)
        torch.testing.assert_close(ours(x, gain, bias), torchs(x.flatten(0, 1)).view_as(x))

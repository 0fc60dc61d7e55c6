import pytest
import torch
from torch import nn

from course_lib.add_norm import Norm
from course_lib.efficient.reversible import ReversibleBlock, ReversibleSequence
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention


def new_block(half=3, hidden=7):
    f = nn.Sequential(nn.Linear(half, hidden), nn.Tanh(), nn.Linear(hidden, half))
    return ReversibleBlock(f, nn.Linear(half, half)).double()


@pytest.fixture
def blocks():
    torch.manual_seed(0)
    return [new_block() for _ in range(5)]


def test_the_inverse_undoes_a_block(blocks, draw):
    x = draw(2, 4, 6)
    for block in blocks:
        torch.testing.assert_close(block.inverse(block(x)), x, atol=1e-12, rtol=0)
        torch.testing.assert_close(block(block.inverse(x)), x, atol=1e-12, rtol=0)


def test_gradients_of_a_sequence_equal_autograds(blocks, draw, agree):
    x, plain = draw(2, 4, 6), nn.Sequential(*blocks)
    agree(ReversibleSequence(blocks)(x), plain(x), x, *plain.parameters())


def test_blocks_may_share_parameters_have_none_or_have_frozen_ones(blocks, draw, agree):
    shared = ReversibleBlock(blocks[0].f, torch.sin)
    blocks[1].g.weight.requires_grad_(False)
    x, plain = draw(4, 6), nn.Sequential(blocks[0], shared, blocks[1], blocks[0])
    learned = [p for p in plain.parameters() if p.requires_grad]
    agree(ReversibleSequence([*plain])(x), plain(x), x, *learned)


def test_inputs_without_gradients_do_not_stop_those_of_parameters(blocks, draw):
    x = draw(4, 6).detach()
    sequence = ReversibleSequence(blocks)
    sequence(x).sum().backward()
    assert all(p.grad is not None for p in sequence.parameters())


def kept(model, x):
    """Count the bytes of the activations that are kept for the way back."""
    own = {p.data_ptr() for p in model.parameters()}
    sizes = {}

    def note(tensor):
        if tensor.data_ptr() not in own:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        y = model(x)
    # the result is alive until here, so no storage was counted twice
    return sum(sizes.values()) if y.requires_grad else None


def test_the_last_output_alone_is_kept_whatever_the_depth(blocks, draw):
    x = draw(2, 50, 6)
    output = 2 * 50 * 6 * 8
    assert kept(ReversibleSequence(blocks[:1]), x) == output
    assert kept(ReversibleSequence(blocks * 4), x) == output
    assert kept(nn.Sequential(*blocks), x) > 5 * output


def test_words_that_have_no_halves_are_refused(blocks):
    x = torch.zeros(4, 7).double()
    for run in (blocks[0], blocks[0].inverse, ReversibleSequence(blocks)):
        with pytest.raises(ValueError, match="equal halves, so d must be even, not 7"):
            run(x)


def test_a_transformer_block_has_autograds_gradients_and_keeps_two_copies(draw, agree):
    torch.manual_seed(0)

    def new():
        attention = AsSelfAttention(MultiHeadAttention(8, 2))
        f = nn.Sequential(Norm(8), attention)
        return ReversibleBlock(f, nn.Sequential(Norm(8), FeedForward(8, 32))).double()

    blocks, x = [new() for _ in range(3)], draw(5, 8)
    twice, plain = torch.cat([x, x], dim=-1), nn.Sequential(*blocks)
    agree(ReversibleSequence(blocks)(twice), plain(twice), x, *plain.parameters())
    assert kept(ReversibleSequence(blocks), twice) == 2 * x.numel() * 8 < kept(plain, twice) / 10

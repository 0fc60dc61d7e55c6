"""Each swap changes what its name says, and nothing reads the future."""

import pytest
import torch

from course_lib.instruments import training
from course_lib.instruments.ten_swaps import ALL, SIZES, SWAPS, N, cached, swapped
from course_lib.language_model import LanguageModel

ARMS = [(), *((name,) for name in SWAPS), ALL]


def model(swaps):
    with training.seeded(0):
        return LanguageModel(7, *SIZES, **swapped(swaps)).eval()


def size(swaps):
    return sum(p.numel() for p in model(swaps).parameters())


@pytest.mark.parametrize("swaps", ARMS, ids="+".join)
def test_no_swap_lets_a_token_read_the_future(swaps):
    tokens = torch.arange(N) % 7
    other = tokens.clone()
    other[40:] = 0
    made = model(swaps)
    torch.testing.assert_close(made(tokens)[:40], made(other)[:40])


def test_a_swap_changes_the_size_that_it_is_about():
    assert abs(size(["SwiGLU"]) / size([]) - 1) < 0.02
    assert size(["mixture"]) > 2.5 * size([])
    assert size(["grouped queries"]) < size([]) > size(["latent cache"])


def test_the_cache_has_what_is_kept_for_the_tokens_of_a_text():
    d_model, layers = SIZES[1], SIZES[0]
    assert cached([]) == 2 * d_model * layers * N
    assert cached(["grouped queries"]) == cached([]) // 2
    assert cached(["latent cache"]) == cached([]) // 4
    assert cached(["local and global"]) == 2 * d_model * (N + 3 * 16)


def test_a_local_layer_is_blind_beyond_its_reach_and_the_global_one_is_not():
    made, tokens = model(["local and global"]), torch.arange(N) % 7
    other = tokens.clone()
    other[0] = 3
    local, whole = made.blocks[0], made.blocks[3]
    x, y = (made.positions(made.embedding(text)) for text in (tokens, other))
    mask = torch.ones(N, N, dtype=torch.bool).tril()
    torch.testing.assert_close(local(x, mask)[16:], local(y, mask)[16:])
    assert not torch.allclose(local(x, mask)[15], local(y, mask)[15])
    assert not torch.allclose(whole(x, mask)[16:], whole(y, mask)[16:])


def test_rotary_models_know_the_order_without_waves():
    made, tokens = model(["rotary"]), torch.tensor([1, 2, 3, 4])
    turned = made(tokens[[1, 0, 2, 3]])
    assert not torch.allclose(made(tokens)[-1], turned[-1], atol=1e-3)

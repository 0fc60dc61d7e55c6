"""What SmolLM2 races with in fewer bits is the same model."""

import gguf
import pytest
import torch
from torch.nn import functional as F

from course_lib.data import store
from course_lib.instruments import results
from course_lib.pretrained import smollm2
from research.benchmarks.generation import FUSED, PRODUCTS, RowsOfEightBits, llama_file


def test_each_row_of_eight_bits_multiplies_by_steps_of_its_own():
    generator = torch.Generator().manual_seed(0)
    weight, x = (torch.randn(n, 576, generator=generator) for n in (64, 5))
    weight[3], x[2] = 100 * weight[3], 0  # a large row spoils no other one
    exact, ours = F.linear(x, weight), RowsOfEightBits(weight)(x)
    # a product of random rows is about as long as the row of the weight
    assert ((ours - exact).abs() < 0.05 * weight.norm(dim=1)).all()


@pytest.mark.skipif(
    not store.is_fetched("smollm2"), reason="needs smollm2: run `course fetch smollm2`"
)
def test_llama_cpps_file_in_float32_has_the_weights_that_we_compute_with(tmp_path):
    llama_file(tmp_path / "twin.gguf", gguf.GGMLQuantizationType.F32)
    twin = {x.name: x for x in gguf.GGUFReader(tmp_path / "twin.gguf").tensors}
    ours = smollm2.load().state_dict()
    for theirs, name in (
        ("token_embd", "words"),
        ("blk.7.attn_v", "blocks.7.attention.sublayer.attention.w_v"),
        ("blk.29.ffn_down", "blocks.29.feed_forward.sublayer.w_2"),
    ):
        assert torch.equal(torch.tensor(twin[f"{theirs}.weight"].data), ours[f"{name}.weight"])


def test_where_torchs_product_is_slow_every_writer_built_on_it_is():
    kept = results.load("generation_speed")["figures"]
    intel, amd = (kept[x]["of the limit"] for x in ("Intel Xeon", "AMD EPYC"))
    theirs = "llama.cpp, float32"
    assert min(intel[FUSED], intel[theirs], amd[theirs]) > 0.8
    assert amd[FUSED] < amd[PRODUCTS] < 0.55
    written = kept["AMD EPYC"]["rounds"]
    assert 2.6 < sorted(written[theirs])[2] / sorted(written[FUSED])[2] < 3

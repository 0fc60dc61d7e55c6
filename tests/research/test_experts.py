"""The telephone book of 12_experts: equal operations, and every model gets the same facts."""

import torch

from research.experiments import experts


def test_the_mixtures_have_the_operations_of_the_dense_layer_and_a_small_router():
    dense = experts.size("dense")["operations"]
    for count in (2, 4, 8, 16):
        router = 2 * experts.D_MODEL * count
        assert experts.size(f"{count} experts")["operations"] == dense + router
    wide = experts.size("dense, 8 times as wide")
    assert wide["operations"] == 8 * dense
    assert abs(wide["parameters"] / experts.size("16 experts")["parameters"] - 1) < 0.05


def test_the_facts_of_a_seed_are_the_same_with_a_shared_component():
    (keys, values), (moved, same) = experts.facts(3), experts.facts(3, shared=2.0)
    assert torch.equal(values, same)
    offset = moved - keys
    assert torch.allclose(offset, offset[0].expand_as(offset), atol=1e-5)
    assert offset.norm() > 0


def test_a_round_has_every_fact_once():
    known = torch.arange(experts.FACTS).float()[:, None], torch.arange(experts.FACTS)
    stream = experts.batches(known, 0)
    seen = torch.cat([next(stream)[1] for _ in range(experts.FACTS // experts.BATCH)])
    assert torch.equal(seen.sort().values, known[1])

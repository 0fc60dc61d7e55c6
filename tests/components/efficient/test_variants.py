"""The laws that all variants share: what they need, what they bear, what they leave alone."""

import pytest
import torch

from course_lib.efficient.lsh import draw_rotations, lsh_attention, lsh_buckets
from course_lib.efficient.variants import VARIANTS
from course_lib.instruments.training import seeded
from course_lib.verify import COMPARISONS


def set_up(name, **more):
    """Return a variant's rule, made anew for the words of each call; LSH's keys are its queries."""
    variant = VARIANTS[name]

    def attend(q, k, v):
        with seeded(0):
            rule = variant.set_up(variant.example, q.shape[-2], q.shape[-1], **more)
        rule = rule.to(q) if isinstance(rule, torch.nn.Module) else rule
        return rule(q, q if name == "LSH" else k, v)

    return attend


def one_round(q, k, v):
    """Attend by the exercise's function; the rule of LSH calls the one in rounds."""
    rotations = draw_rotations(q.shape[-1], 8, seed=0).to(q)
    return lsh_attention(q, v, lsh_buckets(q.detach(), rotations), 16)


FORMS = {name: set_up(name) for name in VARIANTS}
FORMS |= {f"causal {name}": set_up(name, causal=True) for name in VARIANTS if VARIANTS[name].causal}
FORMS |= {"LSH in one round": one_round}
each = pytest.mark.parametrize("variant", FORMS.values(), ids=FORMS)
# one matrix compresses the keys and one the values, and both have as many columns
D_V = 8


def gradients(output, *leaves):
    # a sum that no row leaves unmoved
    return torch.autograd.grad(output.square().sum(), leaves, materialize_grads=True)


@each
def test_no_tensor_of_n_by_n_is_made_forward_or_backward(variant, draw, largest):
    q, k, v = draw(1024, 8), draw(1024, 8), draw(1024, D_V)
    with largest:
        gradients(variant(q, k, v), q, k, v)
    assert 1024 * 8 <= largest.numel < 1024**2 / 4


def test_dense_attention_is_seen_to_make_one(draw, largest):
    q = draw(1024, 8)
    with largest:
        gradients(torch.softmax(q @ q.mT, dim=-1) @ q, q)
    assert largest.numel == 1024**2


@each
def test_words_may_lie_anyhow_and_every_batch_dimension_stands_alone(variant, draw):
    leaves = draw(96, 2, 8, 3), draw(2, 3, 8, 96), draw(3, 96, 2, D_V)
    q, k, v = leaves[0].permute(1, 3, 0, 2), leaves[1].mT, leaves[2].permute(2, 0, 1, 3)
    output = variant(q, k, v)
    assert output.shape == (2, 3, 96, D_V)
    alone = variant(q[1, 2], k[1, 2], v[1, 2])
    torch.testing.assert_close(output[1, 2], alone)
    together = gradients(output[1, 2], *leaves)
    for one, other in zip(together, gradients(alone, *leaves), strict=True):
        torch.testing.assert_close(one, other)


@each
def test_the_type_is_kept_and_the_words_are_left_as_they_were(variant, draw):
    q, k, v = (draw(64, 8, dtype=torch.float32) for _ in range(3))
    before = [x.clone() for x in (q, k, v)]
    output = variant(q, k, v)
    assert output.dtype == torch.float32
    exact = variant(*(x.double() for x in (q, k, v)))
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=0)
    output.sum().backward()
    assert all(x.equal(y) for x, y in zip((q, k, v), before, strict=True))


@each
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_large_and_small_scores_stay_finite_and_so_do_their_gradients(variant, scale, draw):
    q, k, v = (draw(64, 8, dtype=torch.float32) for _ in range(3))
    output = variant(scale * q, scale * k, v)
    assert output.isfinite().all()
    assert all(x.isfinite().all() for x in gradients(output, q, k, v))


@each
def test_the_result_is_made_on_the_device_of_the_words(variant):
    q, k, v = (torch.empty(2, 64, d, device="meta") for d in (8, 8, D_V))
    output = variant(q, k, v)
    assert output.device.type == "meta"
    assert output.shape == (2, 64, D_V)


@pytest.mark.parametrize("name", VARIANTS)
def test_verify_holds_its_function_against_the_twin_that_its_row_names(name):
    variant = VARIANTS[name]
    module = variant.function.__module__.removeprefix("course_lib.")
    component = f"{module}.{variant.function.__name__}"
    oracles = [x.oracle for x in COMPARISONS if x.component == component]
    missing = f'course_lib/verify/efficient.py needs @twin("{name}"), and its row twin="its name"'
    assert variant.twin in oracles, missing


def test_a_module_has_one_variant_and_its_rule_is_its_own():
    assert len({variant.function.__module__ for variant in VARIANTS.values()}) == len(VARIANTS)
    for variant in VARIANTS.values():
        assert variant.rule.__module__ == variant.function.__module__

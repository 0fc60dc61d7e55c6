import inspect

import pytest
import torch

from course_lib.efficient.linformer import linformer_attention
from course_lib.self_attention import scaled_dot_product_attention


@pytest.mark.parametrize("n", [1, 9, 300])
def test_identities_make_it_dense_attention(n, draw, agree):
    q, k, v = draw(2, 3, n, 5), draw(2, 3, n, 5), draw(2, 3, n, 4)
    one = torch.eye(n, dtype=torch.float64)
    agree(linformer_attention(q, k, v, one, one), scaled_dot_product_attention(q, k, v), q, k, v)


def test_it_is_dense_attention_to_mixtures_of_words(draw, agree):
    q, k, v, e, f = draw(2, 200, 5), draw(2, 200, 5), draw(2, 200, 4), draw(200, 7), draw(200, 7)
    theirs = scaled_dot_product_attention(q, e.mT @ k, f.mT @ v)
    agree(linformer_attention(q, k, v, e, f), theirs, q, k, v, e, f)


@pytest.mark.parametrize(("e", "f"), [((8, 3), (8, 3)), ((9, 3), (9, 4)), ((3, 9), (3, 9))])
def test_projections_for_another_length_are_refused(e, f, draw):
    x = draw(9, 4)
    # as learners call it: without the types that the tests execute
    attention = inspect.unwrap(linformer_attention)
    with pytest.raises(ValueError, match=r"must both have n = 9 rows, .* another length"):
        attention(x, x, x, draw(*e), draw(*f))

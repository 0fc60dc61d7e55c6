"""How far dot products spread, and why attention divides them by sqrt(d_k)."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.multi_head import score_variance

exercise = Exercise(
    reference=score_variance,
    lesson="06_initial_weights",
    title="Why divide by the square root",
    minutes=6,
    difficulty=1,
    hints=(
        "A dot product is a sum of products. For independent variables, the variance of a sum is "
        "the sum of what?",
        "One product has mean 0, so its variance is the mean of its square. What is the mean of "
        "q^2 k^2, when q and k have nothing to do with each other?",
        "When every number is halved, the standard deviation halves too. By how much does the "
        "variance shrink?",
    ),
    clauses={
        "each of mean 0 and variance 1": GIVEN,
    },
    # a whole number is a float too
    equivalent=("float(d_k) -> d_k",),
)


@exercise.cases
def cases(draw: Draw):
    few, many = draw.number(3, 10), draw.number(33, 1000)
    yield "a few entries", (few, False)
    yield "a few entries, scaled", (few, True)
    yield "one entry", (1, False)
    yield "one entry, scaled", (1, True)
    yield "a whole head", (many, False)
    yield "a whole head, scaled", (many, True)


@exercise.requires("twice the entries, twice the variance, where nothing is scaled")
def grows_with_size(answer, draw: Draw):
    sizes = [draw.number(1, 1000) for _ in range(3)]
    return all(answer(2 * d_k, False) == 2 * answer(d_k, False) > 0 for d_k in sizes)


@exercise.requires("scaled scores vary alike, however many entries q and k have")
def scaled_alike(answer, draw: Draw):
    scaled = [answer(draw.number(2, 1000), True) for _ in range(3)]
    return answer(draw.number(2, 1000), False) > max(scaled) and (
        max(scaled) - min(scaled) < 1e-9 < min(scaled)
    )


@exercise.mistake
def standard_deviation(d_k, scaled):
    """Where nothing is scaled, this is the standard deviation. What is its square, the variance?"""
    return 1.0 if scaled else d_k**0.5


@exercise.mistake
def squared(d_k, scaled):
    """The variance came out as d_k squared. There are d_k products, and each adds its variance
    once; it is the scale's square that you may have in mind."""
    return 1.0 if scaled else float(d_k**2)


@exercise.mistake
def always_one(d_k, scaled):
    """This says 1 whether or not the scores are scaled. 1 is the variance of one product: how many
    of them does a dot product add up?"""
    return 1.0


@exercise.mistake
def one_product(d_k, scaled):
    """The scaled variance is too small, and the other one does not grow: 1 is the variance of one
    product. How many of them does a dot product add up, before it is divided?"""
    return 1 / d_k if scaled else 1.0


@exercise.mistake
def divided_by_the_root(d_k, scaled):
    """The variance was divided by sqrt(d_k), as the scores are. What does a variance do when its
    variable is divided by a number?"""
    return d_k / d_k**0.5 if scaled else float(d_k)


@exercise.mistake
def divided_twice(d_k, scaled):
    """The scaled variance is too small by a factor of d_k: the scale was applied twice. The dot
    product is divided by sqrt(d_k) once, not q and k each."""
    return 1 / d_k if scaled else float(d_k)


@exercise.mistake
def multiplied(d_k, scaled):
    """Where the scores are scaled, this is too large: they were multiplied by sqrt(d_k). Which way
    does the scale of attention go?"""
    return float(d_k**2) if scaled else float(d_k)


@exercise.mistake
def scale_ignored(d_k, scaled):
    """The scale changes nothing: `scaled` is accepted and never asked."""
    return float(d_k)


@exercise.mistake
def the_other_way_round(d_k, scaled):
    """The two have changed places: `scaled` says that the division has happened."""
    return float(d_k) if scaled else 1.0


@exercise.mistake
def variances_of_a_product_added(d_k, scaled):
    """Twice too large: the variances of q and k were added for each product. That is the rule for q
    + k; what is the variance of q times k, where both have mean 0?"""
    return 2.0 if scaled else 2.0 * d_k


@exercise.mistake
def as_a_tensor(d_k, scaled):
    """The right numbers, but as tensors. Nothing here needs one: the signature promises a float."""
    return torch.tensor(1.0 if scaled else float(d_k))


@exercise.mistake
def measured(d_k, scaled):
    """This was measured on drawn numbers, so it is near the variance and never quite there. Which
    number does it come near, for d_k = 4?"""
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1000, d_k, generator=generator)
    scores = (q * k).sum(-1) / (d_k**0.5 if scaled else 1.0)
    return scores.var().item()


@exercise.alternative
def decided_at_once(d_k, scaled):
    return 1.0 if scaled else d_k * 1.0

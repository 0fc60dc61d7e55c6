"""Two encoders meet: each image is to find its own text among all of the batch, and back."""

import torch
from torch.nn import functional as F

from course_lib.beyond import contrastive_loss
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=contrastive_loss,
    lesson="15_vision",
    title="Which text belongs to which image",
    minutes=10,
    difficulty=2,
    hints=(
        "Four images and four texts give a matrix of 4 x 4 cosines. Where in it are the right "
        "pairs, and what should a row look like after a softmax?",
        "A row is a question with b answers, one of which is right: a classification. Which loss "
        "have you used for that since lesson 10, and what are its targets here?",
        "Cosines are between -1 and 1, so a softmax over them is nearly flat. What does dividing "
        "by a small temperature do to it? And what do the columns ask that the rows do not?",
    ),
    forbidden=("torch.nn.functional.cosine_embedding_loss", "torch.nn.CosineEmbeddingLoss"),
    no_edge={"a row of zeros": "a vector of zeros has no direction"},
    # vectors of two axes: the last one is the second one
    equivalent=("-1 -> 1",),
)


@exercise.cases
def cases(draw: Draw):
    yield "two pairs", (draw.normal(2, 3), draw.normal(2, 3), 1.0)
    yield "four pairs, a lower temperature", (draw.normal(4, 3), draw.normal(4, 3), 0.2)
    yield "as many pairs as numbers", (draw.normal(3, 3), draw.normal(3, 3), 0.5)
    yield "more pairs than numbers", (draw.normal(6, 2), draw.normal(6, 2), 0.3)
    images = draw.normal(5, 4)
    yield "texts near their images", (images, images + draw.normal(5, 4) / 4, 0.1)
    yield "a very low temperature", (images, images + draw.normal(5, 4) / 9, 0.005)
    yield "vectors of unlike lengths", (draw.normal(3, 5) * 20, draw.normal(3, 5) / 20, 0.7)
    yield "a temperature of one, as a whole number", (draw.normal(7, 4), draw.normal(7, 4), 1)
    yield "one pair", (draw.normal(1, 4), draw.normal(1, 4), 0.5)


@exercise.edges
def edges(draw: Draw):
    images = draw.normal(5, 4)
    wrong = images * torch.tensor([[-1.0], [1], [1], [1], [1]]) + draw.normal(5, 4) / 9
    yield "a pair that is badly wrong, and a very low temperature", (images, wrong, 0.006)


def near_pairs(draw: Draw):
    """Draw four images and a text near each: what is done to one of them changes the loss."""
    images = draw.normal(4, 5)
    return images, images + draw.normal(4, 5) / 4


@exercise.requires("the lengths of the vectors do not matter, their directions do")
def lengths(answer, draw: Draw):
    images, texts = near_pairs(draw)
    longer = images * (1 + 5 * draw.normal(4, 1).abs()), texts * (1 + draw.normal(4, 1).abs())
    pairs = (images, texts), longer, (images / 1e5, texts / 1e4), (-images, texts)
    plain, *same, other = (answer(*pair, 0.3) for pair in pairs)
    return (other - plain).abs() > 1e-3 and all(torch.allclose(x, plain, atol=1e-4) for x in same)


@exercise.requires("to exchange images and texts changes nothing, to exchange two texts does")
def symmetry(answer, draw: Draw):
    images, texts = near_pairs(draw)
    order = torch.tensor([1, 0, 2, 3])
    one, other, wrong = (
        answer(*pair, 0.3) for pair in ((images, texts), (texts, images), (images, texts[order]))
    )
    return torch.allclose(one, other, atol=1e-5) and (wrong - one).abs() > 1e-3


@exercise.requires("where all vectors are equal, every guess is as good: the loss is log b")
def equal_vectors(answer, draw: Draw):
    one = draw.normal(1, 4)
    values = [answer(one.expand(b, 4), one.expand(b, 4), 0.1) for b in (2, 7)]
    return torch.allclose(torch.stack(values), torch.tensor([2.0, 7.0]).log(), atol=1e-4)


def sides(images, texts, temperature):
    """Return the loss of the rows and that of the columns."""
    scores = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).mT / temperature
    own = torch.arange(len(scores))
    return F.cross_entropy(scores, own), F.cross_entropy(scores.mT, own)


@exercise.mistake
def dot_products(images, texts, temperature):
    """The vectors were not brought to length one, so these are dot products and not cosines: a long
    vector would win every comparison."""
    scores = images @ texts.mT / temperature
    own = torch.arange(len(scores))
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.mT, own)) / 2


@exercise.mistake
def rows_alone(images, texts, temperature):
    """Only the rows are asked: each image looks for its text. Each text also looks for its
    image."""
    return sides(images, texts, temperature)[0]


@exercise.mistake
def columns_alone(images, texts, temperature):
    """Only the columns are asked: each text looks for its image. Each image also looks for its
    text."""
    return sides(images, texts, temperature)[1]


@exercise.mistake
def added(images, texts, temperature):
    """The two losses were added. What is asked for is their mean."""
    return sum(sides(images, texts, temperature))


@exercise.mistake
def multiplied(images, texts, temperature):
    """The cosines were multiplied by the temperature. A low temperature is to make the softmax
    sharper: is that dividing or multiplying?"""
    return sum(sides(images, texts, 1 / temperature)) / 2


@exercise.mistake
def times_its_exponential(images, texts, temperature):
    """The cosines were multiplied by exp(temperature), as in CLIP's code, which learns the
    logarithm of 1 / temperature. Here `temperature` is the divisor itself."""
    return sum(sides(images, texts, torch.tensor(-float(temperature)).exp())) / 2


@exercise.mistake
def log_of_a_quotient(images, texts, temperature):
    """A low temperature gives infinity or NaN: exp(cosine / temperature) no longer fits into a
    float32. Which function takes logits, and subtracts the largest of a row by itself?"""
    scores = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).mT / temperature
    shares = [x.exp() / x.exp().sum(-1, keepdim=True) for x in (scores, scores.mT)]
    return -sum(x.diagonal().log().mean() for x in shares) / 2


@exercise.mistake
def log_of_softmax(images, texts, temperature):
    """A pair that is badly wrong costs infinity: at a low temperature its softmax is 0 in a
    float32, and the logarithm is taken of that. Which function takes both steps at once?"""
    scores = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).mT / temperature
    return -sum(x.softmax(-1).diagonal().log().mean() for x in (scores, scores.mT)) / 2


@exercise.mistake
def no_temperature(images, texts, temperature):
    """The temperature changes nothing. Is it divided by where nothing undoes that?"""
    return sum(sides(images, texts, 1.0)) / 2


@exercise.mistake
def normalised_over_the_batch(images, texts, temperature):
    """The lengths were taken over the batch, along the wrong axis: which axis are the numbers of
    one vector on?"""
    scores = F.normalize(images, dim=0) @ F.normalize(texts, dim=0).mT / temperature
    own = torch.arange(len(scores))
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.mT, own)) / 2


@exercise.mistake
def log_of_a_sum(images, texts, temperature):
    """A low temperature gives infinity: the logarithm of a sum of exp(cosine / temperature), which
    no longer fits into a float32. Which function subtracts the largest of a row by itself?"""
    scores = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).mT / temperature
    sums = [x.exp().sum(-1).log() for x in (scores, scores.mT)]
    return sum((x - scores.diagonal()).mean() for x in sums) / 2


@exercise.mistake
def softmax_twice(images, texts, temperature):
    """A softmax ran before the cross-entropy, which has one inside it. It wants logits."""
    scores = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).mT / temperature
    own = torch.arange(len(scores))
    rows, columns = (F.cross_entropy(x.softmax(-1), own) for x in (scores, scores.mT))
    return (rows + columns) / 2


@exercise.mistake
def over_all_pairs(images, texts, temperature):
    """One softmax runs over all b x b pairs. Each row, and each column, is a question of its
    own."""
    scores = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).mT / temperature
    return -scores.flatten().log_softmax(0).unflatten(0, scores.shape).diagonal().mean()


@exercise.mistake
def pulled_alone(images, texts, temperature):
    """The right pairs are pulled together, and nothing pushes the others apart: every encoder that
    gives one vector to all reaches the best loss."""
    return -(F.normalize(images, dim=-1) * F.normalize(texts, dim=-1)).sum(-1).mean() / temperature


@exercise.alternative
def by_logarithms(images, texts, temperature):
    images = images / images.norm(dim=1, keepdim=True)
    texts = texts / texts.norm(dim=1, keepdim=True)
    scores = torch.einsum("id,jd->ij", images, texts) / temperature
    right = scores.diagonal()
    return (scores.logsumexp(1) + scores.logsumexp(0) - 2 * right).mean() / 2


@exercise.alternative
def by_cosines(images, texts, temperature):
    scores = F.cosine_similarity(images[:, None], texts[None], dim=-1) / temperature
    losses = [-x.log_softmax(-1).diagonal().mean() for x in (scores, scores.T)]
    return sum(losses) / 2

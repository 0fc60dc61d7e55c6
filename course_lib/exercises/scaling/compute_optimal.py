"""How large a model a budget should train, and on how many tokens."""

from course_lib.checking.exercise import Draw, Exercise
from course_lib.scaling import compute_optimal

exercise = Exercise(
    reference=compute_optimal,
    lesson="12_chinchilla",
    title="Larger, or longer?",
    minutes=8,
    difficulty=2,
    hints=(
        "The budget fixes the product of N and D. Put D = C / (6 N) into the loss: of how many "
        "variables is it a function now?",
        "At the least loss the derivative is 0. Which two terms are then equal: one has alpha and "
        "a, the other beta and b?",
        "Solve alpha a / N^alpha = beta b / D^beta for N. Which power of C / 6 appears, and what "
        "is it if alpha and beta are equal?",
    ),
)


def law(draw: Draw):
    """Draw the four numbers of a loss."""
    a, b = 1 + draw.number(1, 50) / 10, 1 + draw.number(1, 50) / 10
    return a, b, 0.2 + draw.number(1, 40) / 100, 0.25 + draw.number(1, 40) / 100


def loss(found, a, b, alpha, beta):
    parameters, tokens = found
    return a / parameters**alpha + b / tokens**beta


@exercise.cases
def cases(draw: Draw):
    yield "both terms alike", (600.0, 1.0, 1.0, 0.5, 0.5)
    yield "the model's term is larger", (600.0, 9.0, 1.0, 0.5, 0.5)
    yield "the data's term falls faster", (6000.0, 1.0, 1.0, 0.25, 0.5)
    yield "any law", (1000.0 * draw.number(1, 999), *law(draw))
    yield "any other law", (1000.0 * draw.number(1, 999), *law(draw))
    yield "Chinchilla's budget and law", (5.76e23, 406.4, 410.7, 0.34, 0.28)


@exercise.edges
def edges(draw: Draw):
    slow = 0.4 + draw.number(0, 20) / 100
    yield "a budget that pays for less than one parameter", (
        float(draw.number(2, 9)), 1.0, 9.0 + draw.number(0, 9), 0.5, slow,
    )  # fmt: skip
    yield "a budget beyond all machines", (1e30 * draw.number(2, 9), *law(draw)[:2], 0.3, slow)


@exercise.requires("the budget is spent: 6 N D is flops")
def spent(answer, draw: Draw):
    flops = 1000.0 * draw.number(1, 999)
    parameters, tokens = answer(flops, *law(draw))
    return parameters > 0 and abs(6 * parameters * tokens / flops - 1) < 1e-6


@exercise.requires("a larger or a smaller model would have a higher loss for the same budget")
def least(answer, draw: Draw):
    for _ in range(3):
        given = law(draw)
        parameters, tokens = answer(1000.0 * draw.number(1, 999), *given)
        best = loss((parameters, tokens), *given)
        others = ((parameters * f, tokens / f) for f in (0.5, 0.9, 1.1, 2.0))
        if not all(loss(other, *given) > best for other in others):
            return False
    return True


@exercise.mistake
def exchanged(flops, a, b, alpha, beta):
    """Tokens and parameters have changed places. The docstring says in which order they are
    returned."""
    return compute_optimal(flops, a, b, alpha, beta)[::-1]


@exercise.mistake
def equal_terms(flops, a, b, alpha, beta):
    """The two terms of the loss were made equal. Equal are their derivatives by the logarithm of
    the size: where do alpha and beta come in?"""
    parameters = (a / b) ** (1 / (alpha + beta)) * (flops / 6) ** (beta / (alpha + beta))
    return parameters, flops / 6 / parameters


@exercise.mistake
def without_the_six(flops, a, b, alpha, beta):
    """The 6 is missing: a training takes 6 operations for each parameter and token."""
    return compute_optimal(6 * flops, a, b, alpha, beta)


@exercise.mistake
def exponents_exchanged(flops, a, b, alpha, beta):
    """The power of the budget is alpha / (alpha + beta). If the data's term falls slowly, so that
    beta is small, should the model or the data get more of a larger budget?"""
    balance = compute_optimal(6, a, b, alpha, beta)[0]
    parameters = balance * (flops / 6) ** (alpha / (alpha + beta))
    return parameters, flops / 6 / parameters


@exercise.mistake
def equal_shares(flops, a, b, alpha, beta):
    """The budget was shared out in equal parts, N = D. Which of the two terms is the larger one
    then, and which falls faster?"""
    return (flops / 6) ** 0.5, (flops / 6) ** 0.5


@exercise.mistake
def coefficients_exchanged(flops, a, b, alpha, beta):
    """a and b are in the wrong places of the balance: where the model's term is the larger one, the
    model should be larger."""
    balance = (alpha * b / (beta * a)) ** (1 / (alpha + beta))
    parameters = balance * (flops / 6) ** (beta / (alpha + beta))
    return parameters, flops / 6 / parameters


@exercise.mistake
def twenty_tokens(flops, a, b, alpha, beta):
    """Twenty tokens for each parameter, whatever the law says. That rule of thumb is the answer for
    one law and one budget: which numbers of the law has this asked?"""
    parameters = (flops / 6 / 20) ** 0.5
    return parameters, 20 * parameters


@exercise.mistake
def balance_without_root(flops, a, b, alpha, beta):
    """The balance has lost its root: it is (alpha a / (beta b)) to the power of 1 / (alpha +
    beta)."""
    parameters = alpha * a / (beta * b) * (flops / 6) ** (beta / (alpha + beta))
    return parameters, flops / 6 / parameters


@exercise.alternative
def tokens_first(flops, a, b, alpha, beta):
    share = alpha + beta
    tokens = (beta * b / alpha / a) ** (1 / share) * (flops / 6) ** (alpha / share)
    return flops / (6 * tokens), tokens

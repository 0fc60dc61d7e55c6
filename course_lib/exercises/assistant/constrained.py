"""Writing one of a list of answers: the model chooses, and only among what can still be right."""

import torch

from course_lib.answers.answer import Probe
from course_lib.assistant import constrained
from course_lib.checking.exercise import GIVEN, Draw, Exercise

END = 0  # ends each allowed answer

exercise = Exercise(
    reference=constrained,
    lesson="17",
    title="Write what the home can do",
    minutes=10,
    difficulty=2,
    clauses={
        "`score(tokens, rows)` returns": "a_place_too_early",
        "Each allowed answer is": GIVEN,
        "Returns the answer's tokens": "prompt_too",
    },
    # numbers that torch compares
    equivalent=("score(prompt + written, 1).tolist() -> score(prompt + written, 1)",),
    hints=(
        "Three answers are allowed: 5 6 0, 5 7 0 and 8 0. Nothing is written yet: which tokens may "
        "come first? Then the model takes 5: which may come now?",
        "Of all tokens that may come, the one with the highest score is written. After which "
        "tokens has it to be scored: those of the prompt, those that are written, or both?",
        "When is an answer complete? Every allowed one ends with a token that no other place has, "
        "so none is the beginning of another.",
    ),
)


def texts(draw: Draw, vocab: int, count: int, longest: int) -> list[list[int]]:
    """Draw different answers with common beginnings, each ended by END."""
    found = []
    while len(found) < count:
        body = draw.integers(1, vocab, draw.number(1, longest + 1)).tolist()
        if [*body, END] not in found:
            found.append([*body, END])
    return found


def asked(draw: Draw, vocab: int, count: int, longest: int, prompt: int = 3):
    probe = Probe("signed_text_scores", (vocab, draw.number(2, 10_000)))
    words = draw.integers(1, vocab, prompt).tolist()
    return probe, words, texts(draw, vocab, count, longest)


def telling(draw: Draw, *sizes: int, wrong):
    """Draw inputs for which a wrong way writes something else."""
    for _ in range(1000):
        inputs = asked(draw, *sizes)
        if wrong(inputs[0].make(), *inputs[1:]) != constrained(inputs[0].make(), *inputs[1:]):
            break
    return inputs


@exercise.cases
def cases(draw: Draw):
    yield "one answer", asked(draw, 5, 1, 3)
    yield "two answers of one token", asked(draw, 6, 2, 1)
    yield "four answers", asked(draw, 6, 4, 3)
    for count in (5, 9, 14):
        yield f"{count} answers with common beginnings", asked(draw, 4, count, 5)
    yield "an empty prompt", asked(draw, 5, 8, 4, prompt=0)
    yield "a prompt of one token", asked(draw, 5, 8, 4, prompt=1)
    yield "a long prompt", asked(draw, 5, 8, 4, prompt=12)
    yield "a vocabulary of which little is allowed", asked(draw, 60, 6, 4)
    yield (
        "all answers of up to two tokens",
        (
            *asked(draw, 4, 1, 1)[:2],
            [
                [END],
                *([i, END] for i in (1, 2, 3)),
                *([i, j, END] for i in (1, 2, 3) for j in (1, 2)),
            ],
        ),
    )
    yield "the best first token begins no good answer", telling(draw, 5, 9, 5, wrong=whole)
    yield "a step that depends on what is written", telling(draw, 4, 12, 5, wrong=unread)
    yield "an answer in pieces of others", telling(draw, 4, 9, 5, wrong=by_place)
    yield "tokens of other places", telling(draw, 5, 9, 5, wrong=any_place)


@exercise.edges
def edges(draw: Draw):
    probe, prompt, allowed = asked(draw, 6, 7, 4)
    others = [[(token - 1) % 6 for token in text] for text in (prompt, *allowed)]
    yield "answers that end with another token", (probe, others[0], others[1:])


@exercise.requires("what is written is allowed, whatever the model prefers")
def is_allowed(answer, draw: Draw):
    drawn = [asked(draw, 7, 6, 5) for _ in range(4)]
    return all(answer(*inputs) in inputs[2] for inputs in drawn)


@exercise.requires("an answer that is not allowed any more gives way, and others stay")
def gives_way(answer, draw: Draw):
    probe, prompt, allowed = asked(draw, 5, 12, 4)
    first = answer(probe, prompt, allowed)
    others = [x for x in allowed if x != first]
    kept = answer(probe, prompt, [first, others[0]][:: draw.number(0, 2) * 2 - 1])
    return answer(probe, prompt, others) in others and kept in (first, others[0])


def written_by(score, prompt, allowed, choose):
    """Write by `choose(scores, written)` until an answer is complete, or there is no more room."""
    written = []
    while written not in allowed and len(written) < max(map(len, allowed)):
        written.append(int(choose(score(prompt + written, 1)[-1], written)))
    return written


def best(scores, tokens):
    return max(tokens, key=lambda token: scores[token].item())


def possible(allowed, written):
    return {x[len(written)] for x in allowed if x[: len(written)] == written}


@exercise.mistake
def free(score, prompt, allowed):
    """The likeliest token of all was written, allowed or not: the model writes what it likes. Which
    tokens may come next?"""
    return written_by(score, prompt, allowed, lambda scores, written: scores.argmax())


@exercise.mistake
def any_place(score, prompt, allowed):
    """A token may come wherever any answer has it, so what is written may be no answer at all. At
    this place only some of them may come."""
    tokens = {token for answer in allowed for token in answer}
    return written_by(score, prompt, allowed, lambda scores, _: best(scores, tokens))


@exercise.mistake
def zero_for_the_forbidden(score, prompt, allowed):
    """The scores of tokens that may not come were made 0, and a token that may come loses to them
    if its own score is negative. Which score is below all others?"""

    def choose(scores, written):
        tokens = torch.tensor(sorted(possible(allowed, written)), dtype=torch.long)
        return torch.zeros_like(scores).index_copy(0, tokens, scores[tokens]).argmax()

    return written_by(score, prompt, allowed, choose)


@exercise.mistake
def by_place(score, prompt, allowed):
    """At each place, the tokens of all answers were possible, also of those that began otherwise:
    the result may be a mixture. Which answers begin with what is written?"""

    def choose(scores, written):
        return best(scores, {x[len(written)] for x in allowed if len(x) > len(written)})

    return written_by(score, prompt, allowed, choose)


@exercise.mistake(raises=ValueError)
def after_the_last(score, prompt, allowed):
    """Answers were kept by the last token that is written alone, so a beginning of one may go on as
    another. All that is written has to agree."""

    def choose(scores, written):
        n = len(written)
        same = [x for x in allowed if len(x) > n and x[n - 1 : n] == written[-1:]]
        return best(scores, {x[n] for x in same})

    return written_by(score, prompt, allowed, choose)


@exercise.mistake
def unread(score, prompt, allowed):
    """The scores are those after the prompt at every step: the model never reads what it has
    written. What does `score` get?"""
    fixed = score(prompt, 1)[-1]
    return written_by(
        score, prompt, allowed, lambda _, written: best(fixed, possible(allowed, written))
    )


@exercise.mistake
def prompt_unread(score, prompt, allowed):
    """The model reads the prompt for the first token alone, and then only what it has written. What
    was it asked?"""

    def choose(scores, written):
        scores = score(written, 1)[-1] if written else scores
        return best(scores, possible(allowed, written))

    return written_by(score, prompt, allowed, choose)


@exercise.mistake(raises=ValueError)
def a_place_too_early(score, prompt, allowed):
    """Two rows of scores were asked for, and the first was taken: it is about the place before. The
    last row is about the next token."""

    def choose(scores, written):
        text = [*prompt, *written]
        return best(score(text, min(2, len(text)))[0], possible(allowed, written))

    return written_by(score, prompt, allowed, choose)


@exercise.mistake
def worst(score, prompt, allowed):
    """The token with the lowest score was written at each step. The model's favourite has the
    highest."""
    return written_by(
        score, prompt, allowed, lambda scores, written: best(-scores, possible(allowed, written))
    )


@exercise.mistake
def whole(score, prompt, allowed):
    """Each answer was scored as a whole, and the best of all was taken. That is a wider search, and
    costs a pass for each answer; here each step takes the best token."""

    def total(answer):
        rows = score([*prompt, *answer[:-1]], len(answer)).log_softmax(-1)
        return sum(row[token].item() for row, token in zip(rows, answer, strict=True))

    return max(allowed, key=total)


@exercise.mistake
def first_possible(score, prompt, allowed):
    """The result is allowed, but the model was not asked: each step takes the smallest token that
    is possible. Which of them has the highest score?"""
    return written_by(score, prompt, allowed, lambda _, written: min(possible(allowed, written)))


@exercise.mistake(raises=ValueError)
def ended_by_zero(score, prompt, allowed):
    """It writes on until there is a token 0. Answers may end with any token that no other place
    has: how do you know that what is written is one of the allowed ones?"""
    written = []
    while written[-1:] != [END]:
        scores = score(prompt + written, 1)[-1]
        written.append(best(scores, possible(allowed, written)))
    return written


@exercise.mistake
def without_its_end(score, prompt, allowed):
    """The answer's last token is missing. It ends the answer, and belongs to it."""
    return constrained(score, prompt, allowed)[:-1]


@exercise.mistake
def prompt_too(score, prompt, allowed):
    """The prompt was returned, too. Only what is written is asked for."""
    return prompt + constrained(score, prompt, allowed)


@exercise.mistake
def in_place(score, prompt, allowed):
    """What was written was added to the caller's prompt, which is longer after the call. Make a new
    list at each step."""
    written = constrained(score, prompt, allowed)
    prompt += written
    return written


@exercise.alternative
def by_elimination(score, prompt, allowed):
    left, n = list(allowed), 0
    while len(left) > 1:
        scores = score(prompt + left[0][:n], 1)[0].tolist()
        token = max((answer[n] for answer in left), key=scores.__getitem__)
        left = [answer for answer in left if answer[n] == token]
        n += 1
    return left[0]


@exercise.alternative
def by_a_mask(score, prompt, allowed):
    tokens = list(prompt)
    while tokens[len(prompt) :] not in allowed:
        written = tokens[len(prompt) :]
        row = score(tokens, 1)[-1].clone()
        banned = [i for i in range(len(row)) if i not in possible(allowed, written)]
        row[banned] = float("-inf")
        tokens.append(int(row.argmax()))
    return tokens[len(prompt) :]

"""Let a language model write: score, draw one token, read it, and again."""

import torch

from course_lib.answers.answer import Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.language_model import generate

exercise = Exercise(
    reference=generate,
    lesson="10",
    title="Let it write",
    minutes=5,
    difficulty=2,
    hints=(
        "The model returns a row of logits for each token that it reads. Which row is about the "
        "token that does not exist yet?",
        "What has to happen to a drawn token before the model is asked again?",
        "A text grows, and the model has room for `max_length` tokens. Which of them may it read, "
        "the first or the last?",
    ),
    clauses={
        "returns a row of logits": GIVEN,
        "reads the last `max_length` tokens at most": "reads_everything",
        "`choose` changes logits": "temperature_of_probabilities",
        "one draw of `torch.multinomial` by the generator": "other_random_numbers",
        "Returns the prompt and": "new_tokens_alone",
    },
    equivalent=(
        # there is one axis
        "0 -> -1",
    ),
)


def asked(draw: Draw, vocab: int, prompt: int, new: int, max_length: int, *choose: Probe) -> tuple:
    """Draw a model, a prompt and a generator."""
    model = Probe("scores_of_each", (vocab, draw.number(2, 10_000)))
    generator = Probe("random_numbers", (draw.number(0, 10**6),))
    return model, draw.integers(0, vocab, prompt), new, max_length, generator, *choose


def at(temperature: float) -> Probe:
    return Probe("divided_by", (temperature,))


@exercise.cases
def cases(draw: Draw):
    yield "one new token", asked(draw, 5, 2, 1, 8)
    yield "six new tokens", asked(draw, 7, 3, 6, 16)
    yield "a prompt of one token", asked(draw, 9, 1, 8, 16)
    yield "room for four tokens", asked(draw, 8, 3, 12, 4)
    yield "room for one token", asked(draw, 8, 5, 9, 1)
    yield "a prompt that is longer than the room", asked(draw, 9, 9, 6, 4)
    for temperature in (0.3, 0.8, 3.0):
        yield f"temperature {temperature}", asked(draw, 9, 4, 14, 6, at(temperature))
    yield "only the likeliest token is left", asked(draw, 9, 4, 9, 6, Probe("likeliest_alone"))


@exercise.requires("a low temperature writes the likeliest token each time", points=2)
def cold(answer, draw: Draw):
    inputs = asked(draw, 8, 3, 10, 5)
    return torch.equal(
        answer(*inputs, at(1e-4)), likeliest(inputs[0].make(), *inputs[1:4], None, None)
    )


@exercise.requires("tokens come as often as softmax says", points=2)
def shares(answer, draw: Draw):
    model, prompt, _, room, _ = asked(draw, 3, 1, 0, 1)
    pairs = []
    # short texts, so that a function which calls itself can write them
    for seed in range(6):
        generator = Probe("random_numbers", (draw.number(0, 10**6) + seed,))
        text = answer(model, prompt, 150, room, generator, at(2.0))
        pairs.append(torch.stack([text[:-1], text[1:]]))
    before, written = torch.cat(pairs, dim=1)
    for token in range(3):
        after = written[before == token]
        wanted = (model.make()(torch.tensor([token]))[-1] / 2).softmax(-1)
        came = torch.bincount(after, minlength=3) / max(1, len(after))
        if (came - wanted).abs().max() > 2.5 / max(1, len(after)) ** 0.5:
            return False
    return True


@exercise.requires("the same generator writes the same text, and begins with the prompt")
def repeats(answer, draw: Draw):
    inputs = asked(draw, 9, 4, 12, 6)
    one, again = answer(*inputs), answer(*inputs)
    return len(one) == 16 and torch.equal(one, again) and torch.equal(one[:4], inputs[1])


def written(model, prompt, new, generator, *, read, chances):
    """Write on: `read(tokens)` is what the model reads, `chances(logits)` what is drawn from."""
    tokens = prompt
    for _ in range(new):
        drawn = torch.multinomial(chances(model(read(tokens))[-1]), 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return tokens


def as_they_are(logits):
    return logits


@exercise.mistake
def reads_everything(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The model was given the whole text. It has room for `max_length` tokens: which of them does
    it need for the next one?"""
    return generate(model, prompt, max_new_tokens, 10**6, generator, choose)


@exercise.mistake
def reads_the_beginning(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The model read the first `max_length` tokens, so new ones are soon out of its sight. After
    which of them does the next token come?"""
    return written(
        model,
        prompt,
        max_new_tokens,
        generator,
        read=lambda tokens: tokens[:max_length],
        chances=lambda z: choose(z).softmax(-1),
    )


@exercise.mistake
def reads_the_whole_prompt(
    model, prompt, max_new_tokens, max_length, generator, choose=as_they_are
):
    """The first draw came after the whole prompt, which may be longer than the model has room for.
    Which of its tokens does the model read?"""
    return written(
        model,
        prompt,
        max_new_tokens,
        generator,
        read=lambda tokens: tokens[-max_length:] if len(tokens) > len(prompt) else tokens,
        chances=lambda z: choose(z).softmax(-1),
    )


@exercise.mistake
def reads_the_prompt_alone(
    model, prompt, max_new_tokens, max_length, generator, choose=as_they_are
):
    """The model read the prompt each time, and none of what was written. What has to join the text
    before the next draw?"""
    return written(
        model,
        prompt,
        max_new_tokens,
        generator,
        read=lambda tokens: prompt[-max_length:],
        chances=lambda z: choose(z).softmax(-1),
    )


@exercise.mistake
def reads_one_token(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The model read only the newest token. Its context window holds more: how many?"""
    return generate(model, prompt, max_new_tokens, 1, generator, choose)


@exercise.mistake
def first_row(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The token was drawn from the first row of logits, which is about the second token of the
    text. Which row is about the one that comes next?"""
    return generate(
        lambda tokens: model(tokens)[:1], prompt, max_new_tokens, max_length, generator, choose
    )


@exercise.mistake
def likeliest(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The likeliest token was taken each time: greedy decoding, always the same text. Draw a token
    by its probability."""
    tokens = prompt
    for _ in range(max_new_tokens):
        best = model(tokens[-max_length:])[-1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, best])
    return tokens


@exercise.mistake
def choose_left_out(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """`choose` was not used, so no temperature changes anything."""
    return generate(model, prompt, max_new_tokens, max_length, generator)


@exercise.mistake(raises=RuntimeError)
def temperature_of_probabilities(
    model, prompt, max_new_tokens, max_length, generator, choose=as_they_are
):
    """`choose` was given probabilities, after the softmax. All of them divided by a temperature are
    as likely as before: what does `choose` change?"""
    return written(
        model,
        prompt,
        max_new_tokens,
        generator,
        read=lambda tokens: tokens[-max_length:],
        chances=lambda z: choose(z.softmax(-1)),
    )


@exercise.mistake
def other_random_numbers(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The draw did not use `generator`, so nobody can write the same text again: which argument of
    `torch.multinomial` takes it?"""
    return generate(model, prompt, max_new_tokens, max_length, None, choose)


@exercise.mistake
def new_tokens_alone(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The new tokens came back without the prompt. The text is both."""
    return generate(model, prompt, max_new_tokens, max_length, generator, choose)[len(prompt) :]


@exercise.mistake
def one_token_too_many(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """One token too many was written: how often does the loop run?"""
    return generate(model, prompt, max_new_tokens + 1, max_length, generator, choose)


@exercise.mistake
def prompt_counted(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """The text has `max_new_tokens` tokens with its prompt: so many are to be *new*."""
    new = max(0, max_new_tokens - len(prompt))
    return generate(model, prompt, new, max_length, generator, choose)[
        : max(max_new_tokens, len(prompt))
    ]


@exercise.mistake
def one_draw_for_all(model, prompt, max_new_tokens, max_length, generator, choose=as_they_are):
    """All new tokens were drawn at once, from what the model said after the prompt. The second one
    depends on the first."""
    logits = choose(model(prompt[-max_length:])[-1])
    drawn = torch.multinomial(
        logits.softmax(-1), max_new_tokens, replacement=True, generator=generator
    )
    return torch.cat([prompt, drawn])


@exercise.alternative
def in_a_list(model, prompt, max_new_tokens, max_length, generator, choose=lambda logits: logits):
    text = prompt.tolist()
    while len(text) < len(prompt) + max_new_tokens:
        logits = choose(model(torch.tensor(text[-max_length:]))[-1:])
        shares = torch.nn.functional.softmax(logits, -1)
        text.append(torch.multinomial(shares, 1, generator=generator).item())
    return torch.tensor(text)


@exercise.alternative
def calling_itself(
    model, prompt, max_new_tokens, max_length, generator, choose=lambda logits: logits
):
    if not max_new_tokens:
        return prompt
    shares = choose(model(prompt[-max_length:])[-1]).softmax(-1)
    longer = torch.cat([prompt, torch.multinomial(shares, 1, generator=generator)])
    return calling_itself(model, longer, max_new_tokens - 1, max_length, generator, choose)


@exercise.alternative
def filled_in(model, prompt, max_new_tokens, max_length, generator, choose=lambda logits: logits):
    n = len(prompt)
    tokens = torch.cat([prompt, prompt.new_zeros(max_new_tokens)])
    for i in range(n, n + max_new_tokens):
        logits = choose(model(tokens[max(0, i - max_length) : i])[-1])
        shares = (logits - logits.logsumexp(-1)).exp()
        tokens[i] = shares.multinomial(1, generator=generator).item()
    return tokens

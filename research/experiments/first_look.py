"""Lesson 00: what two real models write with the course's parts, and where one of them looks."""

from course_lib.pretrained import marian, smollm2

LESSON = "00"
SEEDS = (0,)  # nothing is drawn
SENTENCE = "The black cat sleeps on the white chair."
QUESTION = "What is the capital of France?"


def measure() -> dict:
    """Translate a sentence, with the weights of its words; let a language model go on writing."""
    translator = marian.load("en-pt")
    target = translator.translate(SENTENCE)

    def tokens(text: str) -> list[str]:
        ids = translator.encode(text).tolist()
        return [translator.tokenizer.decode([token]) for token in ids]

    answer = "".join(smollm2.load().answer(QUESTION, 24))
    return {
        "source": tokens(SENTENCE),
        "target": tokens(target),
        "weights": translator.alignment(SENTENCE, target).tolist(),
        "translation": target,
        "question": QUESTION,
        "answer": answer,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = [SENTENCE, figures["translation"], figures["question"], figures["answer"]]
    for word, row in zip(figures["target"], figures["weights"], strict=True):
        lines.append(f"{word:>10} " + "".join(f"{weight:6.2f}" for weight in row))
    return lines

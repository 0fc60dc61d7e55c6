"""A translator that knows no language: it copies the translation of a text that is nearly yours."""

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.translation import fuzzy_match

exercise = Exercise(
    reference=fuzzy_match,
    lesson="11",
    title="Copy the neighbour",
    minutes=6,
    difficulty=1,
    hints=(
        "*Enable lock user* and *Disable lock user*: how many words does each have, and at how "
        "many places do they differ?",
        "You hold the source and one text of the memory. What must be equal before it makes sense "
        "to compare them place by place?",
        "`zip` gives the words at the same place in pairs. How do you count the pairs that are not "
        "equal, and from which count on is a text no neighbour?",
    ),
    clauses={
        "each with its translation": GIVEN,
        "equally many words": "length_not_compared",
        "Where there is no such text": "nearest_of_all",
    },
)

WORDS = ("on", "off", "the", "light", "door")

Memory = list[tuple[list[str], str]]


def text(draw: Draw, count: int, words: int = 3) -> list[str]:
    return [WORDS[i] for i in draw.integers(0, words, count).tolist()]


def drawn(draw: Draw, texts: int, shortest: int, longest: int, words: int = 3) -> Memory:
    """Draw a memory whose translations are all different."""
    return [
        (text(draw, draw.number(shortest, longest), words), f"tradução {i}") for i in range(texts)
    ]


def changed(words: list[str], *places: int) -> list[str]:
    """Return the words with another one at these places."""
    return ["novo" if i in places else word for i, word in enumerate(words)]


@exercise.cases
def cases(draw: Draw):
    memory = [
        (["lock", "the", "door"], "Trancar a porta"),
        (["turn", "on", "the", "light"], "Acender a luz"),
    ]
    yield "one word is another", (["turn", "off", "the", "light"], memory)
    yield "nothing is near", (["open", "a", "window"], memory)
    yield "the same text", (["lock", "the", "door"], memory[:1])
    yield "two words are others", (["turn", "off", "a", "light"], memory)
    yield "the same words in another order", (["the", "lock", "door"], memory)
    yield "one word more", (["turn", "on", "the", "light", "now"], memory)
    yield "two words more", (["turn", "on", "the", "light", "right", "now"], memory)
    yield "one word less", (["turn", "on", "the"], memory)
    memory = drawn(draw, 6, 5, 6)
    words = memory[3][0]
    near = [
        (changed(words, 1), "o primeiro"),
        (list(words), "o mesmo"),
        (changed(words, 4), "outro"),
    ]
    yield "several are near, the same text among them", (words, [*memory[:3], *near])
    yield "the last word is another", (changed(words, len(words) - 1), memory)
    yield "the first word is another", (changed(words, 0), memory)
    yield "many texts of three words", (text(draw, 4), drawn(draw, 20, 3, 6))
    yield "many texts of four words", (text(draw, 5), drawn(draw, 30, 4, 6))
    yield "an empty memory", (text(draw, 4), [])
    yield "texts of one word", (["on"], [(["the", "door"], "A porta"), (["off"], "Desligar")])
    yield "a text without words", ([], [(["on"], "Ligar"), ([], "nada"), ([], "vazio")])
    capitals = [(["turn", "on", "The", "light"], "Acender A luz")]
    yield "capitals are other words", (["turn", "off", "the", "light"], capitals)
    yield "an empty translation", (words, [(changed(words, 2), ""), (list(words), "o mesmo")])


@exercise.edges
def edges(draw: Draw):
    memory = drawn(draw, 6, 5, 6)
    words = memory[3][0]
    marks = [(["open", "menu", "2.5", "(beta)", "?"], "Abrir o menu 2.5 (beta)?")]
    yield "marks and numbers", (["open", "door", "2.5", "(beta)", "?"], marks)
    yield "a tuple of words", (tuple(changed(words, 1)), memory)


@exercise.requires("a text of the memory is found again, whichever one word is changed")
def any_place(answer, draw: Draw):
    words = text(draw, 6, 5)
    memory = [(changed(words, 0, 3, 5), "longe"), (words, "perto"), (words, "depois")]
    return all(answer(changed(words, place), memory) == "perto" for place in range(6))


@exercise.requires("two changed words are too many, wherever they are")
def two_places(answer, draw: Draw):
    words = text(draw, 5, 5)
    pairs = ((i, j) for i in range(5) for j in range(i))
    return all(answer(changed(words, *pair), [(words, "perto")]) == "" for pair in pairs)


def differences(known: list[str], source: list[str]) -> int:
    return sum(a != b for a, b in zip(known, source, strict=False))


def first(source, memory, is_near, otherwise=""):
    """Return the translation of the first text that `is_near(known, source)`."""
    return next((told for known, told in memory if is_near(known, source)), otherwise)


def one_apart(known, source):
    return len(known) == len(source) and differences(known, source) <= 1


@exercise.mistake
def capitals_ignored(source, memory):
    """Capitals were made small: *The* and *the* are two words, as different as any."""
    small = [([word.lower() for word in known], told) for known, told in memory]
    return fuzzy_match([word.lower() for word in source], small)


@exercise.mistake
def length_not_compared(source, memory):
    """Texts of unequal length were compared: `zip` ends with the shorter one, so what is left of
    the longer one was never looked at. What must be equal first?"""
    return first(source, memory, lambda known, source: differences(known, source) <= 1)


@exercise.mistake
def same_text_alone(source, memory):
    """Only the very same text was found. A neighbour may have another word at one place."""
    return first(source, memory, lambda known, source: list(known) == list(source))


@exercise.mistake
def never_the_same_text(source, memory):
    """The same text was passed over: exactly one word had to differ. *One at most* has another
    case."""

    def is_near(known, source):
        return len(known) == len(source) and differences(known, source) == 1

    return first(source, memory, is_near)


@exercise.mistake
def two_allowed(source, memory):
    """A text with two other words was taken. How many may differ, at most?"""

    def is_near(known, source):
        return len(known) == len(source) and differences(known, source) <= 2

    return first(source, memory, is_near)


@exercise.mistake
def without_order(source, memory):
    """The words were compared without their places, so *the lock door* is *lock the door*. What
    gives you the words at the same place of both?"""

    def is_near(known, source):
        return len(known) == len(source) and len({*source} - {*known}) <= 1

    return first(source, memory, is_near)


@exercise.mistake
def one_word_more_allowed(source, memory):
    """A text was taken that has one word more or less than the source. Both must have as many
    words: here a word may be another one, and none may be missing."""

    def is_near(known, source):
        apart = abs(len(known) - len(source))
        return apart + differences(known, source) <= 1

    return first(source, memory, is_near)


@exercise.mistake
def one_word_in_common(source, memory):
    """A text was passed over because it shares no word with the source. Two texts of one word
    differ in one word at most, and two without words in none."""

    def is_near(known, source):
        return len(known) == len(source) and differences(known, source) <= min(1, len(source) - 1)

    return first(source, memory, is_near)


@exercise.mistake
def no_words_no_match(source, memory):
    """A text without words was passed over. Two such texts have equally many words, and no place at
    which they differ."""
    return fuzzy_match(source, memory) if source else ""


@exercise.mistake
def empty_passed_over(source, memory):
    """A text was passed over because its translation is empty. It is the first that is near: may
    what it is translated to decide?"""
    return fuzzy_match(source, [pair for pair in memory if pair[1]])


@exercise.mistake
def last_one(source, memory):
    """The last text that is near was taken, not the first. When may the search end?"""
    return fuzzy_match(source, memory[::-1])


@exercise.mistake
def nearest_of_all(source, memory):
    """Where no text is near enough, the nearest one was copied, or the search ended otherwise than
    with an empty translation. What does a translator write that has nothing to copy?"""

    def apart(pair):
        return abs(len(pair[0]) - len(source)) + differences(pair[0], source)

    nearest = min(memory, key=apart, default=("", ""))
    return first(source, memory, one_apart, nearest[1])


@exercise.mistake
def same_text_first(source, memory):
    """The same text came before all others, wherever it was in the memory. The first one that is
    near was asked for."""
    return same_text_alone(source, memory) or fuzzy_match(source, memory)


@exercise.mistake
def nothing_for_nothing(source, memory):
    """Where no text is near, `None` came back. A translator's answer is a text: which one says
    nothing?"""
    return first(source, memory, one_apart, None)


@exercise.mistake
def text_returned(source, memory):
    """What came back is the text that was found, not its translation. What is the second part of
    each pair of the memory?"""
    texts = [(known, " ".join(known)) for known, _ in memory]
    return fuzzy_match(source, texts)


@exercise.mistake
def first_text_decides(source, memory):
    """The search ended with the first text, near or not. Where does `return ""` belong, inside of
    the loop or behind it?"""
    return fuzzy_match(source, memory[:1])


@exercise.mistake(raises=IndexError)
def first_of_none(source, memory):
    """The first of all neighbours was taken, and there may be none. What comes back then?"""
    found = [told for known, told in memory if fuzzy_match(source, [(known, told)])]
    return found[0]


@exercise.alternative
def by_holes(source, memory):
    def with_holes(words):
        return {(*words[:i], None, *words[i + 1 :]) for i in range(len(words))}

    wanted = with_holes(tuple(source))
    for known, translation in memory:
        if wanted & with_holes(tuple(known)) or tuple(known) == tuple(source):
            return translation
    return ""


@exercise.alternative
def by_filter(source, memory):
    def is_near(pair):
        same = [a == b for a, b in zip(pair[0], source, strict=False)]
        return len(pair[0]) == len(source) and same.count(False) < 2

    found = [*filter(is_near, memory)]
    return found[0][1] if found else ""

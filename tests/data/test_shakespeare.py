"""The texts of Shakespeare, where they are fetched."""

import pytest

from course_lib.data import shakespeare, store


def test_words_are_lower_cased_and_keep_inner_apostrophes():
    found = shakespeare.words("_O'er_ the king's head,--'tis HE!")
    assert " ".join(found) == "o'er the king's head tis he"


@pytest.mark.skipif(
    not store.is_fetched("shakespeare"), reason="needs Shakespeare: run `course fetch shakespeare`"
)
def test_the_complete_works_have_the_counts_that_the_lessons_cite():
    text = shakespeare.complete_works()
    assert len(shakespeare.works()) == 42
    assert shakespeare.works()["Hamlet"].startswith("HAMLET, PRINCE OF DENMARK")
    assert len(text) == 5_057_239
    assert len(text.split()) == 905_018
    assert len(set(text)) == 84

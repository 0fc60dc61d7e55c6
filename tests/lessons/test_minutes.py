"""The laws of the minutes that lessons say they take."""

import csv
import statistics
from pathlib import Path

from lessons.minutes import Counts, cost

ROWS = Path(__file__).with_name("readers.tsv").read_text("utf8").splitlines()
READERS = list(csv.DictReader(ROWS, delimiter="\t"))


def test_the_minutes_are_those_of_people_who_have_read_all_lessons():
    errors = []
    for row in READERS:
        counted = Counts(*(float(row[name]) for name in Counts._fields))
        errors.append(cost(counted) / float(row["minutes"]) - 1)
    assert len(errors) == 15
    assert statistics.mean(map(abs, errors)) < 0.10
    assert abs(statistics.mean(errors)) < 0.05, "neither too few in general nor too many"

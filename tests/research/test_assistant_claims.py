"""What lesson 17 says of its trainings with another seed."""

from course_lib.instruments import results


def test_no_other_way_is_ahead_of_the_constraint_and_a_second_try_may_mend_none():
    runs = results.load("claims")["figures"]["17"]["runs"]
    ways = [x["came"] for run in runs for x in run["claims"] if "constrained" in x["came"]]
    assert len(ways) > 1
    assert all(came["constrained"] == max(came.values()) for came in ways)
    assert any(came["second try"] == came["as written"] for came in ways)

"""A hint begins with what the last check has named, and the last one names the tools."""

from course_lib.answers.answer import InProcess
from course_lib.checking.catalogue import load, outline
from course_lib.checking.explain.hints import tell
from course_lib.checking.notebook.check import record
from course_lib.checking.verdict import judge
from course_lib.files.workspace import Workspace

ID = "attention/softmax"


def no_exponential(scores, mask=None):
    scores = scores if mask is None else scores * mask
    return scores / scores.sum(-1, keepdim=True)


def test_a_hint_after_a_named_mistake_begins_with_it_until_another_check(tmp_path):
    workspace, plain = Workspace.make(tmp_path), tell(ID, 1, None)
    verdict = judge(load(ID), InProcess(no_exponential))
    record(workspace, verdict, lambda: no_exponential, None)
    told = tell(ID, None, workspace)
    assert told.startswith(f"Your last answer: {verdict.message} Mend that first.\nHint 1 of 3.")
    unnamed = judge(load(ID), InProcess(lambda scores, mask=None: scores))
    record(workspace, unnamed, lambda: None, None)
    assert tell(ID, 1, workspace).startswith("Hint 1 of 3.")
    assert plain.splitlines()[1] in told


def test_the_last_hint_alone_names_the_tools():
    first, *_, last = (tell(ID, number, None) for number in (1, 2, 3))
    assert "Our solution uses `masked_fill`," in last
    assert "Our solution uses" not in first
    # what mends a line has the others before it, and the course's own parts are no tools
    assert outline("positions/mend_rotary").tools == ()
    assert outline("self_attention/scaled_dot_product").tools == ()

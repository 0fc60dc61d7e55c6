"""A workspace that version 0.1.0 made: it opens, checks, carries on and is graded as before.

`kept_by_0_1_0.txt` holds answers as 0.1.0 kept them: its own references, some of them standing on
kept answers of earlier lessons. In them `MultiHeadAttention` calls its rule `attention`.
"""

import json
import re
from functools import partial
from pathlib import Path

import jupytext
import pytest
import torch
from torch import nn

from course_lib.checking.catalogue import load
from course_lib.command_line.main import main
from course_lib.exercises import mine, verdict
from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.files.releases import hand_out
from course_lib.files.workspace import Record, Workspace
from course_lib.grading.judging.detect import best_level
from course_lib.multi_head import MultiHeadAttention
from course_lib.self_attention import scaled_dot_product_attention

PARTS = re.split(
    r"^=== (.*)\n",
    Path(__file__).with_name("kept_by_0_1_0.txt").read_text("utf8"),
    flags=re.MULTILINE,
)
KEPT = dict(zip(PARTS[1::2], PARTS[2::2], strict=True))
RECORD = {
    "status": "wrong",
    "points": 10,
    "max_points": 10,
    "passed": True,
    "attempts": 3,
    "hints": 1,
    "when": "2026-06-01T12:00:00",
}
# a component that lesson 08 gives in a cell
RESIDUAL = """
def residual(norm: str) -> Callable:
    ways = {"post": PostNorm, "pre": PreNorm}
    if norm not in ways:
        raise ValueError(f'norm must be "post", as in the paper of 2017, or "pre", not {norm!r}')
    return ways[norm]
"""
# what 0.1.0 called the release of the notebook that is handed out below
RELEASES = {"08_encoder_and_decoder.ipynb": "f04560fb1af6c873"}
# what notebooks of 0.1.0 import
IMPORTS = """
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib import landscape, plots, position_schemes, results, training
from course_lib.data import batches, characters, needs, shakespeare, spelling, store, trees
from course_lib.data import word_vectors
from course_lib.efficient import layers
from course_lib.efficient.lsh import draw_rotations, lsh_attention_in_rounds
from course_lib.efficient.reversible import ReversibleSequence
from course_lib.encoder import Encoder, EncoderBlock
from course_lib.exercises import check, hint, mine, reveal
from course_lib.feed_forward import FeedForward, feed_forward
from course_lib.lessons import course_map, topic_map
from course_lib.masks import padding_mask
from course_lib.multi_head import MultiHeadAttention, ToThemselves
from course_lib.position_schemes import Alibi, Dependency, Learned, NoPositions, Reader, Relative
from course_lib.position_schemes import Rotary, Sinusoidal, answers, naming_loss
from course_lib.positions import shift_matrix, sinusoidal
from course_lib.pretrained import g2p, marian, minilm, quantised, smollm2
from course_lib.rnn import sequential_steps
from course_lib.self_attention import SelfAttention, parameter_free, project
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.seq2seq import Encoder, Seq2Seq, next_token_loss
from course_lib.stack import NormAlone, Residual, Stack, bare
from course_lib.transformer import BASE, greedy
from course_lib.verify.torch_stacks import torch_block
from course_lib.watching import watching
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Write a workspace of 0.1.0 file by file, and stand in it."""
    mark = tmp_path / "workspace" / ".course"
    for exercise_id, source in KEPT.items():
        for kind, text in (("answers", source), ("records", json.dumps(RECORD, indent=1))):
            path = mark / kind / f"{exercise_id}.{'py' if kind == 'answers' else 'json'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf8")
    (mark / "releases.json").write_text(json.dumps(RELEASES, indent=1))
    monkeypatch.chdir(mark.parent)
    found = Workspace.find()
    assert found is not None
    return found


def own(source):
    """Leave the last definition of a kept answer, as its learner typed it into a cell."""
    return source[source.rindex("\nclass ") + 1 :]


@pytest.fixture
def notebook(workspace, save_notebook):
    """Save what a notebook of lesson 08 said: an answer on an answer, and one on the library."""
    return save_notebook(
        workspace.folder / "08_encoder_and_decoder.ipynb",
        "from collections.abc import Callable\nimport torch\nfrom torch import Tensor, nn\n"
        "from einops import rearrange\nfrom jaxtyping import Bool, Float\n"
        "from course_lib.exercises import check, hint, mine, reveal",
        "MultiHeadAttention = mine('multi_head/attention')",
        "layer_norm = mine('add_norm/layer_norm')",
        "PostNorm = mine('add_norm/post_norm')\nPreNorm = mine('add_norm/pre_norm')",
        RESIDUAL,
        "from course_lib.feed_forward import FeedForward\n"
        "from course_lib.multi_head import ToThemselves",
        ("encoder/block", own(KEPT["encoder/block"])),
        lesson="08",
    )


def test_it_opens_with_its_records_and_answers(workspace):
    for exercise_id, source in KEPT.items():
        assert workspace.record(exercise_id) == Record(**RECORD)
        assert workspace.answer(exercise_id) == source


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("exercise_id", KEPT)
def test_a_kept_answer_still_passes(exercise_id, capsys):
    answer = mine(exercise_id)
    assert capsys.readouterr().out == f"{load(exercise_id).name}: your own\n"
    judged = verdict(exercise_id, answer)
    assert judged.status == "passed", judged.message


@pytest.mark.parametrize("line", IMPORTS.strip().splitlines())
def test_a_notebook_handed_out_then_still_imports(line):
    exec(line, {})


def test_its_notebook_checks_and_its_answer_is_kept_anew(workspace, notebook, capsys):
    assert main(["check", str(notebook), "--exercise", "encoder/block"]) == 0
    assert "1 of 1 exercises passed" in capsys.readouterr().out
    record = workspace.record("encoder/block")
    assert (record.status, record.attempts, record.hints) == ("passed", 4, 1)
    assert "self.heads, self.attention = heads, attention" in workspace.answer("encoder/block")


def language_models():
    """Find the class of lesson 13 that builds a model of blocks of one's own: then, and now."""
    then = """
class LanguageModel(nn.Module):
    def __init__(self, vocab, n, rule):
        super().__init__()
        attention = partial(MultiHeadAttention, attention=rule)
        block = partial(EncoderBlock, attention=attention)
        self.encoder = Encoder(vocab, 2, 64, 4, 256, n, "pre", block=block)

    def forward(self, tokens):
        return self.encoder(tokens) @ self.encoder.embedding.table.T
"""
    lesson = jupytext.read(ROOT / "lessons" / "13_exact_and_sparse_attention.py", fmt="py:percent")
    (now,) = [x.source for x in lesson.cells if "class LanguageModel" in x.source]
    return {"then": then, "now": now}


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("whose", ["own", "library"])
@pytest.mark.parametrize("lesson", ["then", "now"])
def test_its_layers_carry_later_lessons(lesson, whose):
    from course_lib.encoder import Encoder, EncoderBlock

    calls = []

    def rule(q, k, v, mask=None):
        calls.append(q.shape)
        return scaled_dot_product_attention(q, k, v, mask)

    attention = mine("multi_head/attention") if whose == "own" else MultiHeadAttention
    namespace = {
        "nn": nn,
        "partial": partial,
        "MultiHeadAttention": attention,
        "Encoder": Encoder,
        "EncoderBlock": EncoderBlock,
    }
    exec(language_models()[lesson], namespace)
    model = namespace["LanguageModel"](9, 12, rule)
    assert model(torch.randint(9, (2, 12))).shape == (2, 12, 9)
    assert len(calls) == 2


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("block", ["own", "library"])
def test_the_weights_of_its_heads_are_recorded(block):
    from course_lib.watching import watching

    from course_lib.encoder import EncoderBlock

    make = mine("encoder/block") if block == "own" else EncoderBlock
    made = make(8, 2, 16, attention=mine("multi_head/attention"))
    x = torch.randn(3, 5, 8)
    before = made(x)
    # the way to the layer that notebooks of 0.1.0 go
    with watching(made.attention.sublayer.attention) as weights:
        assert torch.equal(made(x), before)
    assert [tuple(each.shape) for each in weights] == [(3, 2, 5, 5)]
    assert torch.equal(made(x), before)


def test_a_new_release_has_its_answers_in(workspace, save_notebook, tmp_path):
    (tmp_path / "notebooks").mkdir()
    course, name = tmp_path / "notebooks", "08_encoder_and_decoder.ipynb"
    save_notebook(course / name, "1 + 1", ("encoder/block", "stub 1"), lesson="08")
    assert hand_out(workspace, course) == []
    # the release that it had then is known again
    assert workspace.releases() == RELEASES

    save_notebook(course / name, "1 + 1", ("encoder/block", "stub 2"), lesson="08")
    (message,) = hand_out(workspace, course)
    assert "with your answers to encoder/block in it" in message
    new = ipynb.read(workspace.folder / "08_encoder_and_decoder.new.ipynb")
    assert ipynb.text(new["cells"][2]) == KEPT["encoder/block"].rstrip()


def test_its_notebook_is_graded_as_before(notebook, tmp_path):
    trust = ["--trust"] if best_level() == "plain" else []
    chosen = ["--lesson=00", "--exercise=encoder/block"]
    out = tmp_path / "out"
    assert main(["grade", str(notebook), "--out", str(out), "--jobs=1", *trust, *chosen]) == 0
    (row,) = json.loads((out / "results.json").read_text("utf8"))["submissions"]
    assert row["status"] == "graded", row["message"]
    statuses = {name: x["status"] for name, x in row["exercises"].items()}
    assert statuses == {"start/hello": "not attempted", "encoder/block": "passed"}


# what the notebook of lesson 12 held before it became lessons 13 and 14
HELD_BY_12 = ["efficient/operations", "efficient/window", "efficient/linformer", "efficient/linear"]
MARKED_IN_12 = [(x, f"{load(x).name} = 'begun'") for x in HELD_BY_12]
OWN = "def linear_attention(q, k, v, causal=False):\n    return 'my own'\n"


@pytest.fixture
def split(workspace, save_notebook):
    """Save the notebooks of lessons 08 and 12 from before each became two lessons."""
    workspace.keep("efficient/linear", OWN)
    workspace.note_check("efficient/linear", "passed", 9, 9)
    cells = [("encoder/block", "stub"), ("encoder/mean_pool", "def mean_pool(): 'begun'")]
    save_notebook(workspace.folder / "08_encoder_and_decoder.ipynb", *cells, lesson="08")
    save_notebook(workspace.folder / "12_efficient_attention.ipynb", *MARKED_IN_12, lesson="12")
    return {path.name: path.read_bytes() for path in workspace.folder.glob("*.ipynb")}


def test_of_a_split_lesson_nothing_is_lost_and_one_line_says_what_moved(workspace, split):
    messages = hand_out(workspace, ROOT / "notebooks")
    now = {path.name: path.read_bytes() for path in workspace.folder.glob("*.ipynb")}
    assert {name: now[name] for name in split} == split
    eight, twelve = (x for x in messages if "has become two lessons" in x)
    assert eight == (
        "08_encoder_and_decoder.ipynb has become two lessons: 09_three_real_models.ipynb now "
        "holds what moved, with your answers to decoder/grouped_query. "
        "Your old notebook stays as it is."
    )
    assert "13_exact_and_sparse_attention.ipynb and 14_low_rank_hashed_and_linear" in twelve
    assert "with your answers to efficient/linear, efficient/reversible" in twelve
    (linear,) = [
        ipynb.text(cell)
        for cell in ipynb.parse(now["14_low_rank_hashed_and_linear_attention.ipynb"], "")["cells"]
        if ipynb.exercise(cell) == "efficient/linear"
    ]
    assert linear == OWN.rstrip()
    assert hand_out(workspace, ROOT / "notebooks") == []


def test_a_lesson_that_was_never_another_s_comes_without_a_word(tmp_path):
    fresh = Workspace.make(tmp_path / "fresh")
    assert hand_out(fresh, ROOT / "notebooks") == []
    assert hand_out(fresh, ROOT / "notebooks") == []


def test_what_passed_in_a_split_lesson_counts_in_the_new_one(workspace, split, capsys):
    assert main(["progress"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^14 Low-rank, hashed and linear attention +[○✗✓]+ +2 of 6$", said, re.M)


def test_a_notebook_from_before_the_split_is_checked_and_graded_by_its_own_cells(
    workspace, split, tmp_path, capsys
):
    old = workspace.folder / "12_efficient_attention.ipynb"
    assert main(["check", str(old)]) == 1
    assert f"0 of {len(HELD_BY_12)} exercises passed" in capsys.readouterr().out
    trust = ["--trust"] if best_level() == "plain" else []
    for out, chosen, count in (("all", [], 4), ("new", ["--lesson=14"], 6)):
        folder = tmp_path / out
        assert main(["grade", str(old), "--out", str(folder), "--jobs=1", *trust, *chosen]) == 0
        (row,) = json.loads((folder / "results.json").read_text("utf8"))["submissions"]
        assert (row["status"], len(row["exercises"])) == ("graded", count), row["message"]
    capsys.readouterr()
    other = ["--lesson=05", "--out", str(tmp_path / "other"), "--jobs=1", *trust]
    assert main(["grade", str(old), *other]) == 0
    assert "This is of lesson 12, of which nothing is graded here" in (
        tmp_path / "other" / "results.json"
    ).read_text("utf8")


def test_grading_again_what_was_graded_before_the_split_changes_nothing(
    workspace, split, tmp_path, capsys
):
    """As then, the results say lesson 12."""
    old = str(workspace.folder / "12_efficient_attention.ipynb")
    trust = ["--trust"] if best_level() == "plain" else []
    assert main(["grade", old, "--out", str(tmp_path / "then"), "--jobs=1", *trust]) == 0
    path = tmp_path / "then" / "results.json"
    results = json.loads(path.read_text("utf8"))
    results["submissions"][0]["lesson"] = "12"
    path.write_text(json.dumps(results), "utf8")
    again = ["--out", str(tmp_path / "again"), "--earlier", str(path), "--jobs=1", *trust]
    assert main(["grade", old, *again]) == 0
    assert "0 submissions changed." in capsys.readouterr().out

"""The live parts of the site compute what the course's own code computes, to 1e-4."""

import shutil
from functools import partial

import pytest
import torch
from torch import nn

from book import live
from course_lib.attention import softmax
from course_lib.corpus import NGrams
from course_lib.data import spelling, store
from course_lib.efficient import kernel
from course_lib.instruments.attribution import letter_drops
from course_lib.positions import rotary
from course_lib.pretrained import pronouncer, shakespeare_model
from research.experiments.language_model import split
from tests.book.serving import served

WORDS = ("phonograph", "attention", "a", "supercalifragilisticexpialidocious")
close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4, check_dtype=False)

pytestmark = pytest.mark.skipif(
    not store.is_fetched("shakespeare"), reason="needs shakespeare: run `course fetch shakespeare`"
)


@pytest.fixture(scope="module")
def run(browser, tmp_path_factory):
    """Run a function of JavaScript that is given all modules and the data."""
    folder = tmp_path_factory.mktemp("live")
    shutil.copytree(live.MODULES, folder, dirs_exist_ok=True)
    live.write(folder / "data")
    (folder / "index.html").touch()
    with served(folder) as address:
        tab = browser.new_page()
        tab.goto(f"{address}/index.html")
        tab.evaluate("""async () => {
          const names = ["maths", "seq2seq", "language_model", "ngrams", "data"];
          const parts = await Promise.all(names.map(name => import(`./${name}.js`)));
          window.m = Object.assign({}, ...parts);
          window.reader = await m.pronouncer();
          window.writer = await m.languageModel();
          window.counts = await m.counts();
        }""")
        yield lambda script, *given: tab.evaluate(f"given => ({script})(...given)", given)
        tab.close()


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_read_as_the_library_reads_it(run, word):
    model = pronouncer.load()
    [sounds] = spelling.pronounce(model, [word])
    came = run(
        "word => [...reader.pronounce(word)].map(x => ({...x, weights: [...x.weights]}))", word
    )
    assert [x["sound"] for x in came if x["sound"] != "end"] == sounds
    source, target = spelling.encode_words([word]), spelling.encode_sounds([sounds])
    read, expected = target[:, :-1], target[0, 1:]
    came = came[: len(expected)]
    close(torch.tensor([x["weights"] for x in came]), model.weights(source, read)[0][: len(came)])
    p = model(source, read)[0].softmax(-1)[range(len(expected)), expected]
    close(torch.tensor([x["p"] for x in came]), p[: len(came)])


def test_a_sound_depends_on_the_letters_that_the_library_names(run):
    model = pronouncer.load()
    [sounds] = spelling.pronounce(model, ["phonograph"])
    _, drops = letter_drops(model, "phonograph", sounds)
    [tokens] = spelling.encode_sounds([sounds])[:, 1:].tolist()
    for j in (1, 9):
        close(
            torch.tensor(run("(...x) => reader.drops(...x)", "phonograph", tokens, j)), drops[:, j]
        )


def logits(text, model=None):
    _, _, vocab = split()
    tokens = torch.tensor([vocab.index(x) for x in text])
    with torch.no_grad():
        return (model or shakespeare_model.load())(tokens)[-1]


def held_out(length):
    _, tokens, vocab = split()
    return "".join(vocab[x] for x in tokens[:length].tolist())


def in_browser(run, text, *off):
    script = "(text, off) => (writer.without(off), [...writer.after(text)])"
    return torch.tensor(run(script, text, off))


@pytest.mark.parametrize("length", [1, 40, 128])
def test_the_model_writes_what_the_library_writes(run, length):
    text = held_out(length)
    close(in_browser(run, text), logits(text))


def test_of_a_long_text_it_sees_half_a_window_or_more(run):
    text = held_out(200)
    run("() => writer.without([])")
    for length, begun in ((128, 0), (129, 64), (192, 64), (193, 128), (130, 64)):
        came = torch.tensor(run("text => [...writer.after(text)]", text[:length]))
        close(came, logits(text[begun:length]))


def test_a_head_or_a_norm_that_is_off_is_off_in_the_library_too(run):
    text = held_out(60)
    without = shakespeare_model.load()
    d = shakespeare_model.D_MODEL // shakespeare_model.HEADS
    with torch.no_grad():
        w_o = without.get_parameter("blocks.1.attention.sublayer.attention.w_o.weight")
        w_o[:, 2 * d : 3 * d] = 0
    close(in_browser(run, text, "head 1 2"), logits(text, without))
    without = shakespeare_model.load()
    without.get_submodule("blocks.3.feed_forward").norm_layer = lambda x, gain, bias: x * gain
    close(in_browser(run, text, "norm 3 1"), logits(text, without))
    assert not torch.allclose(logits(text, without), logits(text), atol=0.1)


@pytest.mark.parametrize("off", [[], ["norm last"]])
def test_the_loss_of_the_passage_is_the_library_s_where_logits_are_large_too(run, off):
    _, tokens, _ = split()
    read, model = tokens[live.PASSAGE], shakespeare_model.load()
    if off:
        model.get_submodule("last_norm").norm_layer = lambda x, gain, bias: x * gain
    with torch.no_grad():
        expected = nn.functional.cross_entropy(model(read[:-1]), read[1:])
    run("off => writer.without(off)", off)
    close(torch.tensor(run("async () => await writer.loss(writer.passage)")), expected)


def test_the_counts_are_the_library_s(run):
    tokens, _, vocab = split()
    counted = NGrams(tokens, len(vocab), live.ORDER)
    for text in ("t", "Romeo, Rome", "thou art zqx", held_out(50)):
        came = torch.tensor(run("text => [...counts.after(text)]", text))
        given = torch.tensor([vocab.index(x) for x in text])
        close(came, counted.probabilities(given)[-1])
    _, held, _ = split()
    read = held[live.PASSAGE]
    p = counted.probabilities(read[:-1])[range(len(read) - 1), read[1:]]
    close(torch.tensor(run("() => counts.loss(writer.passage)")), -p.log().mean())


def test_scores_become_the_library_s_weights(run):
    scores, mask = torch.tensor([2.0, -1.0, 0.5, 90.0, 0.0]), [True, True, False, True, True]
    came = torch.tensor(run("(...x) => [...m.softmax(...x)]", scores.tolist(), mask, 0.7))
    close(came, softmax(scores / 0.7, torch.tensor(mask)))
    assert run("x => [...m.softmax(x, [false, false])]", [1, 2]) == [0, 0]


def test_clocks_turn_as_the_library_turns_them(run):
    x = torch.tensor([1.0, 0.5, -0.3, 2.0])
    came = run("(x, i) => [...m.rotary(Float32Array.from(x), i, 100)]", x.tolist(), 7)
    close(torch.tensor(came), rotary(x[None], torch.tensor([7]), base=100)[0])


def test_tiles_end_where_the_library_s_kernel_ends(run):
    scores, values = torch.randn(12), torch.randn(12)
    states = run("(...x) => m.onlineSoftmax(...x)", scores.tolist(), values.tolist(), 5)
    tiles = [(slice(0, 1), [keys], None) for keys in kernel.spans(12, 5)]
    q, k = torch.ones(1, 1), scores[:, None]
    output, log_total = kernel.attend(q, k, values[:, None], tiles)
    last = states[-1]
    close(torch.tensor(last["o"] / last["l"]), output[0, 0])
    close(torch.tensor(last["l"]).log() + last["m"], log_total[0])

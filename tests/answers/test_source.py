"""What an answer needs goes with it, and nothing that only looks like it."""

import ast

import pytest
import torch
from jaxtyping import Float

from course_lib.answers.answer import InProcess, Named, Probe, Request
from course_lib.answers.source import Source, as_source, define, find_source, global_reads, names_in
from course_lib.checking.notebook.solution_text import self_contained
from course_lib.checking.stubs import stub
from course_lib.transformer import EncoderBlock

ANSWER = '''
def answer(x: Tensor, factor: float = FACTOR) -> Tensor:
    """Multiply, and add up."""
    total = [helper(item) for item in x]
    return factor * nn.functional.relu(torch.stack(total))
'''


def defined(**notebook):
    names = {"Tensor": torch.Tensor, "torch": torch, "nn": torch.nn, "FACTOR": 2.0}
    helper = define("def helper(y):\n    return y + 1\n", "helper")
    return define(ANSWER, "answer", names | {"helper": helper} | notebook)


def test_globals_annotations_defaults_and_helpers_go_along():
    carried = define(self_contained(defined()), "answer")
    assert carried(torch.tensor([-3.0, 1.0])).tolist() == [0.0, 4.0]


def test_a_shape_that_has_a_name_goes_along():
    shapes = {"Floats": Float[torch.Tensor, "... n"], "torch": torch}
    source = "def answer(x: Floats) -> Floats:\n    return 2 * x\n"
    carried = self_contained(define(source, "answer", shapes))
    assert "Floats = Float[Tensor, '... n']" in carried
    assert define(carried, "answer")(torch.ones(2)).tolist() == [2, 2]


def test_what_is_defined_is_found_in_the_tree_that_it_was_defined_from():
    source = Source("import torch\n\n\ndef answer(x):\n    return torch.exp(x)\n")
    found = find_source(define(source, "answer"))
    assert found.tree.body == source.tree.body[1:]
    # as a text of its own it has lines of its own
    assert as_source(found).tree.body[0].lineno == 1
    same = Source(found)
    lines = [{x.node.lineno for x in names_in(y, {}).mentions} for y in (found, same)]
    assert lines == [{5}, {2}]
    assert ast.dump(same.tree) == ast.dump(found.tree)


def test_a_variable_that_only_shares_a_parameters_or_locals_name_stays_behind():
    tensors = dict.fromkeys(("x", "factor", "total", "item"), torch.zeros(3))
    assert self_contained(defined(**tensors)) == self_contained(defined())


def test_a_variable_that_is_read_cannot_go_along_and_is_named():
    with pytest.raises(ValueError, match="it uses helper, a Tensor that only this notebook has"):
        self_contained(defined(helper=torch.zeros(3)))


def test_a_class_body_reads_its_own_names_from_outside_and_a_method_when_it_is_called():
    source = Source("class A:\n    x = x\n\n    def f(self, z):\n        return [x, y, z]\n")
    assert source.reads == {"x", "y"}
    assert sorted(global_reads(source)) == [("x", False), ("x", True), ("y", True)]


def test_of_an_empty_class_both_methods_are_stubs():
    given, empty = (stub(EncoderBlock, x) for x in (("forward",), ("__init__", "forward")))
    assert (given.count("raise NotImplementedError"), given.count("add_and_norm(norm)")) == (1, 1)
    assert (empty.count("raise NotImplementedError"), empty.count("add_and_norm(norm)")) == (2, 0)
    assert "norm_layer: Callable[..., Tensor] = layer_norm," in empty
    assert Source(empty).is_stub("forward")


def test_a_class_is_built_with_arguments_by_name():
    build = (4, 2, 6, Named("attention", Probe("attention_to_all_alike")))
    reply = InProcess(EncoderBlock).run(Request((torch.zeros(3, 4),), build))
    assert reply.error is None
    assert reply.output.shape == (3, 4)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (
            {"other": torch.zeros(2)},
            "expected a parameter other of shape (2,), and there is none: there are weight, bias",
        ),
        ({"weight": torch.zeros(2)}, "expected the shape (2,) of weight, but got (3, 2)"),
        ({"weight": torch.zeros(3, 2)}, "expected no parameter of the name bias"),
    ],
)
def test_other_parameters_than_asked_for_are_named(weights, said):
    reply = InProcess(torch.nn.Linear).run(Request((torch.zeros(2),), (2, 3), weights))
    assert (reply.error.type, reply.error.message) == ("Misfit", said)

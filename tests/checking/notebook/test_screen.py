"""What honest answers use passes the screen, and what hides a function does not."""

import ast
import contextlib
import importlib

import pytest

from course_lib.answers import forbidden_calls
from course_lib.answers.source import find_source, source_of
from course_lib.checking.catalogue import ids, load
from course_lib.checking.notebook import likeness, screen
from course_lib.checking.notebook.answers import find_answers
from course_lib.files.ipynb import NotANotebook
from course_lib.grading.judging.sandbox_files import packages
from lessons import build
from tests.grading.test_judge import alone

SET_UP = "import math\nimport torch\nimport torch.nn as nn\nfrom torch import Tensor\n"
FIRST = "def f(x):\n    return "
HONEST = {
    "a constant that is computed": f'NEG_INF = float("-inf")\n{FIRST}x + NEG_INF',
    "minus a constant": f"SMALL = 1e-9\nBIG = -1 / SMALL\n{FIRST}x * BIG",
    "the largest integer": f"import sys\n{FIRST}x.clamp(max=sys.maxsize)",
    "a device that is asked for": (
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        f"{FIRST}x.to(device)"
    ),
    "a device by if": (
        'if torch.cuda.is_available():\n    device = "cuda"\n'
        'elif torch.backends.mps.is_available():\n    device = "mps"\nelse:\n    device = "cpu"\n'
        f"{FIRST}x.to(device)"
    ),
    "a module by another name": f"F = torch.nn.functional\n{FIRST}F.relu(x)",
    "a module by another name inside": "def f(x):\n    F = nn.functional\n    return F.relu(x)",
    "two names at once": f"F, n = torch.nn.functional, 3\n{FIRST}F.relu(x) * n",
    "an import by another name": f"import torch.nn.functional as F\n{FIRST}F.relu(x)",
    "an import in a function": "def f(x):\n    from math import sqrt\n    return sqrt(x)",
    "a name of a module for a size": (
        "import torch.nn.functional as F\ndef f(x):\n    n, F = x.shape\n    return F * n, [F]"
    ),
    "a lambda": f"square = lambda t: t * t\n{FIRST}square(x)",
    "partial": f"from functools import partial\nlast = partial(torch.sum, dim=-1)\n{FIRST}last(x)",
    "a root": f"ROOT = math.sqrt(2)\n{FIRST}x / ROOT",
    "a unit matrix": f"EYE = torch.eye(3)\n{FIRST}x @ EYE",
    "a layer": f"relu = nn.ReLU()\n{FIRST}relu(x)",
    "a comprehension": f"TABLE = [i * i for i in range(9)]\n{FIRST}TABLE[x]",
    "an import that may fail": (
        "try:\n    import opt_einsum\nexcept ImportError:\n    opt_einsum = None\n"
        f"try:\n    from einops import rearrange\nexcept ImportError:\n    pass\n{FIRST}x"
    ),
    "a table filled by a loop": (
        f"TABLE = {{}}\nfor i in range(3):\n    TABLE[i] = i\n{FIRST}TABLE[x]"
    ),
    "a method patched in": (
        "class SelfAttention(nn.Module):\n    pass\n"
        "def forward(self, x):\n    return x\nSelfAttention.forward = forward"
    ),
    "a warning": (
        'import warnings\nwarnings.filterwarnings("ignore")\n'
        'def f(x):\n    warnings.warn("slow")\n    return x'
    ),
    "a data class": (
        "from dataclasses import dataclass, field\n@dataclass\nclass Sizes:\n    d_model: int = 8\n"
        f"    heads: list = field(default_factory=list)\n{FIRST}x * Sizes().d_model"
    ),
    "a plot that is not reached": (
        "import matplotlib.pyplot as plt\nDEBUG = False\n"
        "def f(x):\n    if DEBUG:\n        plt.imshow(x)\n        plt.show()\n    return x"
    ),
    "a class's name": f"{FIRST}x.__class__.__name__ + type(x).__name__",
    "types": (
        "from typing import Callable, List, NamedTuple, Optional, Tuple\n"
        "from collections.abc import Sequence\n"
        "def f(x: Optional[Tensor], y: List[int], g: Callable[..., Tuple[int, int]]) -> Sequence:\n"
        "    return [x]"
    ),
    "shapes": (
        'from jaxtyping import Float\ndef f(x: Float[Tensor, "a b"]) -> Float[Tensor, " a"]:\n'
        "    return x.sum(-1)"
    ),
    "enumerate, zip and sorted": (
        "def f(x):\n    return [i * a for i, a in enumerate(sorted(x))], list(zip(x, x))"
    ),
    "a class with helpers of its own": (
        "class Layer(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
        "        self._scale = d ** -0.5\n        self.w_q = nn.Parameter(torch.empty(d, d))\n"
        '        self.register_buffer("seen", torch.ones(d, d))\n'
        "    def _scores(self, x):\n        return x @ self.w_q * self._scale\n"
        "    def forward(self, x):\n        return self._scores(x).masked_fill(~self.seen, 0)"
    ),
    "an enumeration": f"from enum import Enum\nclass N(Enum):\n    PRE = 1\n{FIRST}N.PRE.value",
    "a named tuple": (
        'from collections import namedtuple\nPair = namedtuple("Pair", "left right")\n'
        f"{FIRST}Pair(x, x).left"
    ),
    "a function of one's own with gradients": (
        "class Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return 2 * x\n    @staticmethod\n"
        "    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return 2 * g\n"
        f"{FIRST}Double.apply(x)"
    ),
    "no gradients": "@torch.no_grad()\ndef f(x):\n    with torch.no_grad():\n        return x.data",
    "a maximum with its place": f"{FIRST}x.max(dim=-1, keepdim=True).values - x.topk(2).indices",
    "einops": (
        "from einops import rearrange, einsum, repeat\n"
        f'{FIRST}einsum(rearrange(x, "a b -> b a"), x, "b a, a c -> b c")'
    ),
    "numbers of numpy": f"import numpy as np\n{FIRST}torch.from_numpy(np.sqrt(np.arange(3.0)))",
    "an error of one's own": (
        'class Long(ValueError):\n    pass\ndef f(x):\n    if len(x) > 3:\n        raise Long("no")'
        "\n    try:\n        return x[9]\n    except IndexError as e:\n        return str(e.args)"
    ),
    "a random generator": (
        "import random\nrandom.seed(0)\ng = torch.Generator().manual_seed(0)\n"
        f"{FIRST}torch.randn(3, generator=g) + random.random()"
    ),
    "attributes by their names": f'{FIRST}getattr(x, "T") if hasattr(x, "T") else x',
    "infinity by dtype": f"{FIRST}x.masked_fill(x > 0, torch.finfo(x.dtype).min) + torch.inf",
    "operators": f"from operator import mul\nfrom functools import reduce\n{FIRST}reduce(mul, x)",
    "a cache": "import functools\n@functools.lru_cache(maxsize=None)\ndef f(n):\n    return n",
    "counting": f"from collections import Counter, deque\n{FIRST}Counter(x).most_common(1)",
    "time and print": f'import time\nt = time.time()\n{FIRST}print(f"{{time.time() - t:.1f}}")',
    "components of the course": (
        "from course_lib.attention import dot_scores\nfrom course_lib.exercises import mine\n"
        f'project = mine("self_attention/project")\n{FIRST}dot_scores(x, x)'
    ),
    "a setting of the whole notebook": f"torch.manual_seed(0)\ntorch.set_printoptions(2)\n{FIRST}x",
    "patterns": (
        "def f(x):\n    match x:\n        case int() | float():\n            return x\n"
        "        case [first, *rest]:\n            return first\n        case {'a': a, **more}:\n"
        "            return a"
    ),
    "a parameter of a name": "def f(x, input=None, dir=1):\n    return x if input is None else dir",
    "main": f'{FIRST}x\nif __name__ == "__main__":\n    print(f(1))',
    "walrus and star": f"{FIRST}[y for z in x if (y := z * 2) > 0], max(*x), {{**x}}",
    "a transformer's layers": (
        "layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))\n"
        f"{FIRST}nn.Sequential(*layers, nn.GELU(), nn.Dropout(0.1))(x)"
    ),
}
REFUSED = {
    "import os\ndef f(x):\n    return os.name": "This uses `os.name`",
    "def f(x):\n    return getattr(x, y)": "This uses `getattr`",
    f"{SET_UP}{FIRST}torch.nn.functional": "hands on the module `torch.nn.functional`",
    f"{SET_UP}{FIRST}x\nf.m = torch": "hands on the module `torch`",
    f"{SET_UP}{FIRST}torch.compile(x)": "This uses `torch.compile`",
    "class A:\n    import torch": "inside a class",
    f"{SET_UP}class A:\n    F = nn.functional": "hands on the module",
    f"{FIRST}x.__globals__": "`__globals__` belongs to the inside",
    f"{FIRST}open(x)": "This uses `open`",
    "from os import *": "This uses `os.*`",
}


@pytest.mark.parametrize("idiom", HONEST)
def test_an_honest_idiom_passes(idiom):
    source = SET_UP + HONEST[idiom]
    ast.parse(source)
    assert screen.screened(source, load("self_attention/layer")) is None


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_refused_is_said_in_one_sentence_with_what_to_write(source):
    said = screen.refusal(source)
    assert said
    assert REFUSED[source] in said
    assert said.endswith(".")
    assert len(said) < 250


@pytest.mark.parametrize(
    "imported",
    ["tqdm.__main__", "IPython.__main__", "course_lib.command_line.__main__", "torch.x", "this"],
)
def test_what_a_source_names_is_never_run_to_look_at_it(imported, monkeypatch, capsys):
    names = []
    real = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: names.append(name) or real(name))
    forbidden_calls.resolve.cache_clear()
    root = imported.partition(".")[0]
    for source in (
        f"import {root}\n{FIRST}{imported}.x",
        f"import {imported} as m\n{FIRST}m.x",
        f"import {imported} as m\n{FIRST}m._x",
        f"from {imported} import x\n{FIRST}x",
        f"from {imported} import *\n{FIRST}x",
    ):
        screen.refusal(source)
    assert capsys.readouterr() == ("", "")
    assert all(name.partition(".")[0] in ("torch", "course_lib", "builtins") for name in names)
    assert not [name for name in names if "__main__" in name]


@pytest.mark.parametrize("exercise_id", ids())
def test_alternatives_and_known_mistakes_pass_but_for_what_they_call(exercise_id):
    exercise = load(exercise_id)
    written = [*exercise.alternatives, *(mistake.answer for mistake in exercise.mistakes)]
    for answer in (x for x in written if find_source(x)):
        assert screen.refusal(alone(answer)) is None, answer.__name__


@pytest.mark.parametrize("exercise_id", ids())
def test_no_alternative_is_taken_for_the_reference(exercise_id):
    exercise = load(exercise_id)
    for answer in exercise.alternatives:
        source = source_of(answer).replace(answer.__name__, exercise.name)
        assert not likeness.is_reference(source, exercise)


@pytest.mark.parametrize("lesson", sorted(build.LESSONS.glob("*.py")), ids=lambda x: x.stem)
def test_every_reference_passes_in_its_lesson(lesson):
    for solved in (False, True):
        notebook = build.build(lesson, solved)
        with contextlib.suppress(NotANotebook):  # a lesson without exercises
            for attempt in find_answers(notebook, lesson.stem, alone=True).attempts.values():
                if attempt.source:
                    assert screen.screened(attempt.source, attempt.exercise) is None


def test_what_the_sandbox_lacks_is_not_there():
    assert not screen.ABSENT & {name.partition(".")[0] for name in packages()}

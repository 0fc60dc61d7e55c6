"""torch's compiler is left on disk until somebody compiles, and nothing stands in for it after."""

import subprocess
import sys

CODE = """
import sys
import torch
from course_lib.answers.answer import InProcess, Request

x = torch.ones(2, 3, device="meta")
InProcess(lambda x: x.masked_fill(x > 0, 1.0)).run(Request((x,)))  # asks for the compiler
print("torch._dynamo" in sys.modules)
compiled = lambda x: torch.compile(torch.sin, backend="eager")(torch.zeros(1))
print(InProcess(compiled).run(Request((x,))).output)
print("torch._dynamo.config" in sys.modules)
"""


def test_the_compiler_is_loaded_when_something_is_compiled_and_not_before():
    """In a process of its own: what it loads, nothing takes back."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == ["False", "tensor([0.])", "True", ""]

"""torch's compiler is left on disk until somebody compiles."""

import subprocess
import sys

CODE = """
import inspect, sys
import course_lib.exercises
import torch

x = torch.ones(2, 3, device="meta")
x.masked_fill(x > 0, 1.0)  # asks for the compiler
inspect.getmodule(x)  # goes through all modules
print("torch._dynamo.config" in sys.modules)
print(torch.compile(torch.sin, backend="eager")(torch.zeros(1)))
x.masked_fill(x > 0, 1.0)
print("torch._dynamo.config" in sys.modules)
"""


def test_the_compiler_is_loaded_when_something_is_compiled_and_not_before():
    """In a process of its own: what it loads, nothing takes back."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == ["False", "tensor([0.])", "True", ""]

"""The rules under the names by which notebooks that are already handed out know them (lesson 13).

Each is now the `rule` of its variant's file; these names are kept so that old notebooks run.
"""

from course_lib.efficient.bigbird import rule as bigbird
from course_lib.efficient.linear import rule as linear
from course_lib.efficient.linformer import Linformer
from course_lib.efficient.lsh import SharedQueryKey
from course_lib.efficient.lsh import rule as lsh
from course_lib.efficient.memory_compressed import MemoryCompressed
from course_lib.efficient.tiled import rule as tiled
from course_lib.efficient.window import rule as window

__all__ = [
    "Linformer",
    "MemoryCompressed",
    "SharedQueryKey",
    "bigbird",
    "linear",
    "lsh",
    "tiled",
    "window",
]

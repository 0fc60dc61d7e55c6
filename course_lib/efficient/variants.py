"""The table of the variants: a row is the `VARIANT` of a module in this folder (lessons 13 and 14).

Tests, experiments and benchmarks take their lists from here, and `course_lib.verify` its twins.
"""

from importlib import import_module
from pathlib import Path

from course_lib.efficient.variant import Variant

_modules = [
    import_module(f"course_lib.efficient.{file.stem}")
    for file in sorted(Path(__file__).parent.glob("*.py"))
    if file.stem not in ("__init__", "variants")
]
VARIANTS: dict[str, Variant] = {
    module.VARIANT.name: module.VARIANT for module in _modules if hasattr(module, "VARIANT")
}

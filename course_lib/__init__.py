"""The components of the course, one module a lesson or subject: the modules are the interface.

The first line of each module names its lesson. The folders are the tools: data, instruments,
pretrained, answers, checking, grading, verify, files, command_line; and, for learners, efficient,
exercises and xray.
"""

from pathlib import Path

__version__ = "0.2.0"

# notebooks and answers of 0.2.0 import modules by their old names: until 0.4
__path__.append(str(Path(__file__).parent / "old_names"))

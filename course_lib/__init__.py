"""The components of the course, one concept a module: the modules are the interface.

Each module's docstring names its lesson, and tests/pages/test_project.py their order. The folders
are the tools: data, instruments, pretrained, answers, checking, grading, verify, files,
command_line; and, for learners, efficient, exercises and xray.
"""

__version__ = "0.2.0"

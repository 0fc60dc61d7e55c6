"""What a kernel runs first in JupyterLab of `course learn`, by PYTHONSTARTUP."""

try:
    from course_lib.command_line.name_errors import explain as _explain
except ImportError:  # another Python's kernel
    pass
else:
    _explain()
    del _explain

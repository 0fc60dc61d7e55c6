"""`python -m course_lib.command_line` is `course`."""

import sys

from course_lib.command_line.main import main

sys.exit(main())

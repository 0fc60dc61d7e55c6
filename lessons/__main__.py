"""Build and execute notebooks: `python -m lessons [01 02 ...] [--text | --rest]`."""

import sys

from lessons.build import main

sys.exit(main())

"""Build and execute notebooks: `python -m lessons [01 02 ...] [--text | --anew]`."""

import sys

from lessons.build import main

sys.exit(main())

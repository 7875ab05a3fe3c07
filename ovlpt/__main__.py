"""``python -m ovlpt``: the command line."""

import sys

from ovlpt.cli import main

sys.exit(main())

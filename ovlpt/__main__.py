"""``python -m ovlpt``, and the program ``ovlpt``: the command line."""

import sys


def main() -> int:
    """Exit status, see `ovlpt.cli.main`; an interrupt while it is imported is one as well."""
    try:
        from ovlpt import cli

        return cli.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

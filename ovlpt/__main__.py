"""``python -m ovlpt``, and the program ``ovlpt``: the command line."""

import signal
import sys

# Else an interrupt while Python starts or ends prints a traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Exit status, see `ovlpt.cli.main`."""
    from ovlpt import cli, crashes, interrupts

    status = crashes.supervised(cli.main)
    if status == 130:
        interrupts.leave(status)
    return status


if __name__ == "__main__":
    sys.exit(main())

"""``--isa``: a command on an older CPU than this one."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ovlpt.commands.printing import columns, say
from ovlpt.device import instruction_sets, subprocess_call


def limited(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The command, carried out in a process of its own where ``--isa`` limits the CPU."""

    def call(options: argparse.Namespace) -> int:
        if options.isa is None:
            return command(options)
        instruction_sets.check_device(options.device)
        say(str(instruction_sets.limits(options.isa)), getattr(options, "json", None))
        environment = {**instruction_sets.environment(options.isa), **columns()}
        status, printed = subprocess_call.call(command, options, environment=environment)
        print(printed, end="")
        return status

    return call

"""``--virtual``: a command on a GPU that this machine need not have."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

from ovlpt.commands.printing import columns, say
from ovlpt.device import instruction_sets, subprocess_call, virtual_gpu
from ovlpt.trace import InputError

Command = Callable[[argparse.Namespace], int]


def on_virtual(command: Command, otherwise: Command | None = None, computes: bool = False) -> Command:
    """The command, carried out in a process of its own where ``--virtual`` names a GPU; else ``otherwise``.

    ``computes``: it needs numbers, which only ``--execute`` gives.
    """

    def call(options: argparse.Namespace) -> int:
        if options.virtual is None:
            if options.device in virtual_gpu.GPUS:
                raise InputError(f'"{options.device}" is a virtual GPU; write -d GPU --virtual {options.device}')
            if options.execute:
                raise InputError("--execute runs the kernels of a virtual GPU; name one with --virtual")
            return (otherwise or command)(options)
        virtual_gpu.check_device(options.device)
        if getattr(options, "isa", None) is not None:
            instruction_sets.check_device(options.device)
        if computes and not options.execute:
            raise InputError(f"this command computes numbers, for which --virtual {options.virtual} needs --execute")
        virtual_gpu.check_known(options.virtual, options.execute)
        virtual_gpu.library(options.execute)
        environment = virtual_gpu.environment(options.execute)
        if options.execute:
            say(virtual_gpu.NOTE, getattr(options, "json", None))
        status, printed = subprocess_call.call(_carry_out, command, options, environment={**environment, **columns()})
        print(printed, end="")
        return status

    return call


def _carry_out(command: Command, options: argparse.Namespace) -> int:
    return virtual_gpu.loaded(options.virtual, options.execute, functools.partial(command, options))

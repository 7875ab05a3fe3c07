"""``--virtual``: a command on a GPU that this machine need not have."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

from ovlpt.commands.printing import columns, say
from ovlpt.device import subprocess_call, virtual_gpu
from ovlpt.trace import InputError

Command = Callable[[argparse.Namespace], int]


def on_virtual(command: Command, otherwise: Command | None = None, computes: bool = False) -> Command:
    """The command, carried out in a process of its own where ``--virtual`` names a GPU; else ``otherwise``.

    ``computes``: it needs numbers, which only ``--execute`` gives.
    """

    def call(options: argparse.Namespace) -> int:
        if options.virtual is None:
            if options.device in virtual_gpu.GPUS:
                raise InputError(
                    f'"{options.device}" is a GPU that need not be here; write -d GPU --virtual {options.device}'
                )
            if options.execute:
                raise InputError("--execute runs the kernels of a virtual GPU; name one with --virtual")
            return (otherwise or command)(options)
        if options.device != "GPU":
            raise InputError(f'a virtual GPU is not a "{options.device}"; give the device "GPU" with it')
        if getattr(options, "isa", None) is not None:
            raise InputError(f'an instruction set limits the device "CPU", not "{options.device}"')
        if computes and not options.execute:
            raise InputError(
                f"this command computes numbers, which --virtual {options.virtual} only has with --execute"
            )
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

"""What makes the numbers of two workers comparable, and one measurement at a time on each machine."""

from __future__ import annotations

import functools
import os
import socket
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import openvino

from ovlpt.openvino_api import Core
from ovlpt.trace import InputError
from ovlpt.version import VERSION

_LIMITS = ("OV_CPU_", "ONEDNN_", "DNNL_")  # environment variables that limit instruction sets


@functools.cache
def machine() -> dict[str, str]:
    """What has to be equal on all workers of a run: OpenVINO, this package, and the CPU with its limits."""
    limits = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_LIMITS))
    return {
        "OpenVINO": openvino.get_version(),
        "ovlpt": VERSION,
        "CPU": ", ".join([Core().get_property("CPU", "FULL_DEVICE_NAME").strip(), *limits]),
    }


def name() -> str:
    """What a sentence calls this worker."""
    return f"{socket.gethostname()} (process {os.getpid()})"


ALIKE = ("OpenVINO", "ovlpt", "CPU")


def check_same(
    worker: str, found: Mapping[str, str], wanted: Mapping[str, str], alike: Collection[str] = ALIKE
) -> None:
    """Raise `InputError` that names a ``worker`` whose numbers cannot be compared with those of the others, as it is not
    ``alike`` in all of these.
    """
    for what in alike:
        value = wanted.get(what)
        if found.get(what) != value:
            raise InputError(
                f"the worker {worker} has the {what} {found.get(what)}, and the others of this run have {value}: its numbers "
                "are not comparable; take it out of the cluster"
            )


@contextmanager
def measuring() -> Iterator[None]:
    """No other process of this machine measures meanwhile, whoever started it. Not on Windows."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            lock = stack.enter_context(Path(tempfile.gettempdir(), f"ovlpt-measuring-{os.getuid()}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""``--workers`` and ``--scheduler``: who carries out the work of a command, and one line of progress for all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ovlpt.commands.activity import counted
from ovlpt.fleet.engine import Executors, Progress
from ovlpt.fleet.workers import Cluster, processes
from ovlpt.trace import InputError


def add_workers(parser: argparse.ArgumentParser, resumable: bool = True) -> None:
    """The arguments. ``resumable``: with a journal."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--workers", type=int, metavar="N", help="compute in N processes of this machine")
    group.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="compute on a Dask cluster; needs the extra cluster"
    )
    if resumable:
        parser.add_argument(
            "--resume",
            metavar="FILE",
            help="a journal of what is finished, made where it is not there; a run goes on from it",
        )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """``--threads``, on whose number the last digits of a figure depend."""
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="of an inference on a CPU; default: the plugin's choice, with workers 1",
    )


def check_alone(options: argparse.Namespace, why: str) -> None:
    """Raise `InputError` for workers or a journal where the command has no use for them: "--workers …" and ``why``."""
    if options.workers is not None or options.scheduler is not None or options.resume is not None:
        raise InputError(f"--workers, --scheduler and --resume {why}")


@contextmanager
def workers(options: argparse.Namespace, out, label: str, unit: str) -> Iterator[tuple[Executors | None, Progress]]:
    """The executor that was asked for, None for this process, and what is told of the progress.

    ``unit``: what is counted. A cluster's page is named before the work begins.
    """
    cluster = None
    if options.scheduler is not None:
        cluster = Cluster(options.scheduler)
        if cluster.dashboard:
            out.print(f"The cluster's page: {cluster.dashboard}")
    executor = cluster if options.workers is None else processes(options.workers)
    with nullcontext() if cluster is None else cluster:
        yield executor, counted(label, unit)

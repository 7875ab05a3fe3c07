"""``--workers`` and ``--scheduler``: who carries out the work of a command, and one line of progress for all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from ovlpt.commands.activity import counted
from ovlpt.fleet.engine import Executors, Progress
from ovlpt.fleet.workers import Cluster, processes
from ovlpt.trace import InputError


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
            out.print(f"Cluster dashboard: {cluster.dashboard}")
    executor = cluster if options.workers is None else processes(options.workers)
    with nullcontext() if cluster is None else cluster:
        yield executor, counted(label, unit)

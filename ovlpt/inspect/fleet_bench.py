"""`bench` for many models, by whoever has time, and one measurement at a time on each machine."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ovlpt.choices import FLOAT, STOCK
from ovlpt.fleet.engine import Died, Executors, Progress, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.machine import measuring
from ovlpt.fleet.models import task_on_files
from ovlpt.fleet.parcel import Parcel
from ovlpt.fleet.tasks import Task
from ovlpt.inspect.bench import Bench, Side, bench
from ovlpt.trace import OvlptError

_VERSIONS = ("OpenVINO", "ovlpt")  # have to be equal; the CPU is part of each result


def bench_fleet(
    models: Sequence[str | Path],
    executor: Executors | None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    against: str | Path = STOCK,
    **settings: object,
) -> list[Bench]:
    """`bench` of each of the ``models``, in their order. ``settings``: its other arguments, files by their paths.

    Workers of one machine take turns, whatever else they do meanwhile; ``device`` of a result names the host. Raises
    `OvlptError` where a model cannot be measured.
    """
    tasks = [_task(str(model), str(against), settings) for model in models]
    found: dict[str, Any] = {}
    run = {"command": "bench", "models": hashlib.sha256("".join(task.key for task in tasks).encode()).hexdigest()}
    with nullcontext() if resume is None else Journal(resume, run) as journal:
        for task, answer in answers(tasks, executor, journal, progress, len(tasks), _VERSIONS):
            if isinstance(answer, Died):
                raise OvlptError(f"{task.label} cannot be measured: {answer}")
            found[task.key] = answer
    return [_bench(found[task.key], str(model)) for task, model in zip(tasks, models, strict=True)]


def _task(model: str, against: str, settings: dict[str, Any]) -> Task:
    files = {
        "model": model,
        **{name: settings[name] for name in ("inputs", "config") if settings.get(name) is not None},
    }
    options = {name: value for name, value in settings.items() if name not in ("inputs", "config")}
    (options if against in (STOCK, FLOAT) else files)["against"] = against
    return task_on_files(model, bench_case, options, files)


def bench_case(options: Sequence[tuple[str, object]], parcels: Sequence[tuple[str, Parcel]]) -> dict[str, object]:
    """One model, in a worker."""
    files = {name: parcel.here()[0] for name, parcel in parcels}
    with measuring():
        found = bench(**files, **dict(options))
    return asdict(replace(found, device=f"{found.device} of {socket.gethostname()}"))


def _bench(plain: dict, model: str) -> Bench:
    sides = tuple(Side(**{**side, "latencies": tuple(side["latencies"])}) for side in plain["sides"])
    pairs = {name: tuple(plain[name]) for name in ("interval", "blocks")}
    in_f32 = _bench(plain["in_f32"], model) if plain["in_f32"] else None
    return Bench(**{**plain, **pairs, "model": model, "sides": sides, "in_f32": in_f32})

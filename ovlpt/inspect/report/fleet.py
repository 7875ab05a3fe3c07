"""`report` on many models, by whoever has time, and one at a time on each machine: a page says how long layers take."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ovlpt.config_file import load_config
from ovlpt.fleet.engine import Died, Executors, Progress, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.machine import measuring
from ovlpt.fleet.models import task_on_files
from ovlpt.fleet.parcel import Parcel
from ovlpt.fleet.tasks import Task
from ovlpt.inspect.report.facts import report
from ovlpt.inspect.report.page import to_html
from ovlpt.inspect.report.several import Network, pages_of
from ovlpt.trace import InputError, OvlptError

_VERSIONS = ("OpenVINO", "ovlpt")  # have to be equal; the CPU is part of each page
_FILES = ("inputs", "config")


def report_fleet(
    models: Sequence[str],
    executor: Executors | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Iterator[tuple[int, Network, str]]:
    """`report` on each of the ``models``, in the order in which they are finished: its place among them, its line of the
    index, and its page, "" where the model cannot be used, which `Network.error` says.

    ``settings``: other arguments of `report`, files by their paths. Workers of one machine take turns. ``executor``,
    ``resume`` and ``progress`` as in `ovlpt.compare`.
    """
    tasks: dict[str, int] = {}
    work: list[Task] = []
    for place, (model, page) in enumerate(zip(models, pages_of(models), strict=True)):
        try:
            task = _task(model, page, settings)
        except InputError as error:
            yield place, Network(model, error=str(error)), ""
        else:
            tasks[task.key] = place
            work.append(task)
    run = {"command": "report", "models": hashlib.sha256("".join(tasks).encode()).hexdigest()}
    with nullcontext() if resume is None else Journal(resume, run) as journal:
        answered: Iterator[tuple[Task, Any]] = answers(work, executor, journal, progress, len(work), _VERSIONS)
        for task, answer in answered:
            place = tasks[task.key]
            if isinstance(answer, Died):
                yield place, Network(models[place], error=str(answer)), ""
            else:
                yield place, Network(**answer[0]), answer[1]


def _task(model: str, page: str, settings: dict[str, Any]) -> Task:
    files = {"model": model, **{name: settings[name] for name in _FILES if settings.get(name) is not None}}
    options = {name: value for name, value in settings.items() if name not in _FILES}
    return task_on_files(model, report_case, {"name": model, "page": page, **options}, files)


def report_case(
    options: Sequence[tuple[str, Any]], parcels: Sequence[tuple[str, Parcel]]
) -> tuple[dict[str, object], str]:
    """One model, in a worker: what `Network` has, and the page."""
    given, files = dict(options), {name: parcel.here()[0] for name, parcel in parcels}
    model, page, virtual = given.pop("name"), given.pop("page"), given.get("virtual")
    try:
        config = load_config(files.pop("config")) if "config" in files else None
        with measuring() if virtual is None else nullcontext():
            found = replace(report(**files, **given, config=config), model=model)
    except OvlptError as error:
        return asdict(Network(model, error=str(error))), ""
    return asdict(Network.of(found, page)), to_html(found)

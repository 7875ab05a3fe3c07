"""`check` for each case of a fleet, by whoever has time; and what continuous integration reads of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ovlpt.display import printable
from ovlpt.fleet.engine import Died, Executors, Progress, answers
from ovlpt.fleet.journal import Journal
from ovlpt.fleet.models import task_on_files
from ovlpt.fleet.parcel import Parcel
from ovlpt.fleet.tasks import Task
from ovlpt.inspect.check import check
from ovlpt.inspect.check.execution import NO_STOCK
from ovlpt.inspect.check.layers import HARMLESS
from ovlpt.inspect.fleet_file import FILES, Case, load_fleet
from ovlpt.trace import OvlptError

PASSED, FAILED, ERROR = "passed", "failed", "error"


@dataclass(frozen=True)
class CaseResult:
    """What became of a case. ``status``: "passed", "failed" (a layer or a number is not as wanted), or "error" (it could
    not be checked); ``text``: why, and of a passed case that the plugin's own LPT cannot compile the model. ``check``:
    `Check.to_json`, None for an error.
    """

    model: str
    device: str
    configuration: str
    expectation: str
    status: str
    text: str
    seconds: float
    check: Mapping[str, object] | None

    @property
    def is_without_stock(self) -> bool:
        """Whether the case passed since the plugin with its own LPT cannot compile the model, and so runs nothing in int8."""
        return self.status == PASSED and bool(self.text)


@dataclass(frozen=True)
class FleetCheck:
    """What `check_fleet` found, in the order of the file."""

    fleet: str
    cases: tuple[CaseResult, ...]

    @property
    def ok(self) -> bool:
        """Whether every case passed."""
        return all(case.status == PASSED for case in self.cases)

    def to_json(self) -> dict[str, object]:
        """Plain values for a file."""
        return {"ok": self.ok, "fleet": self.fleet, "cases": [asdict(case) for case in self.cases]}

    def to_junit(self) -> str:
        """The cases as JUnit XML: a suite for each device, a class for each model."""
        root = ElementTree.Element("testsuites", name=printable(self.fleet))
        for device in dict.fromkeys(case.device for case in self.cases):
            cases = [case for case in self.cases if case.device == device]
            counts = {f"{kind}s": str(sum(case.status == status for case in cases)) for kind, status in _JUNIT.items()}
            seconds = f"{sum(case.seconds for case in cases):.3f}"
            about = {"name": printable(device), "tests": str(len(cases)), "time": seconds, **counts}
            suite = ElementTree.SubElement(root, "testsuite", about)
            for case in cases:
                name = printable(f"{case.configuration}, {case.expectation}")
                row = ElementTree.SubElement(
                    suite, "testcase", classname=printable(case.model), name=name, time=f"{case.seconds:.3f}"
                )
                for kind, status in _JUNIT.items():
                    if case.status == status:
                        ElementTree.SubElement(row, kind, message=printable(case.text)).text = printable(case.text)
                if case.is_without_stock:
                    ElementTree.SubElement(row, "system-out").text = printable(case.text)
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


_JUNIT = {"failure": FAILED, "error": ERROR}  # JUnit's element: the status


def check_fleet(
    fleet: str | Path,
    executor: Executors | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> FleetCheck:
    """Check every case of the file ``fleet`` (see `ovlpt.inspect.fleet_file`).

    ``executor``, ``resume`` and ``progress`` as in `ovlpt.compare`. A case that cannot be checked is an error of that
    case. Raises `InputError` for an unusable file.
    """
    cases = load_fleet(fleet)
    tasks = [_task(case) for case in cases]
    order = {task.key: case for task, case in zip(tasks, cases, strict=True)}
    found: dict[str, Any] = {}
    run = {"command": "check", "fleet": hashlib.sha256("".join(order).encode()).hexdigest()}
    with nullcontext() if resume is None else Journal(resume, run) as journal:
        for task, answer in answers(tasks, executor, journal, progress, len(tasks)):
            if isinstance(answer, Died):
                answer = {"status": ERROR, "text": str(answer), "seconds": 0.0, "check": None}
            found[task.key] = answer
    return FleetCheck(str(fleet), tuple(_result(case, found[key]) for key, case in order.items()))


def _result(case: Case, answer: Mapping[str, Any]) -> CaseResult:
    return CaseResult(case.model, case.device, case.configuration, case.expectation, **answer)


def _task(case: Case) -> Task:
    files = {"model": case.path, **{name: case.options[name] for name in FILES if name in case.options}}
    options = {name: value for name, value in case.options.items() if name not in FILES}
    return task_on_files(case.label, check_case, options, files)


def check_case(options: Sequence[tuple[str, object]], parcels: Sequence[tuple[str, Parcel]]) -> dict[str, object]:
    """One case, in a worker: what `CaseResult` has besides the names."""
    begin = time.perf_counter()
    files = {name: parcel.here()[0] for name, parcel in parcels}
    try:
        found = check(**files, **dict(options))
    except OvlptError as error:
        return {"status": ERROR, "text": str(error), "seconds": time.perf_counter() - begin, "check": None}
    text = "; ".join(_wrong(found.to_json())) or (f"{NO_STOCK}: {found.without_stock}" if found.without_stock else "")
    status = PASSED if found.ok else FAILED
    return {"status": status, "text": text, "seconds": time.perf_counter() - begin, "check": found.to_json()}


def _wrong(found: Mapping) -> Iterator[str]:
    for each in found["differences"]:
        if each["kind"] not in HARMLESS:
            yield f"{each['layer']} ({each['layer_type']}) is to run in {each['wanted']}, and runs in {each['found'] or 'no layer'}"
    numbers = found["numbers"]
    if numbers is not None and not numbers["ok"]:
        first = numbers["first_wrong_layer"]
        verdict = "not known" if numbers.get("unknown") else "wrong"
        yield f"numbers are {verdict}{f', first of {first}' if first else ''}"

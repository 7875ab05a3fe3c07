"""``ovlpt check fleet.toml``: the gate of many models, devices and settings."""

from __future__ import annotations

import argparse
from collections import Counter

from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.workers import workers
from ovlpt.files import write_text
from ovlpt.inspect.fleet_check import ERROR, FAILED, PASSED, FleetCheck, check_fleet
from ovlpt.trace import InputError

ENDING = ".toml"
# What a fleet file says instead of the command line.
_OF_ONE_MODEL = (
    "config", "transformations", "expect", "against", "baseline", "save_baseline", "counters", "save_counters", "virtual", "execute",
    "precision", "no_numbers", "input", "isa",
)  # fmt: skip
_OF_A_FLEET = ("junit", "workers", "scheduler", "resume")


def is_fleet(options: argparse.Namespace) -> bool:
    """Whether MODEL is a fleet file. Raises `InputError` for options of the other kind."""
    fleet = str(options.model or "").endswith(ENDING)
    for name in _OF_ONE_MODEL if fleet else _OF_A_FLEET:
        given = getattr(options, name)
        if given is not None and given is not False and given != []:  # 0 and "" are given, too
            flag = f"--{name.replace('_', '-')}"
            where = "a fleet sets it in its file" if fleet else f"that is for a fleet; give its {ENDING} as MODEL"
            raise InputError(f"{flag} is not used here: {where}")
    if fleet and options.device != "CPU":
        raise InputError(f"-d {options.device} is not used here: a fleet sets it in its file")
    return fleet


def call(options: argparse.Namespace) -> int:
    """Check the fleet; the exit status is 1 where a case did not pass."""
    out = console(options.json)
    with workers(options, out, "checking", "cases") as (executor, progress):
        found = check_fleet(options.model, executor, options.resume, progress)
    _print(out, found)
    if options.junit:
        write_text(options.junit, found.to_junit())
    options.device = None  # several; the result has each
    write_result(options, found.to_json())
    return 0 if found.ok else 1


def _print(out, found: FleetCheck) -> None:
    styles = {PASSED: "green", FAILED: "red", ERROR: "red"}
    counts = Counter(case.status for case in found.cases)
    text = ", ".join(f"{counts[status]} {status}" for status in styles if counts[status])
    if alone := sum(case.is_without_stock for case in found.cases):
        text += f"; {alone} of the passed without the plugin's own LPT, which cannot compile them"
    out.print(f"{found.fleet}: {len(found.cases)} cases, {text}", style="green" if found.ok else "red")
    if told := [case for case in found.cases if case.status != PASSED or case.is_without_stock]:
        rows = table("model", "device", "configuration", "expectation", "", "")
        for case in told:
            names = (case.model, case.device, case.configuration, case.expectation, case.status)
            rows.add_row(*names, case.text, style=styles[case.status])
        out.print(rows)

from __future__ import annotations

import argparse
import math

from ovlpt.choices import STOCK
from ovlpt.commands import check_fleet
from ovlpt.commands.activity import progress
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import file_or_settings
from ovlpt.device.counters import write_counters
from ovlpt.inspect.check import Check, check
from ovlpt.inspect.numbers.distance import Numbers, Verdict
from ovlpt.trace import InputError


def call(options: argparse.Namespace) -> int:
    if check_fleet.is_fleet(options):
        return check_fleet.call(options)
    asked = options.expect or options.baseline or options.against
    if options.counters and not (asked or options.save_baseline):
        raise InputError("counters are checked with --expect, --baseline, or a model and --against stock")
    out = console(options.json)
    found = check(
        options.model,
        options.device,
        options.expect,
        options.against if asked or options.save_baseline else STOCK,
        options.baseline,
        options.counters,
        file_or_settings(options),
        options.virtual,
        options.isa,
        count=options.save_counters is not None,
        numbers=not options.no_numbers,
        inputs=options.input,
        progress=progress("checks numbers"),
        execute=options.execute,
        precision=options.precision,
    )
    _print(out, found)
    if options.save_baseline:
        write_result(options, dict(found.baseline), path=options.save_baseline)
    if options.save_counters:
        write_counters(options.save_counters, found.layers)
    write_result(options, found.to_json())
    return 0 if found.ok else 1


def _print(out, found: Check) -> None:
    for note in found.notes:
        out.print(note, style="yellow")
    if found.differences:
        rows = table("type", "wanted", "found", "", "exec type", "layer", "floats in")
        for each in found.differences:
            precisions = each.wanted, each.found or "no layer"
            columns = (each.layer_type, *precisions, each.kind, each.exec_type, each.layer, each.setting)
            rows.add_row(*columns, style="red" if each.fails else "green")
        out.print(rows)
    low, total = sum(layer.is_low for layer in found.compared), len(found.compared)
    where = found.settings["name"] or "counters"
    out.print(f"{where}: {low} of {total} layers in int8")
    if found.question and not (found.without_stock and not found.differences):
        failed = sum(each.fails for each in found.differences)
        verdict = f"{failed} layers not as expected" if failed else "every layer as expected"
        if len(found.precisions) > 1:
            verdict += f", with floats in {' and in '.join(found.precisions)}"
        out.print(f"{found.question}: {verdict}", style="red" if failed else "green")
    if found.numbers is not None:
        _print_numbers(out, found.numbers)


def _print_numbers(out, numbers: Numbers) -> None:
    for note in numbers.notes:
        out.print(note, style="yellow")
    if told := [record for record in numbers.records if record.verdict != Verdict.NEAR]:
        rows = table("output", "form", "setting", "inputs", ">ovlpt (dB)", ">stock (dB)", "", "")
        for each in told:
            sides = ("-" if value is None else f"{value:.1f}" for value in (each.ovlpt, each.stock))
            columns = (each.output, each.form, each.setting, each.inputs, *sides, each.verdict, each.text)
            rows.add_row(*columns, style="red" if each.fails else "green")
        out.print(rows)
    if numbers.unknown:
        text = "whether the numbers are right is not known; --no-numbers checks the layers alone"
        out.print(text, style="red")
    if numbers.worst is None:
        return
    if numbers.layer:
        out.print(f"the first layer that goes wrong: {numbers.layer}", style="red")
    count, failed = len(numbers.records), len(numbers.failures)
    least = numbers.worst.ovlpt
    worst = "nothing differs" if least == math.inf else f"the worst {least:.1f} dB"
    text = (
        f"{failed} of {count} comparisons fail" if failed else f"{count} comparisons, all as close as stock or closer"
    )
    text = f"numbers against the FakeQuantize simulation: {text}; {worst}"
    out.print(text, style="red" if failed else "green")

from __future__ import annotations

import argparse

from ovlpt.commands import check_fleet
from ovlpt.commands.activity import progress
from ovlpt.commands.isa import add_isa
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import add_command, add_config, add_device, add_input, add_json, file_or_settings
from ovlpt.commands.virtual import add_virtual
from ovlpt.commands.workers import add_workers
from ovlpt.device.counters import write_counters
from ovlpt.inspect.check import EXPECTABLE, STOCK, Check, check
from ovlpt.inspect.numbers import Numbers, Verdict
from ovlpt.trace import InputError


def add(commands, summary: str) -> None:
    parser = add_command(
        commands,
        "check",
        _call,
        summary,
        "Compile a quantized model and compare the precision of its layers: with the plugin's own LPT, "
        "which is the default, with a list, or with an earlier run; and compare its outputs with the simulation's.",
        "ovlpt check resnet50.xml -d GPU --virtual xelp --expect int8:Convolution,MatMul",
    )
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a quantized model (.xml, .onnx …), or a fleet (.toml)"
    )
    add_device(parser)
    add_config(parser)
    question = parser.add_mutually_exclusive_group()
    question.add_argument(
        "--expect",
        action="append",
        metavar="PRECISION:OPERATIONS",
        help=f"what each layer of these operations runs in ({', '.join(EXPECTABLE)}); may be repeated",
    )
    question.add_argument("--against", choices=(STOCK,), help="int8 wherever the plugin with its own LPT runs int8")
    question.add_argument("--baseline", metavar="FILE.json", help="the precisions of an earlier run")
    parser.add_argument("--save-baseline", metavar="FILE.json", help="write this run, as a later --baseline")
    parser.add_argument("--counters", metavar="FILE.csv", help="check this report of benchmark_app, not a run")
    parser.add_argument("--save-counters", metavar="FILE.csv", help="infer, and write counters as benchmark_app does")
    add_virtual(parser)
    parser.add_argument(
        "--precision", choices=("f16", "f32"), help="of floats; default: the device's own, f32 on a CPU"
    )
    parser.add_argument("--no-numbers", action="store_true", help="compare precisions only")
    add_input(parser, "samples to compare numbers on: an array per input; default: generated ones, at several sizes")
    add_isa(parser)
    parser.add_argument("--junit", metavar="FILE.xml", help="of a fleet: write its cases as JUnit XML")
    add_workers(parser)
    add_json(parser, "the result")


def _call(options: argparse.Namespace) -> int:
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
        rows = table("type", "wanted", "found", "", "exec type", "layer")
        for each in found.differences:
            columns = (each.layer_type, each.wanted, each.found or "no layer", each.kind, each.exec_type, each.layer)
            rows.add_row(*columns, style="red" if each.fails else "green")
        out.print(rows)
    low, total = sum(layer.is_low for layer in found.compared), len(found.compared)
    where = found.settings["name"] or "counters"
    out.print(f"{where}: {low} of {total} layers in int8")
    if found.question:
        failed = sum(each.fails for each in found.differences)
        verdict = f"{failed} layers not as wanted" if failed else "every layer as wanted"
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
    if numbers.worst is None:
        return
    if numbers.layer:
        out.print(f"the first layer that goes wrong: {numbers.layer}", style="red")
    count, failed = len(numbers.records), len(numbers.failures)
    text = f"{failed} of {count} comparisons fail" if failed else f"{count} comparisons, all as near as stock or nearer"
    text = f"numbers against the FakeQuantize simulation: {text}; the worst {numbers.worst.ovlpt:.1f} dB"
    out.print(text, style="red" if failed else "green")

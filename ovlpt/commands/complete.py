from __future__ import annotations

import argparse

from ovlpt.commands.printing import STDOUT, console, say, table, write_result
from ovlpt.commands.settings import check_count, settings
from ovlpt.commands.workers import workers
from ovlpt.device.saving import check_output, save_model
from ovlpt.display import printable
from ovlpt.inspect.complete import Completion, complete


def call(options: argparse.Namespace) -> int:
    check_output(options.output, options.model)
    check_count(options.threads, "--threads", "compute with")
    out = console(options.json)
    with workers(options, out, "trying", "trials") as (executor, _):
        found = complete(
            options.model,
            options.input,
            options.float_model,
            options.device,
            options.max_loss,
            options.min_gain / 100,
            options.time_limit,
            config=options.config or settings(options),  # a file's name is for other processes, too
            progress=lambda line: say(printable(line, lines=False), STDOUT),  # on standard error
            executor=executor,
            resume=options.resume,
            threads=options.threads,
        )
    save_model(found.model, options.output)
    _print(out, found)
    write_result(options, found.to_json())
    return 0


def _print(out, found: Completion) -> None:
    rows = table("", ">layers", "what", "which", ">time", ">gain", ">loss (dB)", "why")
    for each in found.decisions:
        candidate = each.candidate
        rows.add_row(
            each.verdict,
            str(len(candidate.layers)),
            candidate.what,
            candidate.which,
            "-" if candidate.share == 1 else f"{candidate.share:.1%}",
            "-" if each.gain is None else f"{each.gain:.1%}",
            "-" if each.loss is None else f"{each.loss:.2f}",
            each.why,
        )
    if found.decisions:
        out.print(rows)
    for answer in found.unadvised:
        out.print(f"nothing to do for {answer.operation} {answer.name}: {answer.why}", soft_wrap=True)
    before, after, (low, high) = found.before, found.after, found.interval
    out.print(
        f"layers with weights in int8: {before.in_int8} of {before.layers} before, {after.in_int8} of {after.layers} after"
    )
    out.print(f"latency: {found.ratio:.3f} of that before (95 % interval {low:.3f} to {high:.3f})")
    out.print(f"SQNR: {_decibels(before.sqnr)} dB before, {_decibels(after.sqnr)} dB after")
    if before.accuracy is not None:
        out.print(f"accuracy: {before.accuracy:.1%} before, {after.accuracy:.1%} after")


def _decibels(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)

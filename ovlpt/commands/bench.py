from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from ovlpt.commands.activity import progress
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import file_or_settings
from ovlpt.commands.workers import workers
from ovlpt.files import check_writable, write_text
from ovlpt.inspect.bench import Bench, Side, bench
from ovlpt.inspect.fleet_bench import bench_fleet
from ovlpt.trace import InputError

_FLAGS = ("-d", "-hint", "-niter", "-t", "-nstreams", "-infer_precision", "-report_folder")


def call(options: argparse.Namespace) -> int:
    models = [*options.models, *([options.model] if options.model else [])]
    if not models:
        raise InputError("no model to measure; give one, as in: ovlpt bench resnet50.xml")
    folders = _folders(models, options.report_folder)
    out, found = console(options.json), []
    for model, folder, result in zip(models, folders, _measured(models, options, out), strict=True):
        _print(out, result)
        found.append(result)
        for side in result.sides if folder else ():
            _write_report(folder / side.name, side, model, options)
    model = models[0] if len(models) == 1 else None
    write_result(options, {"benches": [result.to_json() for result in found]}, model=model)
    return 0


def _measured(models: list[str], options: argparse.Namespace, out) -> Iterator[Bench]:
    """Each model, here or by workers."""
    given = {
        "against": options.against,
        "device": options.device,
        "inputs": options.input,
        "hint": "throughput" if options.hint == "tput" else options.hint,
        "seconds": options.t,
        "iterations": options.niter,
        "streams": options.nstreams,
        "infer_precision": options.infer_precision,
        "config": file_or_settings(options),
    }
    if options.workers is None and options.scheduler is None and options.resume is None:
        for model in models:
            yield bench(model, **given, progress=progress(f"measures {Path(model).name}"))
        return
    if options.force or options.transformations:
        raise InputError(
            "--force and --transformations apply to this process only; write the settings into a file for --config"
        )
    with workers(options, out, "measuring", "models") as (executor, told):
        yield from bench_fleet(models, executor, options.resume, told, **given)


def _print(out, found: Bench) -> None:
    kept = ", ovlpt's in f32" if found.precision == "f16" and found.device.startswith("CPU") else ""
    out.print(f"{found.model} on {found.device}, hint {found.hint}, floats in {found.precision}{kept}", style="bold")
    rows = table("side", ">latency (ms)", ">throughput (FPS)", ">runs", ">requests", ">compile (ms)", ">memory (MB)")
    beside = [replace(side, name=f"{side.name} in f32") for side in (found.in_f32.sides if found.in_f32 else ())]
    for side in (*found.sides, *beside):
        memory = "-" if side.peak_memory is None else f"{side.peak_memory / 1e6:.0f}"
        rows.add_row(
            side.name, f"{side.latency:.3f}", f"{side.throughput:.2f}", str(side.iterations), str(side.requests),
            f"{side.compile:.0f}", memory,
        )  # fmt: skip
    out.print(rows)
    for each, where in ((found, ""), (found.in_f32, "in f32, ")):
        if each is None:
            continue
        low, high = each.interval
        ours, other = (side.name for side in each.sides)
        out.print(
            f"{where}{ours} takes {each.ratio:.3f} of the time of {other} "
            f"(95 % interval {low:.3f} to {high:.3f}): {each.verdict}"
        )


def _folders(models: Iterable[str], report_folder: str | None) -> list[Path | None]:
    """A folder for the reports of each model; they are made when they are written."""
    names = [Path(model).stem for model in models]
    if report_folder is None:
        return [None] * len(names)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(
            f'two models are called "{twice}", and -report_folder needs different names; run them one by one'
        )
    check_writable(report_folder, folder=True)
    return [Path(report_folder, name) for name in names]


def _write_report(folder: Path, side: Side, model: str, options: argparse.Namespace) -> None:
    """``benchmark_report.csv`` of one side: benchmark_app's sections, names and separator, and its peak memory last."""
    given = {flag: getattr(options, "device" if flag == "-d" else flag[1:]) for flag in _FLAGS}
    synchronous = options.hint == "latency"
    sections = {
        "Command line parameters": {"-m": model, **{flag: value for flag, value in given.items() if value is not None}},
        "Configuration setup": {
            "topology": f"{Path(model).stem} ({side.name})",
            "target device": options.device,
            "API": "sync" if synchronous else "async",
            "inference_only": True,
            "precision": "UNSPECIFIED",
            "batch size": side.batch,
            "number of iterations": options.niter or 0,
            "number of parallel infer requests": side.requests,
            "duration (ms)": round(1e3 * (options.t or 0)),
            f"number of {options.device} streams": side.streams,
        },
        "Execution results": {
            "read model time (ms)": f"{side.read:.2f}",
            "compile model time (ms)": f"{side.compile:.2f}",
            "first inference time (ms)": f"{side.first_inference:.2f}",
            "total execution time (ms)": f"{side.total:.2f}",
            "total number of iterations": side.iterations,
            "latency (ms)": f"{side.latency:.2f}",
            "avg latency": f"{fmean(side.latencies):.2f}",
            "min latency": f"{min(side.latencies):.2f}",
            "max latency": f"{max(side.latencies):.2f}",
            "throughput": f"{side.throughput:.2f}",
            "peak memory (bytes)": side.peak_memory,
        },
    }
    blocks = (
        "\n".join([title, *(f"{name};{value}" for name, value in rows.items()), "", ""])
        for title, rows in sections.items()
    )
    write_text(folder / "benchmark_report.csv", "".join(blocks), folders=True)

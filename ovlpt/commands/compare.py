from __future__ import annotations

import argparse

from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import (
    check_count,
    file_or_settings,
)
from ovlpt.commands.virtual import on_virtual
from ovlpt.commands.workers import workers
from ovlpt.inspect.compare import Comparison, compare
from ovlpt.inspect.runs import ERRORS, FLOAT_PRECISION, QUANTIZATION


def _call(options: argparse.Namespace) -> int:
    check_count(options.samples, "--samples", "compare the layers on")
    check_count(options.layers, "--layers", "print")
    out = console(options.json)
    check_count(options.threads, "--threads", "compute with")
    with workers(options, out, "comparing", "shards") as (executor, progress):
        found = compare(
            options.model,
            options.input,
            options.float_model,
            options.device,
            config=file_or_settings(options),
            layer_samples=options.samples,
            executor=executor,
            resume=options.resume,
            threads=options.threads,
            progress=progress,
        )
    out.print(f"{found.model} on {found.device}, {_samples(found.samples)}", style="bold")
    if options.input is None and options.model is not None:
        out.print("The data is random, which says little about a trained network: give samples with -i.")
    for sentence in found.skipped:
        out.print(sentence, style="yellow")
    _print_runs(out, found)
    errors = table("error", "between", "output", ">SQNR (dB)")
    for error, outputs in found.sqnr.items():
        for output, value in outputs.items():
            errors.add_row(_title(found, error), " and ".join(ERRORS[error]), output, f"{value:.1f}")
    out.print(errors)
    _print_layers(out, found, options.layers)
    if found.float_precision == "f32":
        out.print("By default this device computes in f32 what is not in int8: the default run equals the int8 run.")
    if found.saturates:
        out.print(
            "This CPU has no VNNI and sums two int8 products in 16 bits: the saturation counts as transformation error."
        )
    if found.disturbance:
        out.print(f"Reading the layers changed the int8 results by up to {found.disturbance:.2g} of the largest value.")
    if QUANTIZATION not in found.sqnr:
        out.print("Give the model before quantization with -f for the quantization error and an ignored scope.")
    elif lost := sum(QUANTIZATION not in layer.local for layer in found.layers):
        out.print(
            f"{lost} layers have no counterpart of the same name in the float model, and so no quantization error."
        )
    if scope := found.ignored_scope():
        out.print("Half of the layers' local quantization error disappears with")
        out.print(scope, soft_wrap=True)
    write_result(options, found.to_json())
    return 0


call = on_virtual(_call, computes=True)


def _print_runs(out, found: Comparison) -> None:
    """Accuracy and latency, as far as they were measured."""
    columns = {">accuracy": {run: f"{part:.1%}" for run, part in found.accuracy.items()}}
    columns[">latency (ms)"] = {run: f"{latency:.3f}" for run, latency in found.latency.items()}
    columns = {title: values for title, values in columns.items() if values}
    if columns:
        rows = table("run", *columns)
        for run in next(iter(columns.values())):
            rows.add_row(run, *(values[run] for values in columns.values()))
        out.print(rows)


def _print_layers(out, found: Comparison, count: int) -> None:
    """The worst layers: per error, the SQNR alone and in the whole network."""
    errors = [error for error in ERRORS if any(error in layer.cumulative for layer in found.layers)]
    rows = table("type", *(f">{_title(found, error)}" for error in errors), "layer")
    for layer in found.layers[:count]:
        values = [[each.get(error) for each in (layer.local, layer.cumulative)] for error in errors]
        shown = [" / ".join("-" if value is None else f"{value:.1f}" for value in pair) for pair in values]
        rows.add_row(layer.type, *shown, layer.name)
    out.print(
        f"The worst {min(count, len(found.layers))} of {len(found.layers)} layers, SQNR in dB on "
        f"{_samples(found.layer_samples)}, each alone / in the whole network, sorted by the {_title(found, found.first)} "
        "error alone:"
    )
    out.print(rows)


def _title(found: Comparison, error: str) -> str:
    return found.float_precision if error == FLOAT_PRECISION and found.float_precision != "f32" else error


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count} samples"

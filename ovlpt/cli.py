"""``ovlpt …``: arguments in, `ovlpt.inspect` called, text out."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from ovlpt.device import ExecutionTypes
from ovlpt.inspect import run as main_job
from ovlpt.trace import InputError, OvlptError


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 2 unusable input (one sentence on the standard error)."""
    options = _parser().parse_args(arguments)
    warnings.showwarning = lambda message, *_: print(f"ovlpt: {message}", file=sys.stderr)
    try:
        return options.call(options)
    except OvlptError as error:
        print(f"ovlpt: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ovlpt", description="OpenVINO's Low Precision Transformations in Python.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run a quantized model in int8 and show which layers are",
        description="Transform, compile with the plugin's own LPT off, infer, and compare with the plugin's own LPT and float.",
        epilog="example: ovlpt run resnet50.xml -i images.npz --json run.json",
    )
    run.add_argument("model", nargs="?", metavar="MODEL", help="a quantized model (.xml, .onnx …); default: a bundled one")
    run.add_argument("-d", "--device", default="CPU", metavar="DEVICE", help="default: CPU")
    run.add_argument("-i", "--input", metavar="INPUT.npz", help="one array per input; default: random")
    run.add_argument("-f", "--float", metavar="FLOAT.xml", dest="float_model", help="the model before quantization, for the float latency")
    run.add_argument("-pc", action="store_true", help="print every performance counter, fused layers too")
    run.add_argument("--json", metavar="FILE", help="write everything to a file")
    run.set_defaults(call=_run)
    return parser


def _run(options: argparse.Namespace) -> int:
    console = _console()
    result = main_job.run(options.model, options.device, options.input, options.float_model)
    console.print(_counters_table(result.layers) if options.pc else _layers_table(result.layers))
    counts = _table("type", ">total", ">int8", ">float")
    for kind, (total, low) in result.layers.summary().items():
        counts.add_row(kind, str(total), str(low), str(total - low))
    console.print(counts)
    console.print(f"[bold]{result.model}[/] on {result.device}")
    console.print(f"time in int8 layers: {result.layers.int8_time_share:.0%}")
    for name, latency in result.latencies.items():
        ratio = result.ratios.get(name)
        console.print(f"latency, {name}: {latency:.3f} ms" + (f"   ovlpt takes {ratio:.2f} of it" if ratio else ""))
    console.print(f"largest relative difference from the plugin's own LPT: {result.difference:.2g}")
    if result.accuracy:
        console.print("accuracy: " + ", ".join(f"{name} {value:.1%}" for name, value in result.accuracy.items()))
    _write_json(options.json, result.to_json())
    return 0


def _layers_table(layers: ExecutionTypes):
    table = _table("layer", "type", "exec type", "in", "out", ">real ms")
    for layer in layers.executed:
        precisions = layer.precision, layer.output_precision
        style = "green" if layer.is_int8 else None
        table.add_row(layer.name, layer.layer_type, layer.exec_type, *precisions, f"{layer.real_time:.3f}", style=style)
    return table


def _counters_table(layers: ExecutionTypes):
    table = _table("layerName", "execStatus", "layerType", "execType", ">realTime (ms)", ">cpuTime (ms)")
    for layer in layers:
        if not layer.status:  # a constant: no counter
            continue
        times = f"{layer.real_time:.3f}", f"{layer.cpu_time:.3f}"
        style = "green" if layer.is_int8 else None
        table.add_row(layer.name, layer.status, layer.layer_type, layer.exec_type, *times, style=style)
    return table


def _write_json(path: str | None, content: object) -> None:
    if path is None:
        return
    try:
        Path(path).write_text(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise InputError(f'cannot write "{path}": {error.strerror}') from error


def _console():
    try:
        from rich.console import Console
    except ModuleNotFoundError as error:
        raise InputError("the command line needs the package rich: pip install 'ovlpt[cli]'") from error
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160  # a file or a pipe has no width of its own
    return Console(highlight=False, width=width)


def _table(*columns: str):
    """Columns by their titles, ">" aligned to the right; only the first is ever folded."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        justify = "right" if column.startswith(">") else "left"
        table.add_column(column.removeprefix(">"), justify=justify, overflow="fold", no_wrap=index > 0, min_width=0 if index else 16)
    return table

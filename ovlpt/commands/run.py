from __future__ import annotations

import argparse

from ovlpt.commands.isa import limited
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import settings
from ovlpt.commands.virtual import on_virtual
from ovlpt.device import ExecutionTypes
from ovlpt.device.execution_types import CONSTANT
from ovlpt.inspect.latency import verdict
from ovlpt.inspect.run import OVLPT, run
from ovlpt.trace import InputError


def _call(options: argparse.Namespace) -> int:
    timed = options.virtual is None
    if options.pc and not timed:
        raise InputError("the counters of a virtual GPU mean nothing; leave out -pc")
    out = console(options.json)
    config, virtual = settings(options), options.virtual
    result = run(options.model, options.device, options.input, options.float_model, config=config, virtual=virtual)
    out.print(f"{result.model} on {result.device}: {_answer(result.layers, timed)}", style="bold")
    out.print(_counters_table(result.layers) if options.pc else _layers_table(result.layers, timed))
    counts = table("type", ">total", ">int8", ">float")
    for kind, (total, low) in result.layers.summary().items():
        counts.add_row(kind, str(total), str(low), str(total - low))
    out.print(counts)
    if result.latencies:
        out.print(f"latency of ovlpt, floats in {result.precision}: {result.latencies[OVLPT]:.3f} ms")
    for name, ratio in result.ratios.items():
        low, high = result.intervals[name]
        who = verdict(ratio, (low, high), OVLPT, name)
        out.print(f"latency, {name}: ovlpt takes {ratio:.3f} of it (95 % interval {low:.3f} to {high:.3f}): {who}")
    if result.difference is None:
        out.print(f"the plugin with its own LPT cannot compile the model: {result.without_stock}")
    else:
        out.print(f"largest relative difference from the plugin's own LPT, in f32: {result.difference:.2g}")
    if result.accuracy:
        out.print("accuracy: " + ", ".join(f"{name} {value:.1%}" for name, value in result.accuracy.items()))
    write_result(options, result.to_json())
    return 0


call = on_virtual(_call, limited(_call), computes=True)


def _answer(layers: ExecutionTypes, timed: bool) -> str:
    low = sum(layer.is_int8 for layer in layers.executed)
    time = f", with {layers.int8_time_share:.0%} of the time" if timed else ""
    return f"{low} of {len(layers.executed)} layers run in int8{time}"


def _layers_table(layers: ExecutionTypes, timed: bool):
    rows = table("type", "exec type", "in", "out", *([">real ms"] if timed else []), "layer")
    for layer in layers.executed:
        facts = layer.exec_type, layer.precision, layer.output_precision
        time = [f"{layer.real_time:.3f}"] if timed else []
        rows.add_row(layer.layer_type, *facts, *time, layer.name, style="green" if layer.is_int8 else None)
    return rows


def _counters_table(layers: ExecutionTypes):
    rows = table("layerName", "execStatus", "layerType", "execType", ">realTime (ms)", ">cpuTime (ms)")
    for layer in layers:
        if layer.status in ("", CONSTANT):
            continue
        times = f"{layer.real_time:.3f}", f"{layer.cpu_time:.3f}"
        style = "green" if layer.is_int8 else None
        rows.add_row(layer.name, layer.status, layer.layer_type, layer.exec_type, *times, style=style)
    return rows

"""What stock runs in int8, and whether ovlpt does too: ``python -m tools.execution MODEL.xml …``.

For each network: every Convolution, FullyConnected, MatMul, Deconvolution and RNN layer that the plugin with its own
LPT
runs in int8 is looked up in ovlpt's execution graph by the operations that it holds; there it must read a low precision
tensor in a kernel whose name ends in i8. Executed layers, Reorders included, are counted. Exit status 1 on a miss.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import openvino
from rich.console import Console
from rich.table import Table

import ovlpt
from ovlpt.device.execution_types import ExecutionTypes
from ovlpt.inspect.inputs import random_inputs

WEIGHTED = ("Convolution", "FullyConnected", "MatMul", "Deconvolution", "RNNSeq")
HINTS = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "PERF_COUNT": True}


def weighted(layers: ExecutionTypes) -> list:
    return [layer for layer in layers.executed if layer.layer_type in WEIGHTED]


def low(layer) -> bool:
    return layer.is_int8 and layer.precision in ("u8", "i8")


def compare(path: str, device: str = "CPU") -> dict[str, object]:
    """Counts for one network, and the names of stock's int8 layers that are float in ovlpt's."""
    core = openvino.Core()
    model = core.read_model(path)
    inputs = random_inputs(model)
    stock = ovlpt.execution_types(core.compile_model(model, device, HINTS), inputs)
    mine = ovlpt.execution_types(ovlpt.compile_model(model, device, HINTS, core=core), inputs)
    counts = {"stock": sum(map(low, weighted(stock))), "ovlpt": sum(map(low, weighted(mine)))}
    missing = counts["stock"] - counts["ovlpt"]
    names = {name for layer in weighted(mine) if low(layer) for name in (layer.name, *layer.original_names)}
    lost = [
        layer.name
        for layer in weighted(stock)
        if low(layer)
        and not names & {layer.name, *layer.original_names, *(f"{name}_original" for name in layer.original_names)}
    ]
    return {
        "int8_stock": counts["stock"],
        "int8_ovlpt": counts["ovlpt"],
        "weighted": len(weighted(stock)),
        "layers_stock": len(stock.executed),
        "layers_ovlpt": len(mine.executed),
        "lost": lost if missing > 0 else [],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.execution", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.xml")
    parser.add_argument("-d", "--device", default="CPU")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table = Table("network", "weighted", "int8 stock", "int8 ovlpt", "layers stock", "layers ovlpt", "lost")
    failed = False
    for path in options.models:
        found = compare(path, options.device)
        failed |= bool(found["lost"]) or found["layers_ovlpt"] > found["layers_stock"]
        row = [found[key] for key in ("weighted", "int8_stock", "int8_ovlpt", "layers_stock", "layers_ovlpt")]
        table.add_row(path.rsplit("/", 1)[-1].removesuffix(".xml"), *map(str, row), ", ".join(found["lost"][:3]))
    Console(width=140).print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""What stock runs in int8, and whether ovlpt does too: ``python -m tools.execution MODEL.xml …``.

The question of ``ovlpt check``, for many networks in one table, with the executed layers counted, Reorders included: with
floats in f32, and in the CPU's default type where that is another. Exit status 1 where a layer lost int8 or there are more
layers than stock's.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from rich.console import Console
from rich.table import Table

from ovlpt.choices import OVLPT, STOCK
from ovlpt.device import subprocess_call, virtual_gpu
from ovlpt.inspect.check.execution import Executed, execute


def compare(
    path: str, device: str = "CPU", virtual: str | None = None, precision: str | None = None
) -> list[dict[str, Any]]:
    """Counts for one network, and the names of stock's int8 layers that are float in ovlpt's, in each type of floats.

    ``virtual``: a GPU that this machine need not have; one a process. ``precision``: the only type of floats, "f16".
    """
    if virtual:
        virtual_gpu.load(virtual)
    here = virtual is None
    executed = execute(path, device, (OVLPT, STOCK), virtual=virtual, count=here, precision=precision, in_default=here)
    return [_counts(each) for each in (executed, executed.in_default) if each is not None]


def _counts(executed: Executed) -> dict[str, Any]:
    low = {variant: sum(layer.is_low for layer in executed.weighted(variant)) for variant in (OVLPT, STOCK)}
    return {
        "floats": executed.precision,
        "weighted": len(executed.weighted(STOCK)),
        "int8_stock": low[STOCK],
        "int8_ovlpt": low[OVLPT],
        "layers_stock": len(executed.layers[STOCK].executed),
        "layers_ovlpt": len(executed.layers[OVLPT].executed),
        "lost": [difference.layer for difference in executed.against_stock() if difference.fails],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.execution", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.xml")
    parser.add_argument("-d", "--device", default="CPU")
    parser.add_argument("--virtual", metavar="GPU", help=f"with -d GPU: no GPU needed; {', '.join(virtual_gpu.GPUS)}")
    parser.add_argument(
        "--precision",
        choices=("f32", "f16", "bf16"),
        help="the only type of what is not int8; without, f32 and a CPU's default, a GPU's own",
    )
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table = Table("network", "floats", "weighted", "int8 stock", "int8 ovlpt", "layers stock", "layers ovlpt", "lost")
    failed = False
    for path in options.models:
        arguments = path, options.device, options.virtual, options.precision
        rows = subprocess_call.call(compare, *arguments)[0] if options.virtual else compare(*arguments)
        for found in rows:
            failed |= bool(found["lost"]) or found["layers_ovlpt"] > found["layers_stock"]
            *counts, lost = found.values()
            table.add_row(path.rsplit("/", 1)[-1].removesuffix(".xml"), *map(str, counts), ", ".join(lost[:3]))
    Console(width=140).print(table)
    return int(failed)


if __name__ == "__main__":
    from tools import execution  # by its name another process finds `compare`

    sys.exit(execution.main())

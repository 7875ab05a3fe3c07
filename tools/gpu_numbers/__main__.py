"""The numbers of the GPU plugin's own kernels, executed on a virtual GPU: with ovlpt, and with the plugin's own LPT,
against the FakeQuantize simulation in float64.

    python -m tools.gpu_numbers                        # the small networks of tests/gpu_networks.py, misses first
    python -m tools.gpu_numbers mlp residual           # some of them
    python -m tools.gpu_numbers --model bert.xml       # a quantized model, with random inputs
    python -m tools.gpu_numbers --real DIR recognizer  # pretrained networks on their task (`tools.gpu_numbers.real`)
    python -m tools.gpu_numbers --gpu mtl --json FILE

Needs the extra ``gpu``. Building a network's kernels takes seconds the first time; built ones are kept.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from ovlpt.device import subprocess_call, virtual_gpu
from ovlpt.trace import OvlptError
from tests.gpu_networks import NETWORKS
from tools.gpu_numbers import PRECISIONS, compared, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NETWORK", help=f"{', '.join(NETWORKS)}; with --real those of tools.real"
    )
    parser.add_argument("--model", action="append", default=[], help="a quantized model's file, instead")
    parser.add_argument("--gpu", default="xelp", choices=virtual_gpu.EXECUTABLE)
    parser.add_argument("--precision", choices=PRECISIONS, help="of floats; both without")
    parser.add_argument("--json", type=Path, help="also write the rows to a file")
    parser.add_argument(
        "--real", type=Path, metavar="DIR", help="what python -m tools.zoo real -o DIR wrote; all networks"
    )
    parser.add_argument("--variant", default="default", help="with --real: how they were quantized")
    parser.add_argument("--samples", type=int, default=2, help="with --real: of each network, the first ones")
    options = parser.parse_args()
    if options.real:
        of_pretrained(options)
        return
    precisions = (options.precision,) if options.precision else PRECISIONS
    tasks = [((Path(path).stem,), path) for path in options.model] or [
        ((name,), None) for name in options.names or NETWORKS
    ]
    rows, environment = [], virtual_gpu.environment(True)
    for names, path in tasks:
        try:
            found = subprocess_call.call(compared, names, options.gpu, precisions, path, environment=environment)[0]
        except OvlptError as error:
            print(f"{names[0]}: {error}", flush=True)
            continue
        for row in found:
            print(
                f"{row.name} {row.precision}: stock {row.stock:.1f} dB, ovlpt {row.ovlpt:.1f} dB, int8 "
                f"{row.stock_int8} / {row.ovlpt_int8}, {row.seconds:.0f} s{' MISS' if row.is_miss else ''}",
                flush=True,
            )
        rows += found
    print(f"\n{table(rows)}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def of_pretrained(options: argparse.Namespace) -> None:
    """Each in a process of its own, which a crash of the plugin ends alone."""
    from tools.gpu_numbers import real  # needs more packages

    rows, environment = [], virtual_gpu.environment(True)
    for path in real.files(options.real, options.names, options.variant):
        for precision in (options.precision,) if options.precision else PRECISIONS:
            asked = path, options.gpu, precision, options.samples
            try:
                rows.append(subprocess_call.call(real.measured, *asked, environment=environment)[0])
            except OvlptError as error:
                print(f"{path.parent.name}: {error}", flush=True)
                continue
            print(real.table(rows[-1:]).splitlines()[-1], flush=True)
    print(f"\n{real.table(rows)}")


if __name__ == "__main__":
    main()

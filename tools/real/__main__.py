"""``python -m tools.real DIR``: each network's task in float, in the simulation, by stock and by ovlpt; misses first.

Exit status 1 where ovlpt is worse than stock: in the task's metric beyond its noise, by more than 1 dB of SQNR against
the simulation, in int8 layers or in executed layers; with floats in f32, in the CPU's default type, or in those of
``--floats``; and where the simulation of ONNX Runtime's files is worse than ONNX Runtime. `EXPECTED` names what is
allowed to be, and why.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tools.real.expected import EXPECTED
from tools.real.measure import Result, Run, measure
from tools.real.networks import REAL
from tools.real.table import markdown, renewed, text

VARIANTS = ("default", "mixed", "qdq_u8i8", "qdq_s8s8", "qop_u8i8")
SUFFIXES = (".xml", ".onnx")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.real", description=sys.modules[__name__].__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="what python -m tools.zoo real -o DIR wrote")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"networks; all of {', '.join(REAL)} by default")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table into a file of Markdown, too; "
                        "text that was added to it is kept")  # fmt: skip
    parser.add_argument("--report", action="store_true", help="of what was measured before, each file's last time")
    parser.add_argument("--floats", action="append", default=[], choices=("f32", "bf16", "f16"), metavar="TYPE",
                        help="f32, bf16 or f16: measure in f32 and in this type, may be repeated; the CPU's default if "
                        "not given")  # fmt: skip
    parser.add_argument("--one", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        warnings.simplefilter("ignore")
        print(json.dumps(asdict(measure(options.one.parent, options.one, options.floats))))
        return 0
    if unknown := [name for name in options.names if name not in REAL]:
        print(f"no network is called {', '.join(unknown)}; there are {', '.join(REAL)}", file=sys.stderr)
        return 2
    files = (
        options.folder / name / f"{variant}{suffix}"
        for name in options.names or REAL
        for variant in VARIANTS
        for suffix in SUFFIXES
    )
    paths = [path for path in files if path.exists()]
    built = {path.parent.name for path in paths}
    if not paths or (absent := [name for name in options.names if name not in built]):
        what = f"{', '.join(absent)} not in" if paths else "no network lies in"
        print(f"{what} {options.folder}; python -m tools.zoo real -o {options.folder} builds them", file=sys.stderr)
        return 2
    if options.report:
        results = [read(path) for path in paths if path.with_suffix(".json").exists()]
    else:
        results = [apart(options.folder, path, options.floats) for path in paths]
    print(text(results))
    if options.markdown:
        page = options.markdown
        page.write_text(renewed(page.read_text(), results) if page.exists() else markdown(results))
    return int(
        any(set(result.misses()) - set(EXPECTED.get((result.network, result.variant), {})) for result in results)
    )


def apart(folder: Path, path: Path, types: Sequence[str] = ()) -> Result:
    """Measured in a process of its own, which a crash of the plugin ends alone; a record lies next to the model."""
    floats = [argument for each in types for argument in ("--floats", each)]
    command = [sys.executable, "-m", "tools.real", str(folder), *floats, "--one", str(path)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        last = next(iter(run.stderr.strip().splitlines()[-1:]), "")
        return Result(path.parent.name, path.stem, {}, f"the process ended with {run.returncode}: {last[:200]}")
    path.with_suffix(".json").write_text(run.stdout.splitlines()[-1])
    result = read(path)
    print(text([result]).splitlines()[-1], file=sys.stderr, flush=True)
    return result


def read(path: Path) -> Result:
    """The record of a model's last measurement."""
    found = json.loads(path.with_suffix(".json").read_text())
    return Result(**{**found, "runs": {name: Run(**values) for name, values in found["runs"].items()}})


if __name__ == "__main__":
    sys.exit(main())

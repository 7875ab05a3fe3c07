"""``python -m tools.zoo NAME... -o DIR`` writes DIR/NAME.xml (quantized) and DIR/NAME_float.xml (before).

``real`` builds the pretrained networks of `tools.real`, ``real/NAME`` one of them: a folder each, with quantizations.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from tools.real.__main__ import VARIANTS
from tools.real.networks import REAL
from tools.real.wheels import Missing
from tools.zoo.benchmark import BENCHMARK
from tools.zoo.catalogue import CATALOGUE


def refuse(sentence: str) -> int:
    """Say why nothing more can be done; the exit status of that."""
    print(sentence, file=sys.stderr)
    return 2


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.zoo", description=sys.modules[__name__].__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks to build, all, benchmark, or real")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder to write to")
    parser.add_argument(
        "--overflow-fix",
        action="store_true",
        help="keep weights within half of their range, for CPUs without VNNI, whose kernels saturate 16 bits",
    )
    parser.add_argument(
        "--quantizations", nargs="+", choices=VARIANTS, default=VARIANTS, help="of pretrained networks; all by default"
    )
    parser.add_argument("--list", action="store_true", help="say which networks there are")
    parser.add_argument(
        "--coverage", type=Path, metavar="DIR", help="say which of the networks in DIR covers which operation"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.list:
        for name, entry in CATALOGUE.items():
            print(f"{name:20} {entry.summary}")
        for name, network in REAL.items():
            print(f"{'real/' + name:20} {network.kind}, by the wheel {network.wheel}")
        return 0
    if options.coverage:
        return coverage(options.coverage)
    if not options.names or not options.output:
        return refuse("give names of networks and -o DIR, --list, or --coverage DIR")
    pretrained = [f"real/{name}" for name in REAL]
    groups = {
        "all": list(CATALOGUE),
        "benchmark": [contender.name for contender in BENCHMARK],
        "real": pretrained,
    }
    if unknown := [name for name in options.names if name not in {*CATALOGUE, *groups, *pretrained}]:
        return refuse(f"no network is called {', '.join(unknown)}; there are {', '.join(CATALOGUE)}")

    # Tracing warns of every shape that becomes a constant, which is wanted here.
    warnings.simplefilter("ignore")
    options.output.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in dict.fromkeys(each for given in options.names for each in groups.get(given, [given])):
        try:
            if name in pretrained:
                needs, extras = "nncf, onnx and onnxruntime", "zoo,real"
                from tools.real.build import build

                for line in build(name.removeprefix("real/"), options.output, options.quantizations):
                    print(line, flush=True)
            else:
                needs, extras = CATALOGUE[name].needs, "zoo"
                print(CATALOGUE[name].build(options.output, options.overflow_fix), flush=True)
        except ImportError as error:
            status = refuse(f"{name} needs {needs} ({error}): pip install 'ovlpt[{extras}]'")
        except Missing as error:
            status = refuse(f"{name} cannot be built: {error}")
        except Exception as error:  # whatever torch, transformers, nncf or onnx throw at a version they do not know
            reason = " ".join(str(error).split())
            status = refuse(f"{name} cannot be built ({type(error).__name__}): {reason[:300]}")
    return status


def coverage(folder: Path) -> int:
    """Print a line for each row of the table of operations; 1 where a row is in no network."""
    from ovlpt.openvino_api import Core
    from tools.zoo.coverage import ROWS, listing, transformed

    files = sorted(file for file in folder.glob("*.xml") if not file.stem.endswith("_float"))
    if not files:
        return refuse(f"no network lies in {folder}; python -m tools.zoo all -o {folder} builds them")
    core = Core()
    covered = {file.stem: transformed(core.read_model(file)) for file in files}
    print("\n".join(listing(covered)))
    return int(not all(any(row in counts for counts in covered.values()) for row in ROWS))


if __name__ == "__main__":
    sys.exit(main())

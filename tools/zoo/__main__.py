"""``python -m tools.zoo NAME... -o DIR`` writes DIR/NAME.xml (quantized) and DIR/NAME_float.xml (before)."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from tools.zoo.networks import NETWORKS


def refuse(sentence: str) -> int:
    """Say why nothing more can be done; the exit status of that."""
    print(sentence, file=sys.stderr)
    return 2


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.zoo", description=sys.modules[__name__].__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="networks to build, or all")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder to write to")
    parser.add_argument("--list", action="store_true", help="say which networks there are")
    options = parser.parse_args(arguments)

    if options.list:
        for name, make in NETWORKS.items():
            print(f"{name:14} {make.__doc__}")
        return 0
    if not options.names or not options.output:
        return refuse("give names of networks and -o DIR, or --list")
    if unknown := [name for name in options.names if name not in (*NETWORKS, "all")]:
        return refuse(f"no network is called {', '.join(unknown)}; there are {', '.join(NETWORKS)}")
    try:
        from tools.zoo.build import build
    except ImportError as error:
        return refuse(f"the zoo needs torch, transformers and nncf ({error}): pip install 'ovlpt[zoo]'")

    # Tracing warns of every shape that becomes a constant, which is wanted here.
    warnings.simplefilter("ignore")
    options.output.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in list(NETWORKS) if "all" in options.names else options.names:
        try:
            print(build(name, NETWORKS[name], options.output), flush=True)
        except Exception as error:  # whatever torch, transformers or nncf throw at a version they do not know
            reason = " ".join(str(error).split())
            status = refuse(f"{name} cannot be built ({type(error).__name__}): {reason[:300]}")
    return status


if __name__ == "__main__":
    sys.exit(main())

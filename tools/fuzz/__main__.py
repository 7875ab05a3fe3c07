"""``python -m tools.fuzz numbers|native|execution``: random quantized graphs, checked one after the other."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable

from tools.fuzz import native, numbers
from tools.fuzz.graphs import Graph, random_graph
from tools.fuzz.numbers import Failure
from tools.fuzz.operations import ADDED, KINDS
from tools.fuzz.sheltered import CHECKS, Sheltered
from tools.fuzz.shrink import shrink


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=tuple(CHECKS))
    parser.add_argument("--graphs", type=int, default=100, help="how many (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the others follow (default 0)")
    parser.add_argument(
        "--added", action="store_true", help="with the operations that the native library has no rule for"
    )
    parser.add_argument("--no-shrink", action="store_true", help="print failing graphs as they are")
    options = parser.parse_args(arguments)
    check = Sheltered(options.check)
    kinds = native.KINDS if options.check == "native" else KINDS
    causes: Counter[str] = Counter()
    failed = stock = 0
    start = time.perf_counter()
    for seed in range(options.seed, options.seed + options.graphs):
        graph = random_graph(seed, kinds | ADDED if options.added else kinds)
        found = list(check(graph))
        for failure in found:
            causes[f"{failure.way}: {failure.cause}"] += 1
        stock += any(failure.way == numbers.STOCK for failure in found)
        found = [failure for failure in found if failure.way != numbers.STOCK]
        failed += bool(found)
        if found:
            small = graph if options.no_shrink else smallest(check, graph, found[0])
            print(f"seed {seed}", *found, small, "", sep="\n", flush=True)
        if (done := seed - options.seed + 1) % 100 == 0:
            print(f"{done} of {options.graphs} graphs, {failed} fail", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - start
    print(f"{options.graphs} graphs, {failed} fail, {seconds / max(options.graphs, 1):.2f} s each")
    print(f"{stock} meet a fault of OpenVINO's own, counted below as {numbers.STOCK}")
    for cause, count in causes.most_common():
        print(f"{count:6} {cause}")
    return 1 if failed else 0


def smallest(check: Callable[..., list[Failure]], graph: Graph, failure: Failure) -> Graph:
    """The smallest graph found that fails in the same way."""

    def fails(candidate: Graph) -> bool:
        return any((found.way, found.cause) == (failure.way, failure.cause) for found in check(candidate, failure.way))

    return shrink(graph, fails)


if __name__ == "__main__":
    sys.exit(main())

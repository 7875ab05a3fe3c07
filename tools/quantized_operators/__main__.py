"""Prints the table of quantized operators with the measured mismatches: ``python -m
tools.quantized_operators``.

Each cell is measured against the real runtime where it is here (see `record` for which and how), else against
its recorded answers; the last column says which. ``--recorded`` never starts a runtime.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ovlpt.reference.methods import METHODS
from ovlpt.reference.table import DOCUMENT, FRAMEWORKS, OPERATORS, POWER, rounding
from ovlpt.trace import InputError
from tools.quantized_operators.cases import Case, Generator
from tools.quantized_operators.kernels import compute
from tools.quantized_operators.record import runtime_version
from tools.quantized_operators.runtimes import available, family_of
from tools.quantized_operators.vectors import families, load, versions


@dataclass
class Count:
    """Outputs of one cell that differ, of all compared, and where the comparison value came from."""

    wrong: int = 0
    total: int = 0
    cases: list[str] = field(default_factory=list)
    source: str = ""


def compare(method: str, pairs: Iterable[tuple[Case, np.ndarray | str | None]], source: str) -> dict[str, Count]:
    """Per operator, how many outputs differ. A runtime that refuses is to meet a kernel that refuses."""
    counts: dict[str, Count] = defaultdict(lambda: Count(source=source))
    for case, answer in pairs:
        try:
            result = compute(case, method)
        except InputError:
            result = None
        if not isinstance(answer, np.ndarray) and result is None:
            continue
        count = counts[case.operator]
        if not isinstance(answer, np.ndarray) or result is None:
            wrong, size = 1, 1
        else:
            wrong, size = int((answer.reshape(result.shape) != result).sum()), answer.size
        count.wrong, count.total = count.wrong + wrong, count.total + size
        if wrong:
            count.cases.append(f"{case.name} ({wrong})")
    return dict(counts)


def measure(recorded_only: bool = False, methods: Iterable[str] = tuple(METHODS)) -> dict[str, dict[str, Count]]:
    """method → operator → count."""
    runtimes = {} if recorded_only else available()
    counts = {}
    for method in methods:
        family = family_of(method)
        if method in runtimes:
            cases = list(Generator(family, "large"))
            pairs = zip(cases, runtimes[method](cases), strict=True)
            counts[method] = compare(method, pairs, f"measured, {runtime_version(method)}")
        elif family in families():
            pairs = ((recording.case, recording.answers[method]) for recording in load(family))
            counts[method] = compare(method, pairs, f"recorded, {versions(family)[method]}")
    return counts


def document_table(counts: dict[str, dict[str, Count]]) -> str:
    """The document's own table, each cell with its mismatches; + marks one that it leaves empty."""
    lines = [f"{'operator':16}" + "".join(f"{f'{name} ({method})':30}" for name, method in FRAMEWORKS.items())]
    for operator, letters in DOCUMENT.items():
        cells = []
        for letter, method in zip(letters, FRAMEWORKS.values(), strict=True):
            names = POWER if operator == "Power" else (operator,)
            found = [counts.get(method, {}).get(name) for name in names if rounding(name, method)]
            found = [count for count in found if count]
            if not any(rounding(name, method) for name in names):
                cells.append("no such operator")
            elif not found:
                cells.append(f"{letter or '+'}  not measured")
            else:
                wrong, total = sum(count.wrong for count in found), sum(count.total for count in found)
                cells.append(f"{letter or '+'}  {wrong} of {total:,}")
        lines.append(f"{operator:16}" + "".join(f"{cell:30}" for cell in cells))
    return "\n".join(lines)


def details(counts: dict[str, dict[str, Count]]) -> str:
    """Every operator of every method: mismatches, source, rounding."""
    lines = []
    for operator in OPERATORS:
        lines.append(operator)
        for method in METHODS:
            text, count = rounding(operator, method), counts.get(method, {}).get(operator)
            if text is None:
                continue
            result = f"{count.wrong} of {count.total:,}" if count else "not measured"
            lines.append(f"  {method:17} {result:18} {count.source if count else '':38} {text}")
            if count:
                lines.extend(f"{'':20}differs: {name}" for name in count.cases[:4])
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.quantized_operators", description=__doc__)
    parser.add_argument("--recorded", action="store_true", help="compare with the recorded answers only")
    parser.add_argument("--method", action="append", choices=METHODS, help="only this method (may be repeated)")
    arguments = parser.parse_args()
    counts = measure(arguments.recorded, arguments.method or tuple(METHODS))
    print("Outputs that differ from the runtime's, of all compared\n")
    print(document_table(counts))
    print("\nt, o, c, ~: the document's letters; +: a cell that the document leaves empty\n")
    print(details(counts))


if __name__ == "__main__":
    main()

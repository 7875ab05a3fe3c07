"""Prints the table of quantized operators with the measured mismatches: ``python -m
tools.quantized_operators``.

Each cell is measured against the real runtime where it is here (see `record` for which and how), else against
its recorded answers; the last column says which. ``--recorded`` never starts a runtime. ``--formulas``: which formula explains
which kind of weights of each framework, and the document's matrix of them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ovlpt.reference.methods import RUNTIMES
from ovlpt.reference.table import DOCUMENT, FRAMEWORKS, OPERATORS, POWER, rounding
from ovlpt.trace import InputError
from tools.quantized_operators import formulas
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


def measure(recorded_only: bool = False, methods: Iterable[str] = tuple(RUNTIMES)) -> dict[str, dict[str, Count]]:
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


def recorded_formulas(methods: Iterable[str]) -> dict[str, dict[str, dict[str, int]]]:
    """method → kind of weights → formula → outputs that differ from the recorded ones."""
    found = {}
    for method in methods:
        pairs = ((recording.case, recording.answers[method]) for recording in load(family_of(method)))
        found[method] = formulas.mismatches(method, pairs)
    return found


@dataclass(frozen=True)
class Cell:
    """One cell of the document's table: its letter, how it is computed (an operator of `POWER` each), the counts."""

    letter: str
    roundings: tuple[str, ...]
    counts: tuple[Count, ...]

    def __str__(self) -> str:
        if not self.roundings:
            return "no such operator"
        if not self.counts:
            return f"{self.letter or '+'}  not measured"
        wrong, total = (sum(getattr(count, name) for count in self.counts) for name in ("wrong", "total"))
        return f"{self.letter or '+'}  {wrong} of {total:,}"

    def markdown(self) -> str:
        if not self.roundings:
            return str(self)
        letter, result = str(self).split("  ")
        return "<br>".join((f"`{letter}` {result}", *(f"`{text}`" for text in self.roundings)))


def document_cells(counts: dict[str, dict[str, Count]]) -> dict[str, list[Cell]]:
    """The document's own table: operator → its cells, a framework each."""
    rows: dict[str, list[Cell]] = {}
    for operator, letters in DOCUMENT.items():
        names = POWER if operator == "Power" else (operator,)
        rows[operator] = []
        for letter, method in zip(letters, FRAMEWORKS.values(), strict=True):
            roundings = {name: text for name in names if (text := rounding(name, method))}
            found = [count for name in roundings if (count := counts.get(method, {}).get(name))]
            rows[operator].append(Cell(letter, tuple(roundings.values()), tuple(found)))
    return rows


def document_table(counts: dict[str, dict[str, Count]]) -> str:
    """The document's own table, each cell with its mismatches; + marks one that it leaves empty."""
    lines = [f"{'operator':16}" + "".join(f"{f'{name} ({method})':30}" for name, method in FRAMEWORKS.items())]
    lines += [
        f"{operator:16}" + "".join(f"{cell!s:30}" for cell in cells)
        for operator, cells in document_cells(counts).items()
    ]
    return "\n".join(lines)


def markdown_table(counts: dict[str, dict[str, Count]]) -> str:
    """The same in Markdown, each cell with how it is computed."""
    head = ["operator", *(f"{name} ({method})" for name, method in FRAMEWORKS.items())]
    rows = [[operator, *(cell.markdown() for cell in cells)] for operator, cells in document_cells(counts).items()]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def details(counts: dict[str, dict[str, Count]]) -> str:
    """Every operator of every method: mismatches, source, rounding."""
    lines = []
    for operator in OPERATORS:
        lines.append(operator)
        for method in RUNTIMES:
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
    parser.add_argument("--method", action="append", choices=RUNTIMES, help="only this method (may be repeated)")
    parser.add_argument(
        "--markdown", action="store_true", help="print the document's table only, as docs/fake_quantize.md has it"
    )
    parser.add_argument(
        "--formulas", action="store_true", help="print what each formula gets wrong of the recorded answers only"
    )
    arguments = parser.parse_args()
    if arguments.formulas:
        found = recorded_formulas(arguments.method or RUNTIMES)
        print("Outputs that each formula gets wrong; * all are explained\n")
        print(formulas.table(found))
        if "tflite-2.5" in found:
            print(f"\nThe document's matrix against TensorFlow 2.5\n\n{formulas.matrix(found['tflite-2.5'])}")
        return
    counts = measure(arguments.recorded, arguments.method or tuple(RUNTIMES))
    if arguments.markdown:
        print(markdown_table(counts))
        return
    print("Outputs that differ from the runtime's, of all compared\n")
    print(document_table(counts))
    print("\nt, o, c, ~: the document's letters; +: a cell that the document leaves empty\n")
    print(details(counts))


if __name__ == "__main__":
    main()

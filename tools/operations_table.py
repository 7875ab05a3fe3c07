"""Prints the table of docs/operations.md: ``python -m tools.operations_table``.

A star stands at versions that the native library has no rule for.
"""

from __future__ import annotations

from ovlpt.operations import OPERATIONS

KINDS = {
    "weighted": "computes on integers",
    "elementwise": "element by element",
    "reduces": "over axes",
    "passes": "moves data",
    "absent": "no rule",
}


def table() -> str:
    """One line a row; rows without a rule share a line where they share the reason."""
    lines = ["| operation | versions | kind | output stays in low precision |", "| --- | --- | --- | --- |"]
    absent: dict[str, list[str]] = {}
    for row in sorted(OPERATIONS.values(), key=lambda row: (list(KINDS).index(row.kind), row.name)):
        if row.why_absent is not None:
            absent.setdefault(row.why_absent.text.replace(row.name, "it"), []).append(row.name)
            continue
        versions = ", ".join(
            opset.removeprefix("opset") + ("*" if opset in row.added else "") for opset in row.versions
        )
        lines.append(f"| {row.name} | {versions} | {KINDS[row.kind]} | {'yes' if row.precision_preserved else 'no'} |")
    lines += [f"| {', '.join(names)} | all | {KINDS['absent']} | no: {why} |" for why, names in absent.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())

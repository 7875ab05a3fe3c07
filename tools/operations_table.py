"""Prints the operations of the table as Markdown: ``python -m tools.operations_table``."""

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
    """One line a row."""
    lines = ["| operation | versions | kind | output stays in low precision |", "| --- | --- | --- | --- |"]
    for row in sorted(OPERATIONS.values(), key=lambda row: (list(KINDS).index(row.kind), row.name)):
        versions = ", ".join(opset.removeprefix("opset") for opset in row.opsets)
        stays = row.why_absent.text if row.why_absent else "yes" if row.precision_preserved else "no"
        lines.append(f"| {row.name} | {versions} | {KINDS[row.kind]} | {stays} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())

"""Prints the table of docs/lowering.md: ``python -m tools.lowering_table``."""

from __future__ import annotations

from ovlpt.device.lowering.rules import RULES, Rule

WITHOUT_RULE = "what the plugin would do without it"


def table() -> str:
    """One line a rule, in the order in which they are tried."""
    lines = [f"| rule | of | device | when | {WITHOUT_RULE} |", "| --- | --- | --- | --- | --- |"]
    for rule in RULES:
        operations = ", ".join(sorted(rule.operations)) or "all operations"
        lines.append(
            f"| `{rule.name}` | {operations} | {', '.join(rule.devices)} | {_when(rule) or 'always'} | {rule.defect} |"
        )
    return "\n".join(lines)


def _when(rule: Rule) -> str:
    conditions = (
        "the model may be saved" if rule.saved_only else "",
        "" if rule.lpt_on is None else f"the plugin's own LPT is {'on' if rule.lpt_on else 'off'}",
        f"floats in {rule.precision}" if rule.precision else "",
        "the model is compiled on this machine" if rule.for_speed else "",
        f"the model may be saved, or `{rule.here.__name__}` holds of this CPU" if rule.here else "",
    )
    return ", ".join(filter(None, conditions))


if __name__ == "__main__":
    print(table())

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from ovlpt import plugin_config
from ovlpt.commands.isa import limited
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import settings
from ovlpt.commands.virtual import on_virtual
from ovlpt.device.overflow import REMEDY
from ovlpt.device.this_cpu import saturates
from ovlpt.inspect.executed import has_weights
from ovlpt.inspect.explain import Answer, Explanation, explain
from ovlpt.inspect.post_ops import post_ops
from ovlpt.openvino_api import Core

_SHOWN = 3  # names in a row


def _call(options: argparse.Namespace) -> int:
    if options.post_ops:
        return _post_ops(options)
    out = console(options.json)
    found = explain(options.model, options.device, settings(options), graph_only=options.graph_only)
    answers = list(found)
    if options.layer is not None:
        answer = found.of(options.layer)
        answers = [answer] if answer else []
    else:
        out.print(found.headline)
    if options.layer is not None or options.details:
        _print_each(out, answers)
    else:
        _print_groups(out, found)
    if options.layer is not None:
        out.print("above it: " + " ← ".join(answers[0].upstream) if answers else f"{options.layer} is in low precision")
    for hazard in found.hazards:
        kept = "ovlpt.compile_model keeps the numbers right" if hazard.avoided else "the numbers change"
        out.print(f"{hazard.layer}: {hazard.reason.text} ({kept})", style="yellow")
    here = plugin_config.kind(options.device) == "CPU" and saturates(Core(), "CPU")
    if found.overflow_risks and options.layer is None and (here or options.details):
        names = ", ".join(
            f"{risk.layer} ({risk.risky_channels} of {risk.channels} channels)" for risk in found.overflow_risks
        )
        text = f"pairs of weights that can saturate 16 bits on CPUs without VNNI: {names}; {REMEDY}"
        out.print(text, style="yellow")
    write_result(options, {**found.to_json(), "answers": [answer.to_json() for answer in answers]})
    return 1 if options.strict and found.quantizable else 0


call = on_virtual(_call, limited(_call))


def _print_each(out, answers: Sequence[Answer]) -> None:
    if not answers:
        return
    rows = table("operation", "executed as", "why", "what would help", "name")
    for answer in answers:
        where = f"part of {answer.part_of}" if answer.part_of else answer.layer or ""
        rows.add_row(answer.operation, where, answer.why, answer.help or "", answer.name)
    out.print(rows)


def _print_groups(out, found: Explanation) -> None:
    """Layers with weights by cause, and how many other operations there are."""
    if groups := found.groups():
        rows = table(">layers", "why", "what would help", "which")
        for group in groups:
            shown = [answer.name for answer in group[:_SHOWN]]
            more = [f"and {len(group) - _SHOWN} more"] if len(group) > _SHOWN else []
            rows.add_row(str(len(group)), group[0].why, group[0].help or "", "\n".join([*shown, *more]))
        out.print(rows)
    others = Counter(answer.operation for answer in found.layers if not has_weights(answer.operation))
    if others:
        kinds = ", ".join(f"{kind} {count}" for kind, count in others.most_common())
        out.print(f"other operations in float: {kinds} (--details says why)")


def _post_ops(options: argparse.Namespace) -> int:
    out, layers = console(options.json), post_ops(options.model, options.device, options.stock)
    layers = [layer for layer in layers if options.layer in (None, layer.name)]
    out.print(
        f"{sum(layer.equal for layer in layers)} of {len(layers)} int8 layers have the predicted scales and post-operations"
    )
    rows = table("predicted", "actual", ">would save", "layer")
    for layer in layers:
        actual = "as predicted" if layer.equal else f"{layer.actual} ({layer.reason})"
        rows.add_row(layer.predicted, actual, str(layer.saved or ""), layer.name)
    out.print(rows)
    if saved := sum(layer.saved for layer in layers):
        out.print(f"with integer zero points there would be {saved} fewer post-operations")
    write_result(options, {"layers": [layer.to_json() for layer in layers]})
    return 1 if options.strict and not all(layer.equal for layer in layers) else 0

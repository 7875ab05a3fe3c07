from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from ovlpt import plugin_config
from ovlpt.commands.isa import limited
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import settings
from ovlpt.commands.virtual import on_virtual
from ovlpt.device.overflow import REMEDY
from ovlpt.device.this_cpu import saturates
from ovlpt.inspect.executed import has_weights
from ovlpt.inspect.explain import explain
from ovlpt.inspect.explain.answers import Answer, Explanation
from ovlpt.inspect.post_ops import post_ops
from ovlpt.openvino_api import Core

_SHOWN = 3  # names of a group
_MARGIN = " " * 14


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
    for answer in answers:
        where = f"part of {answer.part_of}" if answer.part_of else answer.layer
        out.print(f"\n{answer.operation} {answer.name}", soft_wrap=True)
        _print_block(out, {"runs as": [where] if where else [], **_said(answer)})


def _print_groups(out, found: Explanation) -> None:
    """Layers with weights by cause, and how many other operations there are."""
    for group in found.groups():
        shown = [answer.name for answer in group[:_SHOWN]]
        more = [f"and {len(group) - _SHOWN} more"] if len(group) > _SHOWN else []
        out.print(f"\n{len(group)} {group[0].operation} in float")
        _print_block(out, {**_said(group[0]), "layers" if len(group) > 1 else "layer": [*shown, *more]})
    others = Counter(answer.operation for answer in found.layers if not has_weights(answer.operation))
    if others:
        kinds = ", ".join(f"{kind} {count}" for kind, count in others.most_common())
        out.print(f"\nother operations in float: {kinds} (--details says why)")


def _said(answer: Answer) -> dict[str, list[str]]:
    causes = list(dict.fromkeys(each.reason.text for each in answer.causes)) or [answer.reason.text]
    helps = list(dict.fromkeys(map(str, answer.advices))) or ([answer.help] if answer.help else [])
    return {"because": [*causes[:1], *(f"and {each}" for each in causes[1:])], "advice": helps}


def _print_block(out, lines: Mapping[str, Sequence[str]]) -> None:
    """Lines under a title each, folded between words: no name is broken, however narrow the terminal is."""
    width = max(out.width - len(_MARGIN) - 2, 1)
    for title, texts in lines.items():
        for at, text in enumerate(texts):
            begin = f"    {'' if at else title:8}  "
            for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
                out.print(f"{begin}{line}", soft_wrap=True)
                begin = f"{_MARGIN}  "


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

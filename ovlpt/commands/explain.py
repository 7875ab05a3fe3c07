from __future__ import annotations

import argparse

from ovlpt.commands.printing import check_writable, console, table, write_json
from ovlpt.commands.settings import add_settings, settings
from ovlpt.inspect.explain import explain


def add(commands) -> None:
    parser = commands.add_parser(
        "explain",
        help="say why operations are not in int8",
        description="List the operations that are not in low precision, with the reason and what would help.",
        epilog="example: ovlpt explain resnet50.xml --strict",
    )
    parser.add_argument("model", metavar="MODEL", help="a quantized model (.xml, .onnx …)")
    parser.add_argument("-d", "--device", default="CPU", metavar="DEVICE", help="default: CPU")
    add_settings(parser)
    parser.add_argument("--layer", metavar="NAME", help="only the operation of this name, with what lies above it")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a quantizable operation stays in float")
    parser.add_argument("--json", metavar="FILE", help="write the answers to a file")
    parser.set_defaults(call=_call)


def _call(options: argparse.Namespace) -> int:
    out, found = console(), explain(options.model, options.device, settings(options))
    answers = list(found)
    if options.layer is not None:
        answer = found.of(options.layer)
        answers = [answer] if answer else []
    if answers:
        rows = table("*name", "operation", "*why", "*what would help")
        for answer in answers:
            rows.add_row(answer.name, answer.operation, answer.reason.text, answer.help or "")
        out.print(rows)
    if options.layer is not None:
        out.print("above it: " + " ← ".join(answers[0].upstream) if answers else f"{options.layer} is in low precision")
    out.print(f"{sum(found.low.values())} of {sum(found.total.values())} operations are in low precision")
    if found.quantizable:
        names = ", ".join(answer.name for answer in found.quantizable)
        out.print(f"quantizable, but in float: {names}")
    write_json(options.json, [answer.to_json() for answer in answers])
    return 1 if options.strict and found.quantizable else 0

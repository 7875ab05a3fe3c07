from __future__ import annotations

import argparse

from ovlpt.commands.printing import check_writable, console, table, write_json
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
    parser.add_argument("--layer", metavar="NAME", help="only the operation of this name, with what lies above it")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a quantizable operation stays in float")
    parser.add_argument("--json", metavar="FILE", help="write the answers to a file")
    parser.set_defaults(call=_call)


def _call(options: argparse.Namespace) -> int:
    check_writable(options.json)
    out, found = console(), explain(options.model, options.device)
    answers = [answer for answer in found if options.layer in (None, answer.name)]
    rows = table("*name", "operation", "*why", "*what would help")
    for answer in answers:
        rows.add_row(answer.name, answer.operation, answer.reason.text, answer.help or "")
        if options.layer:
            out.print("above it: " + " ← ".join(answer.upstream))
    out.print(rows)
    out.print(f"{sum(found.low.values())} of {sum(found.total.values())} operations are in low precision")
    write_json(options.json, [answer.to_json() for answer in answers])
    return 1 if options.strict and found.quantizable else 0

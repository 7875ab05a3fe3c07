from __future__ import annotations

import argparse

from ovlpt.commands.isa import add_isa, limited
from ovlpt.commands.printing import console, write_result
from ovlpt.commands.settings import add_command, add_float, add_input, add_json, add_model, add_settings, settings
from ovlpt.commands.virtual import add_virtual, on_virtual
from ovlpt.files import check_writable, write_text
from ovlpt.inspect.report import report
from ovlpt.inspect.report.page import check_packages, to_html


def add(commands, summary: str) -> None:
    parser = add_command(
        commands,
        "report",
        on_virtual(_call, limited(_call)),
        summary,
        "Transform, compile and run a model, and say on one self-contained page what keeps it from being faster.",
        "ovlpt report resnet50.xml -o resnet50.html --csv layers.csv",
    )
    add_model(parser)
    add_settings(parser)
    add_isa(parser)
    add_virtual(parser)
    add_input(parser)
    add_float(parser, "for its latency")
    parser.add_argument(
        "-o", "--output", metavar="OUT.html", help="default: report.html, unless --json or --csv names a file"
    )
    add_json(parser, "everything")
    parser.add_argument("--csv", metavar="FILE", help="write the layers to a file")


def _call(options: argparse.Namespace) -> int:
    page = options.output
    if (page, options.json, options.csv) == (None, None, None):
        page = "report.html"
    if page is not None:
        check_writable(page)
        check_packages()
    config, virtual = settings(options), options.virtual
    found = report(options.model, options.device, options.input, options.float_model, config, virtual=virtual)
    if page is not None:
        write_text(page, to_html(found))
    write_result(options, found.to_json())
    if options.csv is not None:
        found.write_csv(options.csv)
    console(options.json).print(found.verdict.text)
    return 0

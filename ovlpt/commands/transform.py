from __future__ import annotations

import argparse

import openvino

from ovlpt.commands.printing import check_writable, console
from ovlpt.commands.settings import add_command, add_model, add_settings, settings
from ovlpt.device import transform
from ovlpt.device.compile import lpt_properties, read_model
from ovlpt.fusions import fuse
from ovlpt.openvino_api import Core


def add(commands) -> None:
    parser = add_command(
        commands,
        "transform",
        _call,
        "write a transformed model that compiles without ovlpt",
        "Transform a quantized model for a device and save it as IR.",
        "ovlpt transform resnet50.xml -o resnet50_int8.xml",
    )
    add_model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.xml")
    add_settings(parser)
    parser.add_argument("--fuse", action="store_true", help="first fuse normalizations and split convolutions")


def _call(options: argparse.Namespace) -> int:
    check_writable(options.output)
    config, core = settings(options), Core()
    model = read_model(options.model, core)
    if options.fuse:
        model = fuse(model)
    transformed = transform(model, options.device, config, core=core)
    openvino.save_model(transformed, options.output, compress_to_fp16=False)
    properties = ", ".join(f'"{key}": "{value}"' for key, value in lpt_properties(transformed, options.device).items())
    console().print(f'compile it with core.compile_model("{options.output}", "{options.device}", {{{properties}}})')
    return 0

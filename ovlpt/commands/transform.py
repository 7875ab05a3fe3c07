from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ovlpt.commands.activity import progress
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import settings
from ovlpt.commands.virtual import on_virtual
from ovlpt.device import transform
from ovlpt.device.compile import NotQuantized, lpt_properties
from ovlpt.device.loading import quantization_of, read_model
from ovlpt.device.saving import check_output, save_model
from ovlpt.fusions import fuse
from ovlpt.inspect.tune import Tuned, tune
from ovlpt.openvino_api import Core, Model


def _call(options: argparse.Namespace) -> int:
    check_output(options.output, options.model)
    config, core = settings(options), Core()
    model = _fused(options.model, core) if options.fuse else options.model
    done = progress("measures layers")
    tuned = tune(model, options.device, config, core=core, progress=done) if options.tune else None
    config = tuned.config if tuned else config
    transformed = transform(model, options.device, config, core=core, precision=options.precision)
    save_model(transformed, options.output)
    properties = lpt_properties(transformed, options.device)
    code = _loading_code(options.output, options.device, properties)
    out = console(options.json)
    if tuned is not None:
        out.print(_tuned_table(tuned))
    out.print("\n".join(code), soft_wrap=True)
    measured = {"tuned": [asdict(each) for each in tuned.measured]} if tuned else {}
    write_result(options, {"output": options.output, "properties": properties, **measured})
    return 0


call = on_virtual(_call)


def _fused(path: str, core: Core) -> Model:
    """Raises `NotQuantized` for a model before quantization, which has a command of its own."""
    source = read_model(path, core)
    if quantization_of(source) == "none":
        raise NotQuantized(
            f'"{path}" is not quantized; fuse it with "ovlpt fuse", then quantize it, with nncf.quantize for instance'
        )
    return fuse(source)


def _tuned_table(tuned: Tuned) -> Any:
    """What was measured, or that nothing was."""
    if not tuned.measured:
        return "no MatMul of this model can run as a convolution: there is nothing to tune"
    rows = table(">rows", ">inputs", ">outputs", ">layers", ">as a convolution, ratio of times", "runs as")
    chosen: Any = tuned.config.params.mat_mul_as_convolution
    for each in tuned.measured:
        form = "convolution" if each.shape in chosen else "MatMul"
        ratio = f"{each.ratio:.2f} ({each.low:.2f}–{each.high:.2f}{', unclear' if each.is_unclear else ''})"
        rows.add_row(*map(str, (*each.shape, each.layers)), ratio, form)
    return rows


def _loading_code(path: str, device: str, properties: Mapping[str, object]) -> list[str]:
    """What compiles the saved model without ovlpt. Type-relaxed operations are read with the help of the CPU plugin."""
    text = json.dumps(path, ensure_ascii=False)  # as Python writes it, too
    lines = [f"# {text} is written; this code compiles it, without ovlpt:", "import openvino", "core = openvino.Core()"]
    if device != "CPU":
        lines.append('core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the CPU plugin, which knows the operations')
    given = json.dumps(properties).replace("false", "False")
    lines.append(f'compiled = core.compile_model({text}, "{device}", {given})')
    return lines

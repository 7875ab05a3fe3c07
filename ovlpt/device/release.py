"""Whether the installed OpenVINO can do what the package builds on."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ovlpt.device.properties import simulation
from ovlpt.graph.constants import constant
from ovlpt.graph.relaxed import relaxed
from ovlpt.openvino_api import RELEASE, Core, Model, Node, Type, opset1
from ovlpt.trace import OvlptError

SEEN = frozenset(((2024, 6), (2026, 4)))  # releases that the package was run on


def check_release(guard: Callable[[Node], object]) -> None:
    """On a release that the package was never run on: make a relaxed convolution and run it on the CPU plugin, once.

    ``guard``: keeps the plugin from fusing the scale after the convolution into its integer weights. Raises
    `OvlptError` with one sentence when that does not work.
    """
    if RELEASE not in SEEN:
        _try_relaxed_convolution(guard)


@functools.cache
def _try_relaxed_convolution(guard: Callable[[Node], object]) -> None:
    name = ".".join(map(str, RELEASE))
    try:
        data = opset1.parameter([1, 16, 4, 4], Type.u8)
        weights = constant(np.full((16, 16, 1, 1), -2), "i8")
        attributes = {
            "strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "auto_pad": "explicit",
        }  # fmt: skip
        layer = relaxed("Convolution", [data.output(0), weights.output(0)], "f32", attributes)
        scaled = opset1.multiply(layer, constant(0.5))
        model = Model([opset1.result(scaled)], [data], "release")
        guard(layer)  # it puts others in the place of what reads the layer
        answer = Core().compile_model(model, "CPU", simulation())([np.full((1, 16, 4, 4), 3, np.uint8)])[0]
    except Exception as error:
        text = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise OvlptError(
            f"OpenVINO {name} is new to ovlpt and does not take type-relaxed operations from Python ({text}); use 2026.4"
        ) from error
    if not (answer == 16 * 3 * -2 * 0.5).all():
        raise OvlptError(f"OpenVINO {name} is new to ovlpt and computes a type-relaxed convolution wrongly; use 2026.4")

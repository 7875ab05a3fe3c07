"""Every network of the zoo by its name: what it is and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tools.zoo.decoders import DECODERS
from tools.zoo.networks import NETWORKS
from tools.zoo.sketches import PRECISIONS, SKETCHES

_ONNX = {
    "resnet18_qdq": "ResNet-18 as ONNX with Q/DQ: i8 weights with a scale per channel, u8 activations.",
    "resnet18_u8_weights": "ResNet-18 as ONNX with Q/DQ: u8 weights with the zero point 128, u8 activations.",
}


@dataclass(frozen=True)
class Entry:
    """``build`` takes a folder, and whether to quantize with the overflow fix (`tools.zoo.overflow_fix`); it writes
    NAME.xml and NAME_float.xml there and returns a line about them.
    """

    summary: str
    needs: str  # the packages that build it
    build: Callable[[Path, bool], str]


def _torch(name: str) -> Entry:
    make = NETWORKS[name]
    return Entry(
        make.__doc__, "torch, transformers and nncf",
        lambda folder, fix: import_module("tools.zoo.build").build(name, make, folder, fix),
    )  # fmt: skip


def _sketch(name: str) -> Entry:
    draw = SKETCHES[name]
    precision = PRECISIONS.get(name, "f32")
    return Entry(
        draw.__doc__, "openvino",
        lambda folder, fix: import_module("tools.zoo.sketch").build(name, draw, folder, fix, precision),
    )  # fmt: skip


def _onnx(name: str) -> Entry:
    def build(folder: Path, overflow_fix: bool) -> str:
        networks = import_module("tools.zoo.onnx_networks")
        return networks.build(name, networks.SETTINGS[name], folder, overflow_fix)

    return Entry(_ONNX[name], "onnx and onnxruntime", build)


def _decoder(name: str) -> Entry:
    return Entry(
        DECODERS[name][0], "nncf",
        lambda folder, fix: import_module("tools.zoo.decoders").build(name, folder, fix),
    )  # fmt: skip


CATALOGUE: Mapping[str, Entry] = {
    **{name: _torch(name) for name in NETWORKS},
    **{name: _onnx(name) for name in _ONNX},
    **{name: _sketch(name) for name in SKETCHES},
    **{name: _decoder(name) for name in DECODERS},
}

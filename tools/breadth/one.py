"""One family by one quantizer: its model from a file, or built into one; measured with its own shape and an open batch."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov

import ovlpt
from ovlpt.choices import OVLPT, STOCK
from ovlpt.device.execution_types import ExecutionTypes
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.properties import UNCACHED
from ovlpt.inspect.check.execution import Executed, second_products
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Core, Model
from tools.real.measure import distance, infer

Outputs = list[list[np.ndarray]]
_PLACE = re.compile(r"Exception from \S+:\d+:")


def measure(model: Model, feed: list[list[np.ndarray]], truth: Outputs, floats: str) -> dict[str, object]:
    """Stock and ovlpt on the model: dB against the ``truth``, int8 and executed layers, or what failed."""
    core, found, executed = Core(), {}, {}
    for name in (STOCK, OVLPT):
        try:
            settings = {"INFERENCE_PRECISION_HINT": floats, **UNCACHED}
            compiled = (
                core.compile_model(model, "CPU", settings)
                if name == STOCK
                else ovlpt.compile_model(model, "CPU", settings, core=core)
            )
            outputs = infer(compiled, feed)
            executed[name] = ovlpt.execution_types(compiled)
        except Exception as error:  # of the plugin or of the pass
            found[name] = {"failure": sentence_of(error)}
            continue
        layers = executed[name].executed
        weighted = [layer for layer in layers if layer.layer_type in WEIGHTED_LAYERS]
        found[name] = {
            "decibels": distance(truth, outputs),
            "each": [distance([a], [b]) for a, b in zip(truth, outputs, strict=True)],
            "weighted": len(weighted),
            "int8": sum(layer.is_int8 for layer in weighted),
            "executed": len(layers),
            "float": [layer.name for layer in weighted if not layer.is_int8],
            "types": dict(Counter(layer.layer_type for layer in layers)),
        }
    if len(executed) == 2:
        found[OVLPT]["lost"] = lost(model, executed)
    return found


def lost(model: Model, layers: dict[str, ExecutionTypes]) -> list[str]:
    """Stock's int8 layers that ovlpt runs in float, or not at all; not those that a fused attention holds in int8."""
    operations = {node.get_friendly_name(): node.get_type_name() for node in model.get_ops()}
    both = Executed("", layers, operations, second_products=second_products(model))
    return [difference.layer for difference in both.against_stock() if difference.fails]


def quantized(folder: Path, name: str, quantizer: str) -> tuple[Model, list[list[np.ndarray]]]:
    """The quantized model, and samples to measure it on: out of ``folder``, where they are written first if need be."""
    path = folder / f"{name.replace('/', '_')}-{quantizer}.xml"
    if not path.exists():
        from tools.breadth.build import build  # torch and NNCF load slowly

        model, samples = build(name, quantizer)
        with path.with_suffix(".pickle").open("wb") as file:
            pickle.dump([list(sample.values()) for sample in samples], file)
        ov.save_model(model, path, compress_to_fp16=False)
    with path.with_suffix(".pickle").open("rb") as file:
        return Core().read_model(path), pickle.load(file)


def sentence_of(error: Exception) -> str:
    """An error in one line, without the places in OpenVINO that it passed."""
    return " ".join(_PLACE.sub("", f"{type(error).__name__}: {error}").split())[:300]


def run(folder: Path, name: str, quantizer: str, floats: str) -> dict[str, object]:
    """A line of the results: "static" and "open" → what `measure` found; "failure" where it cannot be built.

    The simulation runs at the fixed shape for both: with an open one the plugin takes per-channel constants wrongly at times.
    """
    line: dict[str, object] = {"family": name, "quantizer": quantizer, "floats": floats}
    line["cpu"] = Core().get_property("CPU", "FULL_DEVICE_NAME")
    try:
        model, feed = quantized(folder, name, quantizer)
        shapes = [array.shape for array in feed[0]]
        model.reshape({index: [1, *shape[1:]] for index, shape in enumerate(shapes)})
        truth = infer(simulate(model, Core()), feed)
        if all(np.array_equal(*pair) for each in truth[1:] for pair in zip(truth[0], each, strict=True)):
            return {**line, "failure": "the outputs are the same for all samples"}
        line["static"] = measure(model, feed, truth, floats)
    except Exception as error:  # of torch, timm, transformers, nncf or onnx at a version they do not know
        return {**line, "failure": sentence_of(error)}
    try:
        model.reshape({index: [-1, *shape[1:]] for index, shape in enumerate(shapes)})
        line["open"] = measure(model, feed, truth, floats)
    except Exception as error:  # the model's own shapes may be tied to one batch
        line["open"] = {"failure": sentence_of(error)}
    return line

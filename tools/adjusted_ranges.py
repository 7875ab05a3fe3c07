"""What ranges with a fractional zero point cost, and what `ovlpt.fake_quantize.adjust` gives back.

    python -m tools.adjusted_ranges [MODEL...]

A quantizer measures ranges; unless it then tunes them, 0 falls between two levels wherever a range has both
signs. NNCF does tune. So the bundled float network is quantized by NNCF with its tuning switched off, and in each
MODEL, quantized by NNCF before, the symmetric ranges go back to what was measured, [-m, m]. Both follow once more
with every range adjusted.

Printed: how many ranges have a fractional zero point; the farthest that an end was moved, in steps; the int8
layers; the post-operations that oneDNN's log names for all of them; for the bundled network the accuracy on the
held-out images. Needs the extra ``zoo``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import openvino as ov

import ovlpt
from ovlpt import data
from ovlpt.fake_quantize import FakeQuantize, adjust
from ovlpt.graph.constants import constant, is_constant_path, values_of
from ovlpt.inspect.post_ops import Logged, post_ops

CALIBRATION = 100
CONFIGURATION = {"INFERENCE_PRECISION_HINT": "f32"}

Range = tuple[np.ndarray, np.ndarray]


def untuned_digits() -> ov.Model:
    """The bundled float network, quantized by NNCF with the ranges that it measured."""
    import nncf
    from nncf.quantization import fake_quantize as ranges

    images, _ = data.heldout()
    calibration = nncf.Dataset(images[:CALIBRATION], lambda image: image[None])
    with patch.object(ranges, "tune_range", lambda low, high, *_, **__: (low, high)):
        return nncf.quantize(
            ov.Core().read_model(data.digits_float()), calibration, preset=nncf.QuantizationPreset.MIXED
        )


def quantizations(model: ov.Model) -> list[tuple[ov.Node, FakeQuantize]]:
    """The quantizations of activations, with a range of constants that they keep for their output."""
    found = []
    for node in model.get_ordered_ops():
        if node.get_type_name() != "FakeQuantize":
            continue
        source, *bounds = (node.input_value(port).get_node() for port in range(5))
        if is_constant_path(source) or any(bound.get_type_name() != "Constant" for bound in bounds):
            continue
        low, high, output_low, output_high = (values_of(bound).ravel() for bound in bounds)
        if np.array_equal((low, high), (output_low, output_high)):
            found.append((node, FakeQuantize(low, high, output_low, output_high, node.get_attributes()["levels"])))
    return found


def fractional(model: ov.Model) -> list[FakeQuantize]:
    """The quantizations whose zero point is not an integer."""
    return [parameters for _, parameters in quantizations(model) if parameters.input_zero_point is None]


def with_ranges(model: ov.Model, change: Callable[[FakeQuantize], Range | None]) -> ov.Model:
    """A copy of the model with the ranges that ``change`` gives; None keeps one."""
    model = model.clone()
    for node, parameters in quantizations(model):
        if (changed := change(parameters)) is not None:
            shape = tuple(node.input_value(1).get_shape())
            bounds = [constant(np.asarray(bound, np.float32).reshape(shape)) for bound in changed]
            for port in range(1, 5):
                node.input(port).replace_source_output(bounds[(port - 1) % 2].output(0))
    return model


def measured(parameters: FakeQuantize) -> Range | None:
    """[-m, m] for a symmetric range that was widened to an integer zero point."""
    low, high = parameters.input_low, parameters.input_high
    widened = high * parameters.levels / (parameters.levels - 2)
    return (-high, high) if low.size == 1 and np.allclose(-low, widened) else None


def nearest(parameters: FakeQuantize) -> Range | None:
    """The nearest range with an integer zero point, for one without."""
    if parameters.input_zero_point is not None:
        return None
    moved = adjust(parameters.input_low, parameters.input_high, parameters.levels)
    return moved.low, moved.high


def farthest(model: ov.Model) -> float:
    """How far `nearest` moves an end, at most, in steps of its range."""
    return max(
        float(np.max(adjust(each.input_low, each.input_high, each.levels).moved / each.input_scale))
        for each in fractional(model)
    )


def accuracy(model: ov.Model) -> float:
    """Share of the held-out images whose largest logit is the label's, run in int8."""
    compiled = ovlpt.compile_model(model, "CPU", CONFIGURATION)
    return float(
        np.mean([compiled(image[None])[0].argmax() == label for image, label in zip(*data.heldout(), strict=True)])
    )


def length(model: ov.Model) -> tuple[int, int]:
    """How many int8 layers the compiled model has, and how many post-operations all of them, by oneDNN's log."""
    layers = post_ops(model)
    return len(layers), sum(len(Logged.parse(layer.actual).post_operations) for layer in layers)


def rows(name: str, model: ov.Model, score: Callable[[ov.Model], str]) -> list[str]:
    """The table's rows of a model: as measured, and adjusted."""
    if not fractional(model):
        return [f"| {name} | no range has a fractional zero point | | | | |"]
    table = []
    for step, each in (
        ("as measured", model),
        (f"moved by ≤ {farthest(model):.2f} steps", with_ranges(model, nearest)),
    ):
        layers, operations = length(each)
        table.append(f"| {name} | {step} | {len(fractional(each))} | {layers} | {operations} | {score(each)} |")
    return table


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.adjusted_ranges", description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="IR quantized by NNCF")
    options = parser.parse_args(arguments)
    print("| network | ranges | fractional zero points | int8 layers | post-operations | accuracy |")
    print("| --- | --- | --- | --- | --- | --- |")
    print(*rows("digits", untuned_digits(), lambda model: f"{accuracy(model):.3f}"), sep="\n")
    for path in options.models:
        model = with_ranges(ov.Core().read_model(path), measured)
        print(*rows(path.stem, model, lambda _: ""), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

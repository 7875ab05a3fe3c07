"""What ovlpt and stock compute on one network of the zoo: their int8 layers, and their numbers.

Inputs are drawn as those that the network was calibrated with, but are others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import ovlpt
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.overflow import overflow_risks
from ovlpt.device.properties import EXACT as IN_FLOATS
from ovlpt.device.properties import simulation
from ovlpt.device.this_cpu import saturates
from ovlpt.graph.constants import constant, precision_of, values_of
from ovlpt.inspect.check.layers import executed_precision
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.report.layers import on_data
from ovlpt.openvino_api import CompiledModel, Constant, Core, Model
from ovlpt.precisions import INT8, REAL
from tools.benchmark.sqnr import Movement, sqnr
from tools.zoo.alive import Sample
from tools.zoo.overflow_fix import WHOLE, range_of_weights
from tools.zoo.signals import draw

STOCK, OVLPT, EXACT, SIMULATION = "stock", "ovlpt", "ovlpt in f32", "simulation"
INPUTS = 64
SEED = 1  # 0 drew the samples of calibration
OPEN = 96  # a dynamic size other than the batch; fcn, the network that has them, was calibrated with images of 96 × 96
_FLOATS = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}


@dataclass(frozen=True)
class Numbers:
    """By side: `STOCK`, `OVLPT`, for ``sqnr`` also `SIMULATION`, and `EXACT`: ovlpt's integers and scales in float
    arithmetic, so what ovlpt loses against it the kernels lose. They keep sums of two products in 16 bits on a CPU
    without VNNI, round the means of AvgPool, and hidden states to the step of the data.

    ``weighted``: executed layers with weights (convolutions, MatMuls, recurrent ones), ``int8`` of them.
    ``borders``: by type, the other executed layers that read float and write 8 bits, or the other way round, on the way
    of the data: Reorder, Convert, FakeQuantize, and those that change the type besides (Subgraphs, Interpolate).
    ``at_risk``: int8 layers whose weights can overflow 16 bits on this CPU, none on a CPU with VNNI.
    ``sqnr``: dB of each input. ``movement``: of the float model's outputs (`Movement`). ``weights``: how they are
    quantized (`tools.zoo.overflow_fix`).
    """

    weighted: dict[str, int]
    int8: dict[str, int]
    borders: dict[str, dict[str, int]]
    at_risk: dict[str, int]
    sqnr: dict[str, tuple[float, ...]]
    movement: float
    weights: str = WHOLE


def measure_numbers(path: Path, count: int = INPUTS, precision: str = "f32") -> Numbers:
    """Over ``count`` inputs; the float model lies beside ``path`` as NAME_float.xml, and runs in f32. ``precision``: of
    what stock and ovlpt do not compute in int8.

    The simulation is the quantized model in the plugin with its LPT off, which computes FakeQuantize as such.
    """
    core = Core()
    model = core.read_model(path)
    float_model = core.read_model(path.with_name(f"{path.stem}_float.xml"))
    hints = {**_FLOATS, "INFERENCE_PRECISION_HINT": precision, "PERF_COUNT": True}
    sides = {
        STOCK: core.compile_model(model, "CPU", hints),
        OVLPT: ovlpt.compile_model(model, "CPU", hints, core=core),
        EXACT: core.compile_model(_in_floats(model, core), "CPU", {**_FLOATS, **simulation()}),
        SIMULATION: simulate(model, core, properties=_FLOATS),
    }
    reference = core.compile_model(float_model, "CPU", {**_FLOATS, **IN_FLOATS})
    sqnrs: dict[str, list[float]] = {side: [] for side in sides}
    movement = Movement()
    for _, sample in zip(range(count), samples(model), strict=False):
        expected = _outputs(reference, sample)
        movement.add(expected)
        for side, compiled in sides.items():
            sqnrs[side].append(round(sqnr(expected, _outputs(compiled, sample)), 3))
    layers = {side: _layers(sides[side], sample) for side in (STOCK, OVLPT)}
    risks = dict.fromkeys(layers, 0)
    if saturates(core):
        risks = {
            side: len(overflow_risks(ovlpt.transform(model, lowered=False, native_only=side == STOCK, core=core)))
            for side in layers
        }
    return Numbers(
        weighted={side: sum(layer.layer_type in WEIGHTED_LAYERS for layer in each) for side, each in layers.items()},
        int8={side: sum(map(_is_weighted_int8, each)) for side, each in layers.items()},
        borders={
            side: dict(Counter(layer.layer_type for layer in each if _is_border(layer)))
            for side, each in layers.items()
        },
        at_risk=risks,
        sqnr={side: tuple(values) for side, values in sqnrs.items()},
        movement=movement.stillest,
        weights=range_of_weights(model),
    )


def _in_floats(model: Model, core: Core) -> Model:
    """The model transformed by ovlpt, all of whose integers are stored as floats."""
    config = ovlpt.plugin_config.for_device(core, "CPU")
    config = replace(config, params=replace(config.params, update_precisions=False))
    transformed = ovlpt.transform(model, config=config, lowered=False, core=core)
    for node in transformed.get_ordered_ops():
        if isinstance(node, Constant) and precision_of(node.output(0)) in INT8:
            node.output(0).replace(constant(values_of(node).astype(np.float32)).output(0))
    transformed.validate_nodes_and_infer_types()
    return transformed


def samples(model: Model, seed: int = SEED) -> Iterator[Sample]:
    """Inputs without end."""
    generator = np.random.default_rng(seed)
    shapes = {}
    for port in model.inputs:
        sizes = enumerate(port.get_partial_shape())
        shapes[port.get_any_name()] = [
            size.get_length() if size.is_static else OPEN if axis else 1 for axis, size in sizes
        ]
    while True:
        yield draw(generator, shapes)


def _outputs(compiled: CompiledModel, sample: Sample) -> list[np.ndarray]:
    return [np.array(value) for value in compiled(sample).values()]


def _layers(compiled: CompiledModel, sample: Sample) -> list[ovlpt.LayerExecution]:
    """The executed layers that depend on an input."""
    names = {node.get_friendly_name() for node in on_data(compiled.get_runtime_model())}
    return [layer for layer in ovlpt.execution_types(compiled, sample).executed if layer.name in names]


def _is_weighted_int8(layer: ovlpt.LayerExecution) -> bool:
    return layer.layer_type in WEIGHTED_LAYERS and executed_precision(layer) in ("u8", "i8", "int8")


def _is_border(layer: ovlpt.LayerExecution) -> bool:
    sides = {layer.precision, layer.output_precision}
    return layer.layer_type not in WEIGHTED_LAYERS and bool(sides & set(INT8)) and bool(sides & set(REAL))

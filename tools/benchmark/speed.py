"""How fast a network of the zoo is beside stock, and how near its int8 layers come to what the machine can do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device import compile_quantized, execution_types, transform
from ovlpt.device.compile import lpt_properties
from ovlpt.device.execution_types import last_line
from ovlpt.device.properties import LATENCY
from ovlpt.graph.constants import constant
from ovlpt.inspect.bench import bench
from ovlpt.inspect.explain import explanation
from ovlpt.inspect.report.layers import Kind, Layer, read_layers, with_shapes
from ovlpt.openvino_api import Core, Model, Type, opset1
from ovlpt.trace import InputError, Trace
from tools.benchmark.measure import OVLPT, STOCK, samples
from tools.zoo.alive import Sample
from tools.zoo.overflow_fix import WHOLE, range_of_weights

BATCH = 8
SIDES = (512, 1024, 2048)  # of the square MatMuls of which the fastest is the limit
COUNTED = 1e-3  # milliseconds: OpenVINO 2024 counts whole microseconds, none for a layer that takes less


@dataclass(frozen=True)
class Latency:
    """``ratio``: time of ovlpt / time of stock, the median of pairs; ``low``, ``high``: its interval, 95 %."""

    ratio: float
    low: float
    high: float
    blocks: tuple[float, ...]  # the median of each
    pairs: int
    milliseconds: dict[str, float]  # by side: median
    weights: str = WHOLE  # how they are quantized (`tools.zoo.overflow_fix`)


@dataclass(frozen=True)
class Share:
    """Multiply-accumulates a second: ``rate`` of ovlpt's int8 layers together, ``limit`` of the fastest int8 MatMul.

    ``time``: part of the time of all layers that the int8 layers take.
    """

    rate: float
    limit: float
    time: float
    weights: str = WHOLE

    @property
    def share(self) -> float:
        return self.rate / self.limit


class Fixed(InputError):
    """A network whose graph does not let its batch be changed."""


def measure_latency(path: Path, seconds: float, precision: str = "f32") -> Latency:
    """``seconds`` of measuring for each side, over six blocks in which both are compiled anew."""
    model = Core().read_model(path)
    return _measure(model, next(samples(model)), seconds, precision, "latency")


def measure_batch(path: Path, seconds: float, precision: str = "f32") -> Latency:
    """The same for `BATCH` samples at once. Raises `Fixed` where the graph has its batch built in."""
    model = Core().read_model(path)
    several = list(islice(samples(model), BATCH))
    axes = set_batch(model, BATCH)
    together = {name: np.concatenate([sample[name] for sample in several], axis) for name, axis in axes.items()}
    return _measure(model, together, seconds, precision, "latency")


def measure_throughput(path: Path, seconds: float, precision: str = "f32") -> Latency:
    """The same of asynchronous inferences, with the hint THROUGHPUT."""
    model = Core().read_model(path)
    return _measure(model, next(samples(model)), seconds, precision, "throughput")


def _measure(model: Model, sample: Sample, seconds: float, precision: str, hint: str) -> Latency:
    arrays = [sample[port.get_any_name()] for port in model.inputs]
    found = bench(model, inputs=arrays, hint=hint, seconds=seconds, infer_precision=precision, memory=False)
    mine, other = found.sides
    milliseconds = {OVLPT: mine.latency, STOCK: other.latency}
    low, high = found.interval
    return Latency(found.ratio, low, high, found.blocks, mine.iterations, milliseconds, range_of_weights(model))


def set_batch(model: Model, batch: int) -> dict[str, int]:
    """Reshape the model for ``batch`` samples, along the first axis of each input that has the size 1 or any; these axes,
    by the inputs' names.

    Raises `Fixed` where an output then does not hold so many.
    """
    before = [port.get_partial_shape() for port in model.outputs]
    shapes, axes = {}, {}
    for port in model.inputs:
        shape, name = list(port.get_partial_shape()), port.get_any_name()
        axis = next((at for at, size in enumerate(shape) if size.is_dynamic or size.get_length() == 1), None)
        if axis is None:
            raise Fixed(f'the input "{name}" has no axis of one sample; measure another network')
        axes[name] = axis
        shapes[port] = [batch if at == axis else size for at, size in enumerate(shape)]
    try:
        model.reshape(shapes)
    except RuntimeError as error:
        raise Fixed(f"the graph has its batch built in: {last_line(error)}") from error
    for old, port in zip(before, model.outputs, strict=True):
        new = port.get_partial_shape()
        if old.is_static and np.prod(new.to_shape()) != batch * np.prod(old.to_shape()):
            raise Fixed(f'the output "{port.get_any_name()}" does not grow with the batch')
    return axes


def measure_share(path: Path, seconds: float, precision: str = "f32") -> Share:
    """By the counters of ovlpt's layers, the mean of ``seconds`` of inferences; the limit is measured before and after."""
    core = Core()
    model = core.read_model(path)
    limits = [limit(core, seconds / 2, precision)]
    layers = [layer for layer in _layers(model, core, seconds, precision) if layer.executed]
    limits.append(limit(core, seconds / 2, precision))
    low = [layer for layer in layers if layer.kind is Kind.INT8 and layer.int8_multiply_accumulates]
    spent, total = (sum(layer.milliseconds for layer in each) / 1e3 for each in (low, layers))
    work = sum(layer.int8_multiply_accumulates for layer in low)
    return Share(work / spent if spent else 0.0, max(limits), spent / total, range_of_weights(model))


def _layers(model: Model, core: Core, seconds: float, precision: str) -> list[Layer]:
    hints, trace = _counted(precision), Trace()
    transformed = transform(model, "CPU", lowered=False, core=core, trace=trace)
    found = explanation(transformed, trace, False, model)
    ready = transform(transformed, "CPU", core=core, serializable=False)
    compiled = core.compile_model(ready, "CPU", {**hints, **lpt_properties(ready, "CPU")})
    sample = next(samples(model))
    arrays = [sample[port.get_any_name()] for port in model.inputs]
    request = compiled.create_infer_request()
    _run(lambda: request.infer(arrays), seconds)
    return read_layers(compiled, execution_types(compiled, arrays), ready, with_shapes(ready, arrays), found)


def limit(core: Core, seconds: float, precision: str = "f32", sides: tuple[int, ...] | None = None) -> float:
    """Multiply-accumulates a second of the fastest square MatMul of u8 and i8, in either form, `SIDES` large."""
    own, rates = plugin_config.for_device(core, "CPU"), []
    for side in sides or SIDES:
        data = [np.random.default_rng(0).uniform(0, 1, (1, side, side)).astype(np.float32)]
        for form in (False, True):
            config = replace(own, params=replace(own.params, mat_mul_as_convolution=form))
            rates.append(_rate(side, data, config, core, seconds / 6, precision))
    return max(rates)


def _rate(side: int, data: list[np.ndarray], config: PluginConfig, core: Core, seconds: float, precision: str) -> float:
    """Of the first of two MatMuls, whose result is quantized; by its counter."""
    compiled = compile_quantized(_products(side), "CPU", _counted(precision), config, core=core)
    request = compiled.create_infer_request()
    _run(lambda: request.infer(data), seconds)
    layers = [layer for layer in execution_types(compiled, data).executed if layer.is_int8]
    fastest = min(layer.real_time for layer in layers if layer.layer_type in ("FullyConnected", "Convolution"))
    return side**3 / max(fastest, COUNTED) * 1e3


def _products(side: int) -> Model:
    data = opset1.parameter([1, side, side], Type.f32)
    stored = constant(np.random.default_rng(0).integers(-63, 64, (side, side)), "i8")  # no CPU saturates
    value = data
    for _ in range(2):
        quantized = opset1.fake_quantize(value, *map(constant, (0.0, 2.55, 0.0, 2.55)), 256)
        weights = opset1.multiply(opset1.convert(stored, "f32"), constant(0.001))
        value = opset1.relu(opset1.matmul(quantized, weights, False, True))
    return Model([opset1.result(value)], [data], "products")


def _counted(precision: str) -> dict[str, object]:
    return {**LATENCY, "INFERENCE_PRECISION_HINT": precision, "PERF_COUNT": True}


def _run(infer, seconds: float) -> None:
    begin = perf_counter()
    while perf_counter() - begin < seconds:
        infer()

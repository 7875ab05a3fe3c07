"""A small network written down in OpenVINO's operations, built in float and with FakeQuantize from one function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from ovlpt.openvino_api import Core, Model, Node, NodeFactory, Output, PartialShape, opset1, opset6
from tools.ir import save_ir
from tools.zoo.alive import CALIBRATION, Sample, report
from tools.zoo.overflow_fix import save_quantized
from tools.zoo.signals import smooth

Value = Output | Node
Interval = tuple[np.ndarray, np.ndarray]


class Sketch:
    """What a network's function draws on.

    The function is run twice with the same weights. The first time `quantize` only notes the value; the second time
    there are ``intervals``, one for each note in order, and it puts a FakeQuantize there.
    """

    def __init__(self, intervals: Iterable[Interval] | None = None, precision: str = "f32", overflow_fix: bool = False):
        self.precision = precision
        self.overflow_fix = overflow_fix
        self.parameters: list[Node] = []
        self.shapes: dict[str, tuple[int, ...]] = {}  # of the inputs' samples
        self.sinks: list[Node] = []
        self.noted: list[tuple[Output, bool]] = []  # and whether an interval per channel is wanted
        self._intervals = None if intervals is None else iter(intervals)
        self._random = np.random.default_rng(1)

    @property
    def quantized(self) -> bool:
        return self._intervals is not None

    def input(self, name: str, shape: Sequence[int], dynamic: bool = False) -> Output:
        """A float input [1, *shape]; ``dynamic``: axis 1 has this size, the others any."""
        sizes = [-1, shape[0], *(-1 for _ in shape[1:])] if dynamic else [1, *shape]
        node = opset1.parameter(PartialShape(sizes), self.dtype)
        node.set_friendly_name(name)
        node.output(0).get_tensor().set_names({name})
        self.parameters.append(node)
        self.shapes[name] = (1, *shape)
        return node.output(0)

    def op(self, kind: str, *inputs: Value | Sequence[int] | int | np.ndarray, **attributes: object) -> Node:
        """An operation by its name ("opset8.Gather"). Integers become i64 constants, float arrays real ones."""
        opset, name = kind.split(".")
        return NodeFactory(opset).create(name, [self.as_output(value) for value in inputs], attributes)

    def as_output(self, value: Value | Sequence[int] | int | np.ndarray) -> Output:
        if isinstance(value, Output):
            return value
        if isinstance(value, Node):
            return value.output(0)
        values = np.asarray(value)
        return opset1.constant(values.astype(self.dtype if values.dtype.kind == "f" else np.int64)).output(0)

    @property
    def dtype(self) -> type:
        return {"f32": np.float32, "f16": np.float16}[self.precision]

    def state(self, name: str, start: np.ndarray) -> Node:
        """What a variable holds (ReadValue-6), at first ``start``."""
        return opset6.read_value(self.as_output(start).get_node(), name, self.dtype, list(start.shape))

    def quantize(self, value: Value, *, symmetric: bool = False, per_channel: bool = False) -> Output:
        """8 bits over the interval that the value takes. An interval with negative ends gets a zero point, unless it
        is to be ``symmetric``.
        """
        value = self.as_output(value)
        self.noted.append((value, per_channel))
        if self._intervals is None:
            return value
        low, high = next(self._intervals)
        if (low < 0).any():
            if symmetric:
                low = np.minimum(low, -high)
                high = -low * np.float32(127 / 128)
            else:
                scale = (high - low) / 255
                zero_point = np.clip(np.rint(-low / scale), 0, 255)
                low, high = -zero_point * scale, (255 - zero_point) * scale
        else:
            low = np.zeros_like(low)
        return self._fake_quantize(value, low, high, 256)

    def _fake_quantize(self, value: Value, low: np.ndarray, high: np.ndarray, levels: int) -> Output:
        return self.op("opset1.FakeQuantize", value, low, high, low, high, levels=levels).output(0)

    def weights(self, shape: Sequence[int], axes: Sequence[int] = (0,), fan_in: int | None = None) -> Output:
        """Random weights, quantized symmetrically with an interval for each index along ``axes``; with the overflow fix
        they fill half of it.
        """
        fan_in = fan_in or int(np.prod(shape)) // int(np.prod([shape[axis] for axis in axes]))
        values = (self._random.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        if not self.quantized:
            return self.as_output(values)
        reduced = tuple(axis for axis in range(len(shape)) if axis not in axes)
        high = np.abs(values).max(reduced, keepdims=True) * (2 if self.overflow_fix else 1)
        return self._fake_quantize(self.as_output(values), -high, high, 255)

    def constant(self, shape: Sequence[int], low: float, high: float) -> np.ndarray:
        """Random numbers that are not quantized: biases, slopes."""
        return self._random.uniform(low, high, shape).astype(np.float32)

    def channels(self, data: Value) -> int:
        return self.as_output(data).get_partial_shape()[1].get_length()

    def convolution(self, data: Value, outputs: int, kernel: int = 3, stride: int = 1, pad: int | None = None) -> Node:
        """With a bias; the output has the size of the input where ``pad`` is not given."""
        channels = self.channels(data)
        settings = window(stride, kernel // 2 if pad is None else pad) | {"dilations": [1, 1]}
        node = self.op("opset1.Convolution", data, self.weights((outputs, channels, kernel, kernel)), **settings)
        return self.op("opset1.Add", node, self.constant((1, outputs, 1, 1), -0.3, 0.3))

    def linear(self, data: Value, outputs: int) -> Node:
        """A fully connected layer over the last axis."""
        inputs = self.as_output(data).get_partial_shape()[-1].get_length()
        node = self.op("opset1.MatMul", data, self.weights((outputs, inputs)), transpose_a=False, transpose_b=True)
        return self.op("opset1.Add", node, self.constant((1,) * (len(node.shape) - 1) + (outputs,), -0.3, 0.3))

    def pool(self, kind: str, data: Value, size: int, stride: int, pad: int = 0) -> Node:
        """MaxPool or AvgPool (padding is not averaged) over squares."""
        more = {"exclude-pad": True, "rounding_type": "floor"} if kind == "AvgPool" else {}
        return self.op(f"opset1.{kind}", data, kernel=[size] * 2, **window(stride, pad), **more)

    def relu(self, data: Value) -> Node:
        return self.op("opset1.Relu", data)


def window(stride: int = 1, pad: int = 0) -> dict[str, object]:
    """Attributes of a convolution or pool over two axes."""
    return {"strides": [stride] * 2, "pads_begin": [pad] * 2, "pads_end": [pad] * 2}


Draw = Callable[[Sketch], Value | Sequence[Value]]


def draw(network: Draw, sketch: Sketch) -> Model:
    results = network(sketch)
    results = results if isinstance(results, tuple | list) else [results]
    results = [opset1.result(result) for result in results]
    for index, result in enumerate(results):
        result.output(0).get_tensor().set_names({f"output{index}"})
    return Model(results, sketch.sinks, sketch.parameters, network.__name__)


def _samples(sketch: Sketch) -> list[Sample]:
    """Smooth signals for every input."""
    rng = np.random.default_rng(0)

    def signal(shape: tuple[int, ...]) -> np.ndarray:
        whole = shape[1:] if len(shape) > 2 else (1, *shape[1:])
        return smooth(rng, whole).reshape(shape).astype(sketch.dtype)

    return [{name: signal(shape) for name, shape in sketch.shapes.items()} for _ in range(CALIBRATION)]


def both(network: Draw, precision: str = "f32", overflow_fix: bool = False) -> tuple[Model, Model, list[Sample]]:
    """The network in float, the quantized one, and the samples that gave the intervals."""
    sketch = Sketch(precision=precision)
    draw(network, sketch)
    samples = _samples(sketch)
    watched = Model([opset1.result(value) for value, _ in sketch.noted], sketch.sinks, sketch.parameters, "noted")
    compiled = Core().compile_model(watched, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    seen = [[np.array(value) for value in compiled(sample).values()] for sample in samples]
    intervals = []
    for values, (_, per_channel) in zip(zip(*seen, strict=True), sketch.noted, strict=True):
        batch = np.concatenate(values)
        axes = tuple(axis for axis in range(batch.ndim) if not per_channel or axis != 1)
        intervals.append(tuple(f(batch, axis=axes, keepdims=per_channel).astype(np.float32) for f in (np.min, np.max)))
    # the watched model's results are gone, so the float network can be had as it was
    quantized = Sketch(intervals, precision, overflow_fix)
    return draw(network, Sketch(precision=precision)), draw(network, quantized), samples


def build(name: str, network: Draw, folder: Path, overflow_fix: bool = False, precision: str = "f32") -> str:
    """Write ``folder/name.xml`` (quantized) and ``folder/name_float.xml``; return a line about them."""
    model, quantized, samples = both(network, precision, overflow_fix)
    line = report(name, model, quantized, samples[:4])
    save_ir(model, folder / f"{name}_float.xml")
    save_quantized(quantized, folder / f"{name}.xml", overflow_fix)
    return line

"""From a layer's accumulator to its result: the plugin's fused chain, or a framework's requantization."""

from __future__ import annotations

import numpy as np

from ovlpt.fake_quantize import FakeQuantize, definition, predict
from ovlpt.fake_quantize.chain import Add, Clip, Multiply, Operation, Relu
from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.interpreter.accumulators import group_kind, is_single
from ovlpt.interpreter.evaluation import evaluate
from ovlpt.interpreter.layer import FUNCTIONS, Layer
from ovlpt.openvino_api import Node
from ovlpt.precisions import INT8, NUMPY
from ovlpt.reference import Quantization, quantize, weighted_rule
from ovlpt.reference.requantization import RULES
from ovlpt.trace import InputError


def finish(layer: Layer, accumulator: np.ndarray, channels: int, method: str) -> np.ndarray:
    """The layer's result, of the type of its end: u8, i8 or float32.

    ``accumulator``: int64, of the output's shape. ``channels``: of the data.
    Raises `InputError` where a method other than "openvino" has no such layer.
    """
    if method != "openvino" and layer.quantizer is not None and not _has_function(layer):
        return _requantized(layer, accumulator, channels, method)
    x = accumulator.astype(np.float32)
    steps = None if method != "openvino" or _has_function(layer) else _steps(layer)
    if steps is None:
        for node in layer.chain:
            x = apply(node, x, method)
        return x
    return _fused(layer, steps, x)


def apply(node: Node, x: np.ndarray, method: str) -> np.ndarray:
    """One node of a chain on float32 numbers, each operation rounded to float32."""
    constants = [constant_above(value) for value in node.input_values()[1:]]
    match node.get_type_name():
        case "Add":
            return x + constants[0]
        case "Subtract":
            return x - constants[0]
        case "Multiply":
            return x * constants[0]
        case "Convert":
            return x  # to f64 and back, around what the plugin computes in f32
        case "Relu":
            return np.maximum(x, np.float32(0))
        case "PRelu":
            return np.where(x >= 0, x, x * slope_of(node, x.ndim))
        case "Clamp":
            return np.clip(x, *clamp_ends(node))
        case "FakeQuantize":
            return fake_quantized(node, x, method)
    return evaluate(node, [x, *constants])[0]


def slope_of(node: Node, rank: int) -> np.ndarray:
    """A PRelu's slope, one value or one per channel, shaped to broadcast against its data."""
    slope = constant_above(node.input_value(1))
    return slope.reshape(-1, *(1,) * (rank - 2)) if slope.ndim == 1 and slope.size > 1 and rank > 1 else slope


def clamp_ends(node: Node) -> tuple[np.float32, np.float32]:
    attributes = node.get_attributes()
    return np.float32(attributes["min"]), np.float32(attributes["max"])


def fake_quantized(node: Node, x: np.ndarray, method: str, ends: list[np.ndarray] | None = None) -> np.ndarray:
    """A FakeQuantize by the definition or, per tensor, a framework's own rounding, in the output's type."""
    ends = ends or [constant_above(value) for value in node.input_values()[1:]]
    levels = node.get_attributes()["levels"]
    if method != "openvino" and levels == 256 and all(end.size == 1 for end in ends):
        low, high, out_low, out_high = (end.reshape(()) for end in ends)
        quantization = _output(low, high, *_stored(node, out_low))
        return _values(node, quantize(x, quantization, method), quantization, out_low, out_high)
    low, high, out_low, out_high = ends
    return store(node, definition.fake_quantize(x, low, high, out_low, out_high, levels))


def store(node: Node, x: np.ndarray) -> np.ndarray:
    """Round and saturate where the node's output is an integer type."""
    precision = precision_of(node.output(0))
    if precision not in INT8:
        return x.astype(NUMPY.get(precision, np.float32), copy=False)
    info = np.iinfo(NUMPY[precision])
    return np.clip(np.rint(x), info.min, info.max).astype(NUMPY[precision])


def _has_function(layer: Layer) -> bool:
    return any(node.get_type_name() in FUNCTIONS for node in layer.chain)


def _vector(values: np.ndarray, axis: int) -> np.ndarray | None:
    """One value, or one per channel; None for anything else."""
    if values.size == 1:
        return values.reshape(1)
    return values.reshape(-1) if -axis <= values.ndim and values.shape[axis] == values.size else None


def _steps(layer: Layer) -> list[Operation | FakeQuantize] | None:
    """The chain as basic operations; None where a constant is not per tensor or per channel."""
    steps: list[Operation | FakeQuantize] = []
    for node in layer.chain:
        vectors = [_vector(constant_above(value), layer.channel_axis) for value in node.input_values()[1:]]
        if node.get_type_name() == "PRelu":
            vectors = [constant_above(node.input_value(1)).reshape(-1)]
        if any(vector is None for vector in vectors):
            return None
        if node.get_type_name() == "FakeQuantize" and (vectors[0] >= vectors[1]).any():
            return None  # a dead channel: no scale to compose
        match node.get_type_name():
            case "Add":
                steps.append(Add(vectors[0]))
            case "Subtract":
                steps.append(Add(-vectors[0]))
            case "Multiply":
                steps.append(Multiply(vectors[0]))
            case "Relu" | "PRelu":
                steps.append(Relu(*vectors))
            case "Clamp":
                steps.append(Clip(*clamp_ends(node)))
            case "FakeQuantize":
                il, ih, ol, oh = vectors
                steps.append(FakeQuantize(il, ih, ol, oh, node.get_attributes()["levels"]))
    return steps


def _fused(layer: Layer, steps: list[Operation | FakeQuantize], x: np.ndarray) -> np.ndarray:
    """What the CPU plugin makes of a lowered layer: a scale on the accumulator, oneDNN's post-operations.

    Lowering puts a Clamp over all floats after the layer. It keeps the plugin from taking the chain's first
    Multiply and Add for the layer's own scale and bias; common optimizations move them into the FakeQuantize.
    """
    largest = np.finfo(np.float32).max
    guarded = [Clip(-largest, largest), *_moved([step for step in steps if not _is_guard(step)])]
    precision = precision_of(layer.end.output(0))
    attributes = predict(guarded, int8=True, store=precision if precision in INT8 else None)
    return store(layer.end, attributes.chain().run(x, axis=layer.channel_axis))


def _moved(steps: list[Operation | FakeQuantize]) -> list[Operation | FakeQuantize]:
    """Add and Multiply by positive numbers directly before the FakeQuantize, as part of its input range."""
    if not steps or not isinstance(steps[-1], FakeQuantize):
        return steps
    front, quantizer = steps[:-1], steps[-1]
    low, high = quantizer.input_low, quantizer.input_high
    while front:
        match front[-1]:
            case Add(shift):
                low, high = low - shift, high - shift
            case Multiply(scale) if (scale > 0).all():
                low, high = low / scale, high / scale
            case _:
                break
        front.pop()
    return [*front, FakeQuantize(low, high, quantizer.output_low, quantizer.output_high, quantizer.levels)]


def _is_guard(step: Operation | FakeQuantize) -> bool:
    largest = np.finfo(np.float32).max
    return isinstance(step, Clip) and bool((step.low <= -largest).all() and (step.high >= largest).all())


def _stored(node: Node, out_low: np.ndarray) -> tuple[str, int]:
    """The integer type of the levels and the lowest one's integer; u8 from 0 where the output is real."""
    precision = precision_of(node.output(0))
    return (precision, int(np.rint(np.ravel(out_low)[0]))) if precision in INT8 else ("u8", 0)


def _output(low: np.ndarray, high: np.ndarray, precision: str, lowest: int) -> Quantization:
    step = (high - low) / np.float32(255)
    return Quantization(step, int(np.rint(lowest - float(low) / float(step))), precision)


def _values(
    node: Node, q: np.ndarray, quantization: Quantization, out_low: np.ndarray, out_high: np.ndarray
) -> np.ndarray:
    if precision_of(node.output(0)) == quantization.precision:
        return q
    return q.astype(np.float32) * ((out_high - out_low) / np.float32(255)) + out_low


def _requantized(layer: Layer, accumulator: np.ndarray, channels: int, method: str) -> np.ndarray:
    """Multiply, Add, Relu and a FakeQuantize of 256 levels as one requantization of accumulator plus bias."""
    scale, bias, has_relu = np.float32(1), np.float32(0), False
    quantizer = layer.quantizer
    low, high, out_low, out_high = (constant_above(value) for value in quantizer.input_values()[1:])
    for node in layer.chain[:-1]:
        constant = constant_above(node.input_value(1)) if node.get_input_size() > 1 else None
        match node.get_type_name():
            case "Multiply" if not has_relu:
                scale, bias = scale * constant, bias * constant
            case "Add" if not has_relu:
                bias = bias + constant
            case "Subtract" if not has_relu:
                bias = bias - constant
            case "Relu":
                has_relu = True
            case "Clamp" if clamp_ends(node)[0] <= low.min() and clamp_ends(node)[1] >= high.max():
                pass  # the FakeQuantize clips tighter
            case "Clamp" if clamp_ends(node)[0] == 0 and clamp_ends(node)[1] >= high.max():
                has_relu = True
            case kind:
                raise InputError(
                    f'layer "{layer.name}" has a {kind} that {method} does not fuse; use the method openvino'
                )
    if quantizer.get_attributes()["levels"] != 256 or (scale <= 0).any():
        raise InputError(
            f'layer "{layer.name}" does not have 256 levels, or has a negative scale; use the method openvino'
        )
    if low.size > 1:  # the scale per channel has moved into the FakeQuantize
        scale, bias, low, high = scale / high, bias / high, low / high, np.float32(1)
        if np.ptp(low) > 1e-5:
            raise InputError(f'layer "{layer.name}" has a zero point per channel at its end; use the method openvino')
        low = np.ravel(low)[0]
    quantization = _output(np.reshape(low, ()), np.reshape(high, ()), *_stored(quantizer, out_low))
    kind, groups = group_kind(layer.node, channels)
    rule = weighted_rule(
        method, kind, layer.weights_precision, np.size(scale) > 1, single=is_single(layer.node), groups=groups
    )
    addend = np.rint(np.float64(bias) / np.float64(scale)).astype(np.int64)
    q = RULES[rule](accumulator + addend, np.float32(1), np.asarray(scale, np.float32), quantization)
    if has_relu:
        q = np.maximum(q, quantization.dtype.type(quantization.zero_point))
    return _values(quantizer, q, quantization, out_low, out_high)

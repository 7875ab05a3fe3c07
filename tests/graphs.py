"""Small graphs for tests: a quantized input before one operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ovlpt.device.properties import simulation
from ovlpt.graph.constants import precision_of
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.openvino_api import Core, Model, Node, Output, PartialShape, openvino_module, opset1
from ovlpt.precisions import is_low

opset2, opset3, opset4, opset5 = (openvino_module(f"opset{version}") for version in (2, 3, 4, 5))
opset6, opset7, opset8, opset12 = (openvino_module(f"opset{version}") for version in (6, 7, 8, 12))
opset13, opset14 = (openvino_module(f"opset{version}") for version in (13, 14))
NodeFactory = openvino_module("utils.node_factory").NodeFactory

CORE = Core()


def f32(values) -> Node:
    return opset1.constant(np.asarray(values, np.float32))


def i64(*values: int) -> Node:
    return opset1.constant(np.asarray(values, np.int64))


def parameter(shape, name: str = "x", precision: type = np.float32) -> Node:
    node = opset1.parameter(PartialShape(list(shape)), precision)
    node.set_friendly_name(name)
    return node


def fake_quantize(data, low, high, levels: int = 256, name: str = "fq") -> Node:
    """Input and output interval are the same."""
    node = opset1.fake_quantize(data, f32(low), f32(high), f32(low), f32(high), levels)
    node.set_friendly_name(name)
    return node


def dequantization(data, scale=0.1, zero_point=None, name: str = "dq") -> Node:
    """``Convert → Subtract → Multiply`` over integers."""
    node = opset1.convert(data, "f32")
    if zero_point is not None:
        node = opset1.subtract(node, f32(zero_point))
    node = opset1.multiply(node, f32(scale))
    node.set_friendly_name(name)
    return node


def integers(shape, precision: type = np.int8, seed: int = 0) -> Node:
    """A constant of random integers."""
    limits = np.iinfo(precision)
    return opset1.constant(np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(precision))


def weights(shape, scale, zero_point=None) -> Node:
    return dequantization(integers(shape), scale, zero_point, "w")


def model(*results: Node | Output) -> Model:
    """The model over all parameters above ``results``; the node before a result is called y (y0, y1 …)."""
    parameters, seen, pending = [], set(), [r if isinstance(r, Node) else r.get_node() for r in results]
    while pending:
        node = pending.pop()
        if node.get_instance_id() in seen:
            continue
        seen.add(node.get_instance_id())
        if node.get_type_name() == "Parameter":
            parameters.append(node)
        pending += [value.get_node() for value in node.input_values()]
    parameters.sort(key=lambda node: node.get_friendly_name())
    for index, result in enumerate(results):
        node = result if isinstance(result, Node) else result.get_node()
        node.set_friendly_name(f"y{index}" if len(results) > 1 else "y")
    return Model([_output(result) for result in results], parameters, "model")


def run(graph: Model, inputs: list[np.ndarray], steps: int = 1) -> list[np.ndarray]:
    """Executed by the CPU plugin in f32, without its own low precision pass, from a copy of the graph.

    The plugin's own optimizations do not expect mixed element types, so type-relaxed operations get converted inputs.
    Weights are given in f32: 2024.6 without its low precision pass reads small i8 weights of a MatMul wrongly.
    """
    graph = graph.clone()
    if any(port.get_partial_shape().is_dynamic for port in graph.inputs):
        graph.reshape({port: list(value.shape) for port, value in zip(graph.inputs, inputs, strict=True)})
    for node in graph.get_ordered_ops():
        if node.get_type_name() == "Convert" or is_relaxed(node):
            for port, value in enumerate(node.input_values()):
                is_constant = value.get_node().get_type_name() == "Constant"
                if is_low(precision_of(value)) and (is_constant or is_relaxed(node)):
                    real = f32(value.get_node().data) if is_constant else opset1.convert(value, "f32")
                    node.input(port).replace_source_output(real.output(0))
    compiled = CORE.compile_model(graph, "CPU", simulation())
    for _ in range(steps - 1):  # variables remember
        compiled([value[::-1] for value in inputs])
    return [np.array(value) for value in compiled(inputs).values()]


@dataclass(frozen=True)
class Case:
    """One operation on data of a shape; ``build`` gets the quantized data."""

    name: str
    shape: tuple[int, ...]
    build: Callable[[Node], Node]

    def __str__(self) -> str:
        return self.name


def interpolate(data: Node, axes=(2, 3), **changes) -> Node:
    attributes = dict(
        mode="nearest", shape_calculation_mode="sizes", pads_begin=[0, 0, 0, 0], pads_end=[0, 0, 0, 0], antialias=False,
        coordinate_transformation_mode="asymmetric", nearest_mode="floor", cube_coeff=-0.75,
    )  # fmt: skip
    inputs = [data, i64(8, 8), f32([2, 2]), i64(*axes)]
    return NodeFactory("opset4").create("Interpolate", [_output(value) for value in inputs], attributes | changes)


def interpolate_11(data: Node, axes=(2, 3), **changes) -> Node:
    attributes = interpolate(data, **changes).get_attributes()
    inputs = [data, i64(8, 8), i64(*axes)]
    return NodeFactory("opset11").create("Interpolate", [_output(value) for value in inputs], attributes)


def _output(value: Node | Output) -> Output:
    return value.output(0) if isinstance(value, Node) else value


def _pad(data: Node, begin, end, mode="constant", value=0.0, opset=opset1) -> Node:
    return opset.pad(data, i64(*begin), i64(*end), mode, f32(value))


def _slice(data: Node, begin, end, strides, **masks) -> Node:
    count = len(begin)
    zero = [0] * count
    masks = {"begin_mask": zero, "end_mask": zero} | masks
    return opset1.strided_slice(data, i64(*begin), i64(*end), i64(*strides), **masks)


_IMAGE = (2, 4, 4, 4)

CASES = (
    Case("Add", _IMAGE, lambda x: opset1.add(x, fake_quantize(_source(x), 0.0, 2.55, name="other"))),
    Case("Add float", _IMAGE, lambda x: opset1.add(x, _source(x))),
    Case("Add constant", _IMAGE, lambda x: opset1.add(x, f32(np.linspace(-1, 1, 4).reshape(1, 4, 1, 1)))),
    Case("ConvolutionBackpropData", _IMAGE, lambda x: _deconvolution(x)),
    Case("FakeQuantize", _IMAGE, lambda x: fake_quantize(x, 0.0, 1.3)),
    Case("GRUSequence", (2, 3, 4), lambda x: _recurrent(x, "GRUSequence", 3, 2)),
    Case("Interpolate 1", _IMAGE, lambda x: _interpolate_1(x, "nearest")),
    Case("Interpolate 1 linear", _IMAGE, lambda x: _interpolate_1(x, "linear")),
    Case("LSTMSequence", (2, 3, 4), lambda x: _recurrent(x, "LSTMSequence", 4, 3)),
    Case("MVN 2", _IMAGE, lambda x: opset2.mvn(x, False, True, 1e-9)),
    Case("MVN 2 across channels", _IMAGE, lambda x: opset2.mvn(x, True, True, 1e-9)),
    Case("Multiply", _IMAGE, lambda x: opset1.multiply(x, fake_quantize(_source(x), 0.0, 2.55, name="other"))),
    Case("Multiply constant", _IMAGE, lambda x: opset1.multiply(x, f32(np.linspace(1, 2, 4).reshape(1, 4, 1, 1)))),
    Case("AvgPool", _IMAGE, lambda x: opset1.avg_pool(x, [1, 1], [0, 0], [0, 0], [2, 2], True)),
    Case("AvgPool padded", _IMAGE, lambda x: opset1.avg_pool(x, [1, 1], [1, 1], [1, 1], [2, 2], False)),
    Case("AvgPool 14", _IMAGE, lambda x: opset14.avg_pool(x, [2, 2], [1, 1], [1, 1], [3, 3], True, "ceil")),
    Case("BatchToSpace", (4, 4, 4, 4), lambda x: opset2.batch_to_space(x, i64(1, 1, 2, 2), i64(0, 0, 0, 0), i64(0, 0, 0, 0))),
    Case("Broadcast", (2, 4, 1, 1), lambda x: opset1.broadcast(x, i64(2, 4, 3, 3), i64(0, 1, 2, 3), "explicit")),
    Case("Broadcast 3", (2, 4, 1, 1), lambda x: opset3.broadcast(x, i64(2, 4, 3, 3), i64(0, 1, 2, 3), "explicit")),
    Case("Broadcast rank", (2, 4), lambda x: opset3.broadcast(x, i64(2, 4, 3, 3), i64(0, 1), "explicit")),
    Case("Broadcast after", (2, 4), lambda x: opset3.broadcast(x, i64(3, 2, 4), i64(1, 2), "explicit")),
    Case("Broadcast numpy", (2, 4, 1, 1), lambda x: opset3.broadcast(x, i64(2, 4, 3, 3), broadcast_spec="numpy")),
    Case("Broadcast both ways", (2, 4), lambda x: opset3.broadcast(x, i64(3, 1, 1), broadcast_spec="bidirectional")),
    Case("Clamp", _IMAGE, lambda x: opset1.clamp(x, 0.1, 1.0)),
    Case("Concat", _IMAGE, lambda x: opset1.concat([x, x], 1)),
    Case("Concat space", _IMAGE, lambda x: opset1.concat([x, x], 2)),
    Case("Convolution", _IMAGE, lambda x: _convolution(x, [3, 4, 1, 1], [3, 1, 1, 1])),
    Case("Convolution zero point", _IMAGE, lambda x: _convolution(x, [3, 4, 1, 1], 0.01, 3.0)),
    Case("GroupConvolution", _IMAGE, lambda x: _group_convolution(x)),
    Case("GroupConvolutionBackpropData", _IMAGE, lambda x: opset1.group_convolution_backprop_data(x, _group_weights(), [2, 2])),
    Case("DepthToSpace", _IMAGE, lambda x: opset1.depth_to_space(x, "blocks_first", 2)),
    Case("Gather space", _IMAGE, lambda x: opset8.gather(x, i64(0, 2), opset1.constant(np.int64(2)))),
    Case("Gather channels", _IMAGE, lambda x: opset7.gather(x, i64(3, 1), opset1.constant(np.int64(1)))),
    Case("Gather 1", _IMAGE, lambda x: opset1.gather(x, i64(3, 1, 0), opset1.constant(np.int64(-3)))),
    Case("GatherElements space", _IMAGE, lambda x: opset6.gather_elements(x, _places(2, 4, 3, 4), 2)),
    Case("GatherElements channels", _IMAGE, lambda x: opset6.gather_elements(x, _places(2, 3, 4, 4), -3)),
    Case("Interpolate 4", _IMAGE, interpolate),
    Case("Interpolate linear", _IMAGE, lambda x: interpolate(x, mode="linear_onnx")),
    Case("Interpolate linear 11", _IMAGE, lambda x: interpolate_11(x, mode="linear_onnx")),
    Case("Interpolate 11", _IMAGE, lambda x: interpolate_11(x)),
    Case("Interpolate cubic", _IMAGE, lambda x: interpolate(x, mode="cubic", coordinate_transformation_mode="half_pixel")),
    Case("Interpolate corners", _IMAGE, lambda x: interpolate(x, coordinate_transformation_mode="align_corners")),
    Case("Interpolate channels", _IMAGE, lambda x: interpolate_11(x, (0, 1))),
    Case("MVN channels kept", _IMAGE, lambda x: opset6.mvn(x, i64(2, 3), True, 1e-9, "inside_sqrt")),
    Case("MVN all", _IMAGE, lambda x: opset6.mvn(x, i64(1, 2, 3), True, 1e-9, "inside_sqrt")),
    Case("MVN last", _IMAGE, lambda x: opset6.mvn(x, i64(3), False, 1e-9, "inside_sqrt")),
    Case("MatMul", (2, 3, 4), lambda x: opset1.matmul(x, weights([5, 4], np.full((5, 1), 0.01)), False, True)),
    Case("MatMul 2", (3, 4), lambda x: opset1.matmul(x, weights([4, 5], 0.02), False, False)),
    Case("MatMul transposed", (2, 4, 3), lambda x: opset1.matmul(x, weights([4, 5], 0.02), True, False)),
    Case("MatMul of data", (2, 128, 128), lambda x: opset1.matmul(x, x, False, False)),
    Case("MatMul of data transposed", (2, 3, 128), lambda x: opset1.matmul(x, x, False, True)),
    Case("MatMul of data both transposed", (2, 128, 128), lambda x: opset1.matmul(x, x, True, True)),
    Case("MatMul of short data", (2, 3, 4), lambda x: opset1.matmul(x, x, False, True)),
    Case("MatMul zero point", (2, 3, 128), lambda x: opset1.matmul(x, weights([5, 128], 0.01, 90.0), False, True)),
    Case("MaxPool", _IMAGE, lambda x: opset1.max_pool(x, [1, 1], [0, 0], [0, 0], [2, 2])),
    Case("MaxPool 8", _IMAGE, lambda x: opset8.max_pool(x, [1, 1], [1, 2], [0, 1], [0, 1], [2, 2]).output(0)),
    Case("MaxPool 14", _IMAGE, lambda x: opset14.max_pool(x, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3], "ceil_torch").output(0)),
    Case("Maximum", _IMAGE, lambda x: opset1.maximum(x, opset1.max_pool(x, [1, 1], [1, 1], [1, 1], [3, 3]))),
    Case("Minimum constant", _IMAGE, lambda x: opset1.minimum(f32(0), x)),
    Case("NormalizeL2", _IMAGE, lambda x: opset1.normalize_l2(x, i64(1), 1e-9, "add")),
    Case("NormalizeL2 all", _IMAGE, lambda x: opset1.normalize_l2(x, i64(1, 2, 3), 1e-9, "max")),
    Case("PRelu", _IMAGE, lambda x: opset1.prelu(x, f32([0.1, 0.2, 0.3, 0.4]))),
    Case("Pad space", _IMAGE, lambda x: _pad(x, (0, 0, 1, 1), (0, 0, 1, 1))),
    Case("Pad channels", _IMAGE, lambda x: _pad(x, (0, 1, 0, 0), (0, 2, 0, 0))),
    Case("Pad one axis", _IMAGE, lambda x: _pad(x, (0, 0, 0, 1), (0, 0, 0, 0), opset=opset12)),
    Case("Pad with 2", _IMAGE, lambda x: _pad(x, (0, 1, 0, 0), (0, 0, 0, 0), value=2.0)),
    Case("Pad edge", _IMAGE, lambda x: _pad(x, (0, 1, 1, 0), (0, 0, 1, 0), "edge")),
    Case("Pad reflect", _IMAGE, lambda x: _pad(x, (0, 1, 0, 0), (0, 1, 0, 0), "reflect")),
    Case("Pad symmetric", _IMAGE, lambda x: _pad(x, (0, 0, 2, 0), (0, 1, 0, 0), "symmetric")),
    Case("Pad crops", _IMAGE, lambda x: _pad(x, (0, -1, 0, -1), (0, 0, 0, 0), opset=opset12)),
    Case("Pad crops and adds", _IMAGE, lambda x: _pad(x, (0, -1, 0, 0), (0, 2, 0, 0), "edge", opset=opset12)),
    Case("ReduceMax space", _IMAGE, lambda x: opset1.reduce_max(x, i64(2, 3), True)),
    Case("ReduceMean space", _IMAGE, lambda x: opset1.reduce_mean(x, i64(2, 3), False)),
    Case("ReduceMean channels", _IMAGE, lambda x: opset1.reduce_mean(x, i64(1), True)),
    Case("ReduceMin space", _IMAGE, lambda x: opset1.reduce_min(x, i64(-1), False)),
    Case("ReduceSum space", _IMAGE, lambda x: opset1.reduce_sum(x, i64(2, 3), False)),
    Case("ReduceSum channels", _IMAGE, lambda x: opset1.reduce_sum(x, i64(1), False)),
    Case("Relu", _IMAGE, opset1.relu),
    Case("Reshape flat", _IMAGE, lambda x: opset1.reshape(x, i64(0, -1), True)),
    Case("Reshape space", _IMAGE, lambda x: opset1.reshape(x, i64(0, 0, 16), True)),
    Case("Reshape groups", _IMAGE, lambda x: opset1.reshape(x, i64(0, 2, 2, 4, 4), True)),
    Case("Reshape images", _IMAGE, lambda x: opset1.reshape(x, i64(-1, 2, 4, 4), False)),
    Case("Roll space", _IMAGE, lambda x: opset7.roll(x, i64(1, 2), i64(2, 3))),
    Case("Roll channels", _IMAGE, lambda x: opset7.roll(x, i64(1, -1), i64(1, -1))),
    Case("Select", _IMAGE, lambda x: opset1.select(_checks(), x, opset1.transpose(x, i64(0, 1, 3, 2)))),
    Case("Select zero", _IMAGE, lambda x: opset1.select(_checks(), f32(0), x)),
    Case("ShuffleChannels", _IMAGE, lambda x: opset3.shuffle_channels(x, 1, 2)),
    Case("Slice", _IMAGE, lambda x: opset8.slice(x, i64(1), i64(3), i64(1), i64(2))),
    Case("Slice channels", _IMAGE, lambda x: opset8.slice(x, i64(1), i64(3), i64(1), i64(1))),
    Case("SpaceToBatch", _IMAGE, lambda x: opset2.space_to_batch(x, i64(1, 1, 2, 2), i64(0, 0, 0, 0), i64(0, 0, 0, 0))),
    Case("SpaceToBatch padded", _IMAGE, lambda x: opset2.space_to_batch(x, i64(1, 1, 2, 2), i64(0, 0, 2, 0), i64(0, 0, 0, 0))),
    Case("Split channels", _IMAGE, lambda x: opset1.split(x, opset1.constant(np.int64(1)), 2).output(1)),
    Case("Split space", _IMAGE, lambda x: opset1.split(x, opset1.constant(np.int64(2)), 2).output(0)),
    Case("Squeeze", (2, 4, 1, 4), lambda x: opset1.squeeze(x, i64(2))),
    Case("Squeeze end", (2, 4, 4, 1), lambda x: opset1.squeeze(x, i64(-1))),
    Case("Squeeze kept", _IMAGE, lambda x: opset1.squeeze(x, i64(1, 3))),
    Case("StridedSlice space", _IMAGE, lambda x: _slice(x, (0, 0, 1, 0), (0, 0, 3, 4), (1, 1, 1, 2), begin_mask=[1, 1, 0, 0], end_mask=[1, 1, 0, 0])),
    Case("StridedSlice channels", _IMAGE, lambda x: _slice(x, (0, 1), (0, 4), (1, 2), begin_mask=[1, 0], end_mask=[1, 0])),
    Case("StridedSlice one", _IMAGE, lambda x: _slice(x, (0, 0, 1), (0, 0, 2), (1, 1, 1), begin_mask=[1, 1, 0], end_mask=[1, 1, 0], shrink_axis_mask=[0, 0, 1])),
    Case("Tile space", _IMAGE, lambda x: opset1.tile(x, i64(2, 3))),
    Case("Tile channels", _IMAGE, lambda x: opset1.tile(x, i64(2, 1, 2, 1, 1))),
    Case("Transpose space", _IMAGE, lambda x: opset1.transpose(x, i64(0, 1, 3, 2))),
    Case("Transpose tokens", (2, 6, 4), lambda x: opset1.transpose(x, i64(0, 2, 1))),
    Case("Transpose channels", _IMAGE, lambda x: opset1.transpose(x, i64(0, 2, 3, 1))),
    Case("Unsqueeze", (2, 4, 4), lambda x: opset1.unsqueeze(x, i64(2))),
    Case("Unsqueeze front", (2, 4, 4), lambda x: opset1.unsqueeze(x, i64(1))),
    Case("VariadicSplit", _IMAGE, lambda x: opset1.variadic_split(x, opset1.constant(np.int64(1)), i64(1, 3)).output(1)),
)  # fmt: skip


def _places(*shape: int) -> Node:
    return opset1.constant(np.random.default_rng(0).integers(0, 4, shape))


def _convolution(data: Node, shape, scale, zero_point=None) -> Node:
    scale = np.linspace(0.01, 0.03, int(np.prod(scale))).reshape(scale) if isinstance(scale, list) else scale
    return opset1.convolution(data, weights(shape, scale, zero_point), [1, 1], [0, 0], [0, 0], [1, 1])


def _group_weights() -> Node:
    return weights([2, 2, 3, 2, 2], np.linspace(0.01, 0.04, 6).reshape(2, 1, 3, 1, 1))


def _checks() -> Node:
    return opset1.constant(np.indices((4, 4)).sum(0) % 2 == 0)


def _source(quantized: Node) -> Output:
    """What was quantized, here turned round so that two branches differ."""
    return opset1.multiply(quantized.input_value(0), f32(-1.0)).output(0)


def _deconvolution(data: Node) -> Node:
    kernel = weights([4, 3, 2, 2], np.linspace(0.01, 0.03, 3).reshape(1, 3, 1, 1))
    return opset1.convolution_backprop_data(data, kernel, [2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1])


def _interpolate_1(data: Node, mode: str) -> Node:
    attributes = dict(
        axes=[2, 3], mode=mode, align_corners=False, antialias=False, pads_begin=[0] * 4, pads_end=[0] * 4
    )
    return NodeFactory("opset1").create("Interpolate", [data.output(0), i64(8, 8).output(0)], attributes)


def _recurrent(data: Node, kind: str, gates: int, activations: int) -> Output:
    """Hidden size 3 over data [batch, steps, 4]; weights are real numbers."""
    rng = np.random.default_rng(0)
    first = opset8.slice(data, i64(0), i64(1), i64(1), i64(1))
    hidden = opset8.slice(first, i64(0), i64(3), i64(1), i64(2))  # of the same batch, whatever it is
    batch = data.get_output_partial_shape(0)[0]
    sizes = opset8.gather(opset3.shape_of(data), i64(0), opset1.constant(np.int64(0)))
    lengths = opset3.broadcast(i64(3), sizes) if batch.is_dynamic else i64(*[3] * batch.get_length())
    kernels = [f32(rng.uniform(-1, 1, (1, gates * 3, size))) for size in (4, 3)] + [f32(np.zeros((1, gates * 3)))]
    states = [hidden, opset1.relu(hidden)] if kind == "LSTMSequence" else [hidden]
    attributes = {"hidden_size": 3, "direction": "forward", "activations": ["sigmoid", "tanh", "tanh"][:activations]}
    inputs = [_output(value) for value in (data, *states, lengths, *kernels)]
    return NodeFactory("opset5").create(kind, inputs, attributes | {"clip": 0.0}).output(0)


def _group_convolution(data: Node) -> Node:
    kernel = weights([4, 1, 1, 3, 3], np.linspace(0.01, 0.04, 4).reshape(4, 1, 1, 1, 1))
    return opset1.group_convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1])


def quantized(name: str, granularity: str, zero_point: float | None) -> Model:
    """The operation of a case on u8 data with a dequantization "tensor" wide, per "channel" or along "space"
    (axis 2).
    """
    case = next(case for case in CASES if case.name == name)
    axis = {"tensor": None, "channel": 1, "space": 2}[granularity]
    scale = np.float32(0.5)
    if axis is not None:
        shape = [1] * len(case.shape)
        shape[axis] = case.shape[axis]
        scale = np.linspace(0.5, 2, case.shape[axis], dtype=np.float32).reshape(shape)
    return model(case.build(dequantization(parameter(case.shape, precision=np.uint8), scale, zero_point)))

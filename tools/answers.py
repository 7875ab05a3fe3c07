"""Whether the answers of `ovlpt.explain` are true, on small networks with one known cause each.

    python -m tools.answers [PART]        cases whose name holds PART; those that are missed first, then the shares

An answer is true when it says of the layer called "layer" what the plugin executed and, if the layer is float, names all
causes that were built in and no other. An advice works when the layer is executed in int8 after all that is said has been
applied to the model that was given, with ranges of random data. Both with floats in f32 and in the CPU's default type.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

import ovlpt
from ovlpt.device.compile import float_types
from ovlpt.device.layer_types import BOUNDARY, CONVERTS
from ovlpt.device.properties import UNCACHED
from ovlpt.graph.constants import constant
from ovlpt.graph.names import Made, given, renamed
from ovlpt.inspect.calibration import calibrate
from ovlpt.inspect.explain.answers import Answer
from ovlpt.inspect.inputs import random_inputs
from ovlpt.openvino_api import CompiledModel, Core, Model, Node, Output, PartialShape, openvino_module, opset1
from ovlpt.operations import RECURRENT

opset3, opset4, opset5, opset8, opset13 = (openvino_module(f"opset{version}") for version in (3, 4, 5, 8, 13))
LAYER = "layer"
IMAGE = (1, 8, 8, 8)
I8 = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["i8"], 1: ["i8"]})


@dataclass(frozen=True)
class Case:
    """A model whose layer called "layer" is float for known reasons.

    ``codes``: one group for each cause, of which any names it; none where the layer is in int8. ``settings``: of
    `ovlpt.explain`. ``curable``: whether a change of the model lets the layer be executed in int8.
    """

    name: str
    build: Callable[[], Model]
    codes: tuple[tuple[str, ...], ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    curable: bool = True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Judged:
    """What was said of a case, and what is so."""

    case: Case
    answers: tuple[Answer, ...]  # for the layer, of which an attention has two
    in_int8: bool  # as executed, with any type of floats
    is_alike: bool  # whether it is the same with each type of floats
    works: bool | None  # whether it is int8 when the advices are applied; None without any

    @property
    def is_true(self) -> bool:
        if not self.answers or not self.is_alike:
            return self.in_int8 and self.is_alike
        said = self.said
        known = {code for group in self.case.codes for code in group}
        return not self.in_int8 and said <= known and all(said & set(group) for group in self.case.codes)

    @property
    def said(self) -> set[str]:
        return {cause.reason.code for answer in self.answers for cause in answer.causes}

    @property
    def is_advised(self) -> bool:
        """Whether an advice that works was given where one is needed, and none where nothing can be done."""
        return self.in_int8 or (self.works is True if self.case.curable else self.works is None)


def judge(case: Case, core: Core) -> Judged:
    model = case.build()
    found = ovlpt.explain(model, core=core, **case.settings)
    if all(each.name != LAYER for each in found.operations):
        raise AssertionError(f"{case}: nothing is said of the layer")
    answers = tuple(each for each in found if each.name == LAYER and each.causes)
    works, advices = None, list(dict.fromkeys(advice for answer in answers for advice in answer.advices))
    if advices:
        samples = [random_inputs(model)]
        ranges = calibrate(model, advices, samples, core)
        for advice in advices:
            advice.apply(model, ranges)
        try:
            works = all(_executed(model, case, core))
        except RuntimeError:  # what a plugin cannot compile is not a layer in int8
            works = False
        model = case.build()
    executed = _executed(model, case, core)
    return Judged(case, answers, any(executed), len(set(executed)) == 1, works)


def _executed(model: Model, case: Case, core: Core) -> list[bool]:
    """Whether the layer is int8, with each type of floats."""
    ways = ({"INFERENCE_PRECISION_HINT": floats, **UNCACHED} for floats in float_types(core))
    return [in_int8(ovlpt.compile_model(model, "CPU", way, core=core, **case.settings), LAYER) for way in ways]


def in_int8(compiled: CompiledModel, name: str) -> bool:
    """Whether the layer that holds an operation has a kernel of int8; of a fused attention, whether all that it reads are
    integers as well.
    """
    return kernels(compiled).get(name) == INT8


INT8, PARTLY, FLOAT = "int8", "partly", "float"


def kernels(compiled: CompiledModel) -> dict[str, str]:
    """By names of operations and of layers, what the layer that holds it computes in, read from the execution graph
    alone. An attention that is fused into one kernel of int8 and reads floats as well is `PARTLY` in int8.
    """
    found: dict[str, tuple[bool, bool, str]] = {}
    gives: dict[str, str] = {}
    for node in compiled.get_runtime_model().get_ordered_ops():
        info = {key: _text(value) for key, value in node.get_rt_info().items() if key in _KEYS}
        gives[node.get_friendly_name()] = "" if info["layerType"] == "Const" else info["outputPrecisions"].lower()
        if info["layerType"] in BOUNDARY | CONVERTS:
            continue
        fused = info["layerType"] in ("Subgraph", "Eltwise")
        state = INT8 if info["primitiveType"].lower().rsplit("_", 1)[-1] in ("i8", "u8") else FLOAT
        read = {gives[value.get_node().get_friendly_name()] for value in node.input_values()}
        if state == INT8 and fused and not read <= {"", "i8", "u8"}:
            state = PARTLY
        kernel = not fused, state == INT8, state
        for held in {node.get_friendly_name(), *info["originalLayersNames"].split(",")}:
            for name in {held, renamed(held), *_owners(held)}:
                found[name] = max(found.get(name, kernel), kernel)
    return {name: state for name, (_, _, state) in found.items()}


def _owners(name: str) -> list[str]:
    """The operation that a layer belongs to which is called after a part of it, or after a scale that the pass has added."""
    if "/FakeQuantize" in name:  # before an operation, as an advice puts it there
        return []
    parts = [name.split(added)[0] for added in (f"/{Made.FULL_BRANCH}", f"/{Made.DEQUANTIZATION}") if added in name]
    return [*parts, given(name).split("/")[0], given(name.split("/")[0])]


_KEYS = ("originalLayersNames", "layerType", "primitiveType", "outputPrecisions")


def _text(value: object) -> str:
    return str(value.astype(str)) if hasattr(value, "astype") else str(value)


def f32(values) -> Node:
    return opset1.constant(np.asarray(values, np.float32))


def i64(*values: int) -> Node:
    return opset1.constant(np.asarray(values, np.int64))


def parameter(shape=IMAGE, name: str = "x") -> Node:
    return named(opset1.parameter(PartialShape(list(shape)), np.float32), name)


def named(node: Node, name: str = LAYER) -> Node:
    node.set_friendly_name(name)
    return node


def quantized(data: Node, low=0.0, high=2.55, levels: int = 256, name: str = "quantized") -> Node:
    return named(opset1.fake_quantize(data, f32(low), f32(high), f32(low), f32(high), levels), name)


def linear_pair(data: Node, scale: float, zero_point: int, name: str) -> Node:
    """QuantizeLinear and DequantizeLinear, as a frontend writes them. ``name``: of the second."""
    ends = [f32(scale * (end - zero_point)) for end in (0, 255)]
    integers = opset1.convert(opset1.fake_quantize(data, *ends, f32(0.0), f32(255.0), 256), "u8")
    return named(dequantized(integers, scale, zero_point), name)


def dequantized(integers: Node, scale: float, zero_point: int) -> Node:
    shifted = opset1.subtract(opset1.convert(integers, "f32"), f32(zero_point))
    return opset1.multiply(shifted, f32(scale))


def image(low=0.0, high=2.55, levels: int = 256, name: str = "x") -> Node:
    return quantized(parameter(name=name), low, high, levels, f"quantized_{name}")


def real(shape) -> Node:
    return f32(np.random.default_rng(0).uniform(-1, 1, shape))


def weights(shape, levels: int = 255, low=None, high=None, axis: int | tuple[int, ...] | None = 0) -> Node:
    values = real(shape)
    kept = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(each for each in range(len(shape)) if each not in kept)
    ends = np.abs(values.data).max(axes, keepdims=True)
    return quantized(values, -ends if low is None else low, ends if high is None else high, levels, "weights")


def stored_weights(shape, zero_point: float | None, stored: type = np.int8) -> Node:
    """Integers with their dequantization, one scale for each output channel."""
    values = opset1.constant(np.random.default_rng(0).integers(-90, 90, shape).astype(stored))
    scale = f32(np.full((shape[0], *[1] * (len(shape) - 1)), 0.01))
    converted = opset1.convert(values, "f32")
    return opset1.multiply(converted if zero_point is None else opset1.subtract(converted, f32(zero_point)), scale)


def convolution(data, kernel: Node | None = None, name: str = LAYER) -> Node:
    kernel = weights((8, 8, 1, 1)) if kernel is None else kernel
    return named(opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1]), name)


def deconvolution(data, kernel: Node | None = None, stride: int = 2) -> Node:
    kernel = weights((8, 8, 2, 2), axis=1) if kernel is None else kernel
    return named(opset1.convolution_backprop_data(data, kernel, [stride] * 2, pads_begin=[0, 0], pads_end=[0, 0]))


def group_deconvolution(data, kernel: Node | None = None, strides=(2, 2)) -> Node:
    kernel = weights((2, 4, 4, 2, 2), axis=None) if kernel is None else kernel
    return named(opset1.group_convolution_backprop_data(data, kernel, list(strides)))


def model(*results) -> Model:
    """With a Relu after each result, so that the layer is not the last operation."""
    outputs = [opset1.relu(each).output(0) for each in results]
    parameters, seen, pending = [], set(), [output.get_node() for output in outputs]
    while pending:
        node = pending.pop()
        if node.get_instance_id() not in seen:
            seen.add(node.get_instance_id())
            parameters += [node] if node.get_type_name() == "Parameter" else []
            pending += [value.get_node() for value in node.input_values()]
    return Model(outputs, sorted(parameters, key=lambda each: each.get_friendly_name()), "model")


def attention(
    fused: bool = False, probabilities: bool = False, shape=(1, 2, 32, 32), low: float = -1.28, quantize: bool = True
) -> Model:
    inputs = [parameter(shape, name) for name in "qkv"]
    if quantize:
        inputs = [
            quantized(each, low, low + 2.55, name=f"quantized_{name}") for name, each in zip("qkv", inputs, strict=True)
        ]
    if fused:
        beside = [] if quantize else [_quantized_layer()]
        return model(named(opset13.scaled_dot_product_attention(*inputs, causal=False)), *beside)
    products = named(opset1.matmul(inputs[0], inputs[1], False, True), "scores")
    scores = named(opset8.softmax(products, -1), "softmax")
    scores = quantized(scores, 0.0, 1.0) if probabilities else scores
    return model(named(opset1.matmul(scores, inputs[2], False, False)))


def loop(name: str) -> Model:
    """``name``: "inside" or "outside": which of two convolutions, of the body and before the Loop, is the layer."""
    inside = parameter(name="inside")
    body_out = opset1.relu(convolution(inside, name=LAYER if name == "inside" else "body"))
    body = Model([body_out.output(0), opset1.constant(np.array(True)).output(0)], [inside], "body")
    return model(_looped(body, inside, _before(name), body_out.output(0)))


def _before(name: str) -> Output:
    return opset1.relu(convolution(image(), name=LAYER if name == "outside" else "before")).output(0)


def recurrent(
    kind: str,
    size: int = 8,
    data: Callable[[tuple[int, ...]], Node] | None = None,
    state: Callable[[tuple[int, ...]], Node] | None = None,
    steps: int = 3,
    quantize: bool = True,
    rearranged: bool = False,
    folded: bool = True,
    rest: tuple[int, float] = (-1, 1.0),
    **attributes,
) -> Model:
    """``kind``: "LSTMSequence" and so on, of quantized data and weights, two sequences of three steps. ``size``: of data and
    state. ``data``, ``state``: of a shape; by default a FakeQuantize of a Parameter, and zeros. ``steps``: that are run.
    ``quantize``: the weights. ``rearranged``: their gates, of stored integers. ``folded``: the bias as one constant. ``rest``: an
    axis, and a factor of all recurrent weights but the first along it.
    """
    name = kind.removesuffix("Sequence").removesuffix("Cell")
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    of_sequences, directions = kind.endswith("Sequence"), 1 + (attributes.get("direction") == "bidirectional")
    data = (data or _signed)((2, 3, size) if of_sequences else (2, size))
    one = (directions,) if of_sequences else ()
    states = [f32(np.zeros((2, *one, size))) for _ in range(2 if gates == 4 else 1)]
    states[0] = (state or (lambda _: states[0]))((2, *one, size))
    shape = (*one, gates * size, size)
    factors = np.where(np.indices(shape)[rest[0]] == 0, 1.0, rest[1])
    kernels = [real(shape), f32(real(shape).data * factors)]
    kernels = [quantized(each, -1.0, 1.0, 255, "weights") for each in kernels] if quantize else kernels
    if rearranged:
        stored = [opset1.constant(np.rint(real(shape).data * 127).astype(np.int8)) for _ in kernels]
        kernels = [opset1.multiply(opset1.convert(each, "f32"), f32(1 / 127)) for each in stored]
        parts = [opset1.split(each, opset1.constant(np.int64(len(one))), gates).outputs() for each in kernels]
        kernels = [opset1.concat(each[::-1], len(one)) for each in parts]
    bias = f32(np.zeros((*one, (gates + bool(attributes.get("linear_before_reset"))) * size)))
    bias = bias if folded else opset1.add(bias, bias)
    lengths = [opset1.constant(np.full(2, steps, np.int32))] if of_sequences else []
    activations = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}
    attributes = (
        {"hidden_size": size, "activations": activations[name]}
        | ({"direction": "forward"} if of_sequences else {})
        | attributes
    )
    inputs = [each.output(0) for each in (data, *states, *lengths, *kernels, bias)]
    factory = openvino_module("utils.node_factory").NodeFactory("opset5")
    beside = [] if quantize else [_quantized_layer()]
    return model(named(factory.create(kind, inputs, attributes)).output(0), *beside)


_IMAGE, _ROWS = IMAGE, (2, 8, 16)


def _signed(shape: tuple[int, ...]) -> Node:
    return quantized(parameter(shape), -1.28, 1.27)


def _small(shape: tuple[int, ...]) -> Node:
    """An interval beside which that of the states is wide."""
    return quantized(parameter(shape), 0.0, 0.02)


def transposed(shape: tuple[int, ...]) -> Node:
    """Steps and samples change places after the FakeQuantize, as exporters have it."""
    return opset1.transpose(_signed((shape[1], shape[0], *shape[2:])), i64(1, 0, 2))


def _state(shape: tuple[int, ...]) -> Node:
    return parameter(shape, "state")


def _squeezed_and_transposed(shape: tuple[int, ...]) -> Node:
    """Columns of an image as steps."""
    rows = opset1.squeeze(_signed((shape[0], shape[2], 1, shape[1])), i64(2))
    return opset1.transpose(rows, i64(0, 2, 1))


def padded(value: float) -> Callable[[tuple[int, ...]], Node]:
    """A step of ``value`` before the others."""
    return lambda shape: opset1.pad(
        _signed((shape[0], shape[1] - 1, *shape[2:])), i64(0, 1, 0), i64(0, 0, 0), "constant", f32(value)
    )


def _of_all_three_axes(group: int, low: float = 0.0) -> Model:
    """``group``: output channels of each of 4 groups of one input channel."""
    kernel = weights((4, group, 1, 3, 3, 3), axis=(0, 1))
    data = quantized(parameter((1, 4, 6, 6, 6)), low, low + 2.55)
    return model(named(opset1.group_convolution(data, kernel, [1] * 3, [0] * 3, [0] * 3, [1] * 3)))


def _multiplied(shape: tuple[int, ...], of_weights: tuple[int, ...]) -> Model:
    return model(named(opset1.matmul(quantized(parameter(shape)), weights(of_weights, axis=None), False, False)))


def in_a_body(layer: Callable[[Node], Node]) -> Model:
    """A Loop of two rounds, and in its body a layer of quantized data."""
    inside = parameter(name="inside")
    result = opset1.relu(layer(quantized(inside, name="quantized_inside")))
    body = Model([result.output(0), opset1.constant(np.array(True)).output(0)], [inside], "body")
    return model(_looped(body, inside, parameter().output(0), result.output(0)))


def _looped(body: Model, inside: Node, data: Output, result: Output) -> Output:
    node = opset5.loop(opset1.constant(np.int64(2)), opset1.constant(np.array(True)))
    node.set_function(body)
    node.set_special_body_ports([-1, 1])
    node.set_merged_input(inside, data, result)
    return node.get_iter_value(result, -1)


def _moved(build: Callable[[Node], Node]) -> Callable[[tuple[int, ...]], Node]:
    """Quantized data, and an operation after it."""
    return lambda shape: named(build(quantized(parameter(shape))), "between")


def _joined(join: Callable[[Node, Node], Node], axis: int | None = None) -> Callable[[tuple[int, ...]], Node]:
    """Two inputs, of which one is not quantized."""

    def build(shape):
        half = tuple(size // 2 if at == axis else size for at, size in enumerate(shape))
        return named(join(quantized(parameter(half)), parameter(half, "other")), "between")

    return build


def _per_channel(shape) -> Node:
    high = np.linspace(1, 2.5, shape[1]).reshape(1, shape[1], *[1] * (len(shape) - 2))
    return quantized(parameter(shape), 0 * high, high)


def _linear(data: Node, mode: str = "linear_onnx") -> Node:
    attributes = {
        "mode": mode, "shape_calculation_mode": "sizes", "pads_begin": [0] * 4, "pads_end": [0] * 4,
        "coordinate_transformation_mode": "half_pixel",
    }  # fmt: skip
    factory = openvino_module("utils.node_factory").NodeFactory("opset4")
    inputs = [each.output(0) for each in (data, i64(8, 8), f32([1, 1]), i64(2, 3))]
    return factory.create("Interpolate", inputs, attributes)


# What comes to the layer for its data: name, builder of a shape, codes, and whether it is for images only.
DATA = {
    "nothing quantized": (parameter, "no_fake_quantize", False),
    "after Sigmoid": (_moved(opset1.sigmoid), "lost_upstream", False),
    "after Tanh": (_moved(opset1.tanh), "lost_upstream", False),
    "after HSwish": (_moved(opset4.hswish), "lost_upstream", False),
    "after Swish": (_moved(opset4.swish), "lost_upstream", False),
    "after Mish": (_moved(opset4.mish), "lost_upstream", False),
    "after Exp": (_moved(opset1.exp), "lost_upstream", False),
    "after Softmax": (_moved(lambda data: opset1.softmax(data, 1)), "lost_upstream", False),
    "after Negative": (_moved(opset1.negative), "lost_upstream no_fake_quantize", False),
    "after Power": (_moved(lambda data: opset1.power(data, f32(2.0))), "lost_upstream", False),
    "after a mean": (_moved(lambda data: opset1.reduce_mean(data, i64(2), True)), "float_result lost_upstream", True),
    "after a sum": (
        _moved(lambda data: opset1.add(data, quantized(parameter(data.shape, "other")))),
        "float_result no_fake_quantize",
        False,
    ),
    "after a product": (
        _moved(lambda data: opset1.multiply(data, quantized(parameter(data.shape, "other")))),
        "float_result no_fake_quantize",
        False,
    ),
    "Concat with a float constant": (
        _joined(lambda a, _: opset1.concat([a, real(a.get_output_shape(0))], 1), 1),
        "not_quantized",
        False,
    ),
    "Concat with a float branch": (_joined(lambda a, b: opset1.concat([a, b], 1), 1), "not_quantized", False),
    "Maximum with a float branch": (_joined(opset1.maximum), "not_quantized", False),
    "16 levels": (lambda shape: quantized(parameter(shape), 0.0, 1.5, 16), "levels", False),
    "512 levels": (lambda shape: quantized(parameter(shape), 0.0, 1.5, 512), "levels", False),
    "65536 levels": (lambda shape: quantized(parameter(shape), 0.0, 1.5, 65536), "levels", False),
    "65536 levels of clipped data": (
        lambda shape: quantized(opset1.clamp(parameter(shape), 0.0, 1.5), 0.0, 1.5, 65536),
        "levels",
        False,
    ),
    "an interval without zero": (lambda shape: quantized(parameter(shape), 1.0, 2.0), "zero_point_range", False),
    "an interval per channel": (_per_channel, "per_channel_activations contracted_scale", False),
    "a zero point": (
        lambda shape: quantized(parameter(shape), -0.5, 2.05),
        "zero_point",
        False,
    ),
    "after a layer": (
        lambda shape: opset1.relu(convolution(quantized(parameter(shape)), weights((8, 8, 1, 1)), "first")),
        "float_result",
        True,
    ),
    "after Interpolate": (_moved(_linear), "lost_upstream float_result", True),
}


def _made(kind: str, *inputs: Node, opset: str = "opset13", **attributes) -> Node:
    factory = openvino_module("utils.node_factory").NodeFactory(opset)
    return factory.create(kind, [each.output(0) for each in inputs], attributes)


def _unary(kind: str, *inputs: Node, **attributes) -> Callable[[Node], Node]:
    return lambda data: _made(kind, data, *inputs, **attributes)


def _whole(kind: str) -> Callable[[Node], Node]:
    """Of whole numbers, as which the data is read."""
    return lambda data: opset1.convert(_made(kind, opset1.convert(data, "i32")), "f32")


def _in_shape(build: Callable[[Node], Node], *shape: int) -> Callable[[Node], Node]:
    return lambda data: opset1.reshape(build(data), i64(*shape), False)


# Operations without a rule, between the quantization and a convolution.
BETWEEN = {
    "Abs": _unary("Abs"),
    "Sign": _unary("Sign"),
    "Ceiling": _unary("Ceiling"),
    "Round": _unary("Round", mode="half_to_even"),
    "Cos": _unary("Cos"),
    "Sqrt": _unary("Sqrt"),
    "Elu": _unary("Elu", alpha=1.0),
    "Gelu": _unary("Gelu", approximation_mode="erf"),
    "HardSigmoid": _unary("HardSigmoid", f32(0.2), f32(0.5)),
    "LogSoftmax": _unary("LogSoftmax", axis=1),
    "Mod": _unary("Mod", f32(0.3)),
    "SquaredDifference": _unary("SquaredDifference", f32(0.3)),
    "a Divide by the data": lambda data: opset1.divide(f32(1.0), opset1.add(data, f32(1.0))),
    "Greater": lambda data: opset1.convert(opset1.greater(data, f32(0.3)), "f32"),
    "LogicalNot": lambda data: opset1.convert(opset1.logical_not(opset1.greater(data, f32(0.3))), "f32"),
    "a Convert to i32": lambda data: opset1.convert(opset1.convert(data, "i32"), "f32"),
    "BitwiseNot": _whole("BitwiseNot"),
    "CumSum": _unary("CumSum", opset1.constant(np.int64(1))),
    "LRN": _unary("LRN", i64(1), alpha=1e-4, beta=0.75, bias=1.0, size=5),
    "GRN": _unary("GRN", bias=1.0),
    "ReverseSequence": _unary("ReverseSequence", i64(4), batch_axis=0, seq_axis=2),
    "GatherElements": _unary("GatherElements", opset1.constant(np.zeros(IMAGE, np.int64)), axis=2),
    "GatherND": _unary("GatherND", opset1.constant(np.zeros((1, 8, 8, 1), np.int64)), batch_dims=2),
    "ScatterUpdate": _unary("ScatterUpdate", i64(1), f32(np.ones((1, 8, 1, 8))), i64(2)),
    "SpaceToDepth": _in_shape(_unary("SpaceToDepth", mode="blocks_first", block_size=2), 1, 8, 8, 8),
    "ReduceL1": _unary("ReduceL1", i64(2), keep_dims=True),
    "ReduceL2": _unary("ReduceL2", i64(2), keep_dims=True),
    "ReduceProd": _unary("ReduceProd", i64(2), keep_dims=True),
    "AdaptiveAvgPool": _unary("AdaptiveAvgPool", i64(3, 3)),
    "ROIAlign": _unary(
        "ROIAlign", f32([[0, 0, 4, 4]]), i64(0), pooled_h=4, pooled_w=4, sampling_ratio=1, spatial_scale=1.0, mode="avg",
        aligned_mode="asymmetric",
    ),
    "EmbeddingBagOffsetsSum": lambda data: _in_shape(
        _unary("EmbeddingBagOffsetsSum", i64(0, 1, 2, 3), i64(0, 2)), 1, 8, 2, 1
    )(opset1.reshape(data, i64(64, 8), False)),
}  # fmt: skip


# The layer: a shape of its data, its weights' shape and output axes, and what makes it of data and weights.
LAYERS = {
    "Convolution": (_IMAGE, (8, 8, 1, 1), 0, convolution),
    "Convolution 3x3": (
        _IMAGE,
        (16, 8, 3, 3),
        0,
        lambda data, kernel: named(opset1.convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1])),
    ),
    "GroupConvolution": (
        _IMAGE,
        (2, 4, 4, 1, 1),
        (0, 1),
        lambda data, kernel: named(opset1.group_convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1])),
    ),
    "ConvolutionBackpropData": (_IMAGE, (8, 8, 2, 2), 1, deconvolution),
    "MatMul": (_ROWS, (24, 16), 0, lambda data, kernel: named(opset1.matmul(data, kernel, False, True))),
    "MatMul, columns": (_ROWS, (16, 24), 1, lambda data, kernel: named(opset1.matmul(data, kernel, False, False))),
}

WEIGHTS = {
    "not quantized": (lambda shape, axis: real(shape), "weights_not_quantized"),
    "16 levels": (lambda shape, axis: weights(shape, 16, axis=axis), "weights_levels"),
    "128 levels": (lambda shape, axis: weights(shape, 128, axis=axis), "weights_levels"),
    "256 levels around zero": (
        lambda shape, axis: weights(shape, 256, axis=axis),
        "fractional_zero_point weights_zero_point",
    ),
    "an interval from zero": (
        lambda shape, axis: weights(shape, 256, 0.0, 2.0, axis),
        "weights_range weights_zero_point fractional_zero_point",
    ),
    "an interval without zero": (
        lambda shape, axis: weights(shape, 256, 0.5, 2.0, axis),
        "weights_zero_point_range weights_range fractional_zero_point weights_zero_point",
    ),
}


def stored_slope() -> Node:
    """0.05 to 0.4, for 8 channels."""
    return opset1.multiply(opset1.convert(opset1.constant(np.arange(1, 9, dtype=np.int8)), "f32"), f32(0.05))


def _second() -> Node:
    return quantized(parameter((2, 8, 16), "second"), -1.28, 1.27, name="quantized_second")


def _of_second(name: str, codes: str) -> tuple[tuple[str, ...], ...]:
    """What keeps a second input in float; that of a MatMul is i8, which the interval of the other branches is not."""
    branches = name.startswith(("Concat", "Maximum"))
    return (tuple(f"{codes} no_fake_quantize".split()), *([("zero_point",)] if branches else []))


def _product(left: Node, right: Node) -> Model:
    return model(named(opset1.matmul(left, right, False, True)))


def _cases() -> Iterator[Case]:
    yield from _SINGLE
    for kind, (shape, size, axis, layer) in LAYERS.items():
        for name, (data, codes, only_images) in DATA.items():
            if not only_images or shape is _IMAGE:
                groups = (tuple(codes.split()),)
                yield Case(
                    f"{kind}: {name}",
                    lambda data=data, shape=shape, size=size, axis=axis, layer=layer: model(
                        layer(data(shape), weights(size, axis=axis))
                    ),
                    groups,
                )
        for name, (kernel, codes) in WEIGHTS.items():
            groups = (tuple(codes.split()),)
            yield Case(
                f"{kind}: weights with {name}",
                lambda kernel=kernel, shape=shape, size=size, axis=axis, layer=layer: model(
                    layer(quantized(parameter(shape)), kernel(size, axis))
                ),
                groups,
            )
        for name in ("nothing quantized", "after Sigmoid", "Concat with a float branch"):
            data, codes, _ = DATA[name]
            yield Case(
                f"{kind}: {name}, weights not quantized",
                lambda data=data, shape=shape, size=size, layer=layer: model(
                    layer(data(shape), real(size)), convolution(image(name="z"), name="second")
                ),
                (tuple(codes.split()), ("weights_not_quantized",)),
            )
    for name, (data, codes, only_images) in DATA.items():
        if not only_images:
            yield Case(
                f"product of activations: {name}",
                lambda data=data: _product(data(_ROWS), _second()),
                (tuple(codes.split()),),
            )
            yield Case(
                f"product of activations, the second: {name}",
                lambda data=data: _product(_second(), data(_ROWS)),
                _of_second(name, codes),
            )


def _of_rows(kernel: Node) -> Model:
    return model(named(opset1.matmul(quantized(parameter(_ROWS)), kernel, False, True)))


def _of_a_convolution_too(data: Node) -> Model:
    return model(convolution(data, name="other"), named(opset1.matmul(data, data, False, True)))


def _of_both(data: Node) -> Model:
    other = named(opset1.matmul(data, weights((24, 16)), False, True), "other")
    return model(other, named(opset1.matmul(data, data, False, True)))


def _embedded() -> Model:
    """Rows of stored integers, and a layer of floats: nothing of the model is quantized by a FakeQuantize."""
    stored = opset1.constant(np.random.default_rng(0).integers(0, 255, (50, 16)).astype(np.uint8))
    rows = opset8.gather(stored, named(opset1.parameter(PartialShape([2, 5]), np.int64), "x"), opset1.constant(0))
    zero_point = opset1.convert(opset1.constant(np.array(100, np.uint8)), "f32")
    data = opset1.multiply(opset1.subtract(opset1.convert(rows, "f32"), zero_point), f32(0.02))
    return model(named(opset1.matmul(data, real((24, 16)), False, True)))


def _linear_product(repeated: bool = False) -> Model:
    """Of two activations after Q/DQ, both with a zero point; ``repeated``: after the Transpose, too, as exporters do."""
    ends = []
    for name, zero_point in (("left", 120), ("right", 135)):
        pair = linear_pair(parameter((2, 16, 8), name), 0.02, zero_point, f"{name}_pair")
        moved = opset1.transpose(pair, i64(0, 2, 1))
        ends.append(linear_pair(moved, 0.02, zero_point, f"{name}_again") if repeated else moved)
    return _product(*ends)


def _moved_integers() -> Model:
    """Of two sums of QLinearAdd, whose integers are moved, as in attentions of ONNX Runtime's format QOperator."""
    ends = []
    for name, zero_point in (("left", 120), ("right", 135)):
        data = parameter((2, 16, 8), name)
        steps = opset1.divide(opset1.add(quantized(data, -1.28, 1.27), f32(0.1)), f32(0.02))
        zero = opset1.convert(opset1.constant(np.array(zero_point, np.uint8)), "f32")
        integers = named(opset1.convert(opset1.add(steps, zero), "u8"), f"{name}_sum")
        ends.append(dequantized(opset1.transpose(integers, i64(0, 2, 1)), 0.02, zero_point))
    return _product(*ends)


def group_wise(shape: tuple[int, int], stored: bool) -> Node:
    """Weights of a MatMul with a scale for each 4 of their columns. ``stored``: as integers."""
    values = real((shape[0], shape[1] // 4, 4))
    ends = np.abs(values.data).max(2, keepdims=True)
    if stored:
        integers = opset1.constant(np.rint(values.data / ends * 127).astype(np.int8))
        values = opset1.multiply(opset1.convert(integers, "f32"), f32(ends / 127))
    else:
        values = quantized(values, -ends, ends, 255, "weights")
    return opset1.reshape(values, i64(*shape), False)


def compressed(shape: tuple[int, int], precision: str, largest: float) -> Node:
    """Weights of a MatMul as a compression of weights alone stores them: of few bits, with a scale in f16 for each 4 of their
    columns. ``largest``: the number that the largest weight of 4 is stored as.
    """
    values = real((shape[0], shape[1] // 4, 4)).data
    scale = np.abs(values).max(2, keepdims=True) / largest
    numbers = values / scale if precision != "i4" else np.rint(values / scale)
    stored = constant(numbers, precision)
    scaled = opset1.multiply(opset1.convert(stored, "f16"), opset1.constant(scale.astype(np.float16)))
    return opset1.convert(opset1.reshape(scaled, i64(*shape), False), "f32")


def _deformable(data: Node) -> Model:
    offsets = parameter((1, 18, 8, 8), "offsets")
    kernel = weights((8, 8, 3, 3))
    return model(named(opset8.deformable_convolution(data, offsets, kernel, *[[1, 1]] * 4)), _quantized_layer())


def _quantized_layer() -> Node:
    return convolution(image(name="z"), name="second")


def _contracted(left: Node, right: Node) -> Model:
    """Each with sixteen columns."""
    return model(named(_made("Einsum", left, right, equation="brk,ck->brc" if _is_constant(right) else "brk,bck->brc")))


def _is_constant(node: Node) -> bool:
    return len(node.get_output_shape(0)) == 2


def _of_rows_first(kernel: Node, data: Node) -> Model:
    """Weights as the first input of a MatMul."""
    return model(named(opset1.matmul(kernel, data, False, False)), _quantized_layer())


def _shared_with(port: int, low: float, product: bool) -> Model:
    """Data of a convolution and of an input of a product. ``product``: whether that is the layer."""
    data = image(low, -low * 127 / 128 if low else 2.55)
    other = quantized(parameter(name="other_data"), -1.28, 1.27, name="quantized_other")
    inputs = (data, other) if port == 0 else (other, data)
    both = convolution(data, name="convolution"), named(opset1.matmul(*inputs, False, True), "product")
    named(both[product], LAYER)
    return model(*both)


_SINGLE = [
    *(
        Case(
            f"convolution: after {name}",
            lambda between=between: model(convolution(_moved(between)(IMAGE))),
            (("lost_upstream",),),
        )
        for name, between in BETWEEN.items()
    ),
    Case(
        "convolution: after an AvgPool that pads data with a zero point",
        lambda: model(convolution(opset1.avg_pool(image(-0.5, 2.05), [1, 1], [1, 1], [1, 1], [3, 3], False))),
        (("lost_upstream", "no_fake_quantize"),),
    ),
    Case(
        "convolution: after an Add by channel beyond u8",
        lambda: model(convolution(opset1.add(image(), f32(np.arange(8.0).reshape(1, 8, 1, 1) / 10)))),
        (("zero_point_range",),),
    ),
    Case(
        "convolution: after a product with a zero point",
        lambda: model(convolution(opset1.matmul(image(-0.5, 2.05), image(-1.28, 1.27, name="other"), False, True))),
        (("lost_upstream", "no_fake_quantize"),),
    ),
    *(
        Case(f"Einsum{name}", lambda inputs=inputs: _contracted(*inputs()), codes)
        for name, inputs, codes in (
            (" of weights", lambda: (quantized(parameter(_ROWS)), weights((24, 16))), ()),
            (" of a float", lambda: (parameter(_ROWS), weights((24, 16))), (("no_fake_quantize",),)),
            (
                " of a float and weights that are not quantized",
                lambda: (opset1.sigmoid(quantized(parameter(_ROWS))), real((24, 16))),
                (("lost_upstream",), ("weights_not_quantized",)),
            ),
            (" of activations", lambda: (quantized(parameter(_ROWS)), _second()), ()),
            (
                " of activations, the second from zero",
                lambda: (_signed(_ROWS), quantized(parameter((2, 8, 16), "second"), name="from_zero")),
                (("zero_point",),),
            ),
            (
                " of activations, the second a float",
                lambda: (_signed(_ROWS), parameter((2, 8, 16), "second")),
                (("no_fake_quantize", "not_quantized"),),
            ),
        )
    ),
    *(
        Case(
            f"MatMul whose first input is weights{name}, without VNNI",
            lambda made=made: _of_rows_first(weights((24, 16)), made()),
            (("pairs_saturate", "no_fake_quantize"),),
            {"plugin": ovlpt.plugin_config.cpu.config(slow_mat_mul=True)},
            curable=False,
        )
        for name, made in (("", lambda: _signed((2, 16, 8))), (", of a float", lambda: parameter((2, 16, 8))))
    ),
    *(
        Case(
            f"MatMul whose first input is weights{name}",
            lambda made=made: _of_rows_first(*made()),
            codes,
            {"plugin": ovlpt.plugin_config.cpu.config()},
        )
        for name, made, codes in (
            ("", lambda: (weights((24, 16)), _signed((2, 16, 8))), ()),
            (", not quantized", lambda: (real((24, 16)), _signed((2, 16, 8))), (("weights_not_quantized",),)),
            (" to 256 levels", lambda: (weights((24, 16), 256), _signed((2, 16, 8))), (("weights_zero_point",),)),
            (" by column", lambda: (weights((24, 16), axis=1), _signed((2, 16, 8))), (("contracted_scale",),)),
            (", of a float", lambda: (weights((24, 16)), parameter((2, 16, 8))), (("no_fake_quantize",),)),
            (
                ", not quantized, of data with a zero point",
                lambda: (real((24, 16)), quantized(parameter((2, 16, 8)), -0.5, 2.05)),
                (("weights_not_quantized",), ("zero_point",)),
            ),
        )
    ),
    *(
        Case(
            f"{'product' if product else 'convolution'} that shares input {port} of the product{'' if low else ', from zero'}",
            lambda port=port, low=low, product=product: _shared_with(port, low, product),
            codes,
        )
        for port, low, product, codes in (
            (0, -1.28, True, (("zero_point",),)),
            (1, -1.28, True, ()),
            (0, 0.0, True, ()),
            (1, 0.0, True, (("zero_point",),)),
            (0, -1.28, False, ()),
            (1, -1.28, False, ()),
            (1, 0.0, False, ()),
        )
    ),
    *(
        Case(f"convolution: {name}", lambda data=data: model(convolution(data(IMAGE))), codes)
        for name, data, codes in (
            ("Minimum with a float branch", _joined(opset1.minimum), (("not_quantized",),)),
            ("after a cubic Interpolate", _moved(lambda data: _linear(data, "cubic")), (("lost_upstream",),)),
            ("after a nearest Interpolate", _moved(lambda data: _linear(data, "nearest")), ()),
            ("after a square", _moved(lambda data: opset1.multiply(data, data)), (("float_result",),)),
            ("after PRelu of data from zero", _moved(lambda data: opset1.prelu(data, f32(np.full(8, 0.1)))), ()),
            ("65536 levels", lambda shape: quantized(parameter(shape), -1.0, 1.0, 65536), (("levels",),)),
            ("[-1, 1] to 256 levels", lambda shape: quantized(parameter(shape), -1.0, 1.0), ()),
        )
    ),
    *(
        Case(f"{name}: [-1, 1] to {levels} levels", lambda build=build, levels=levels: build(levels), codes)
        for levels, codes in ((256, (("zero_point",),)), (255, ()))
        for name, build in (
            ("deconvolution", lambda levels: model(deconvolution(image(-1.0, 1.0, levels)))),
            ("product", lambda levels: _product(quantized(parameter(_ROWS), -1.0, 1.0, levels), _second())),
        )
    ),
    *(
        Case(
            f"weights in groups, {name}",
            lambda stored=stored: _of_rows(group_wise((24, 16), stored)),
            (("weights_granularity",),),
        )
        for name, stored in (("stored", True), ("after a FakeQuantize", False))
    ),
    *(
        Case(
            f"weights compressed to {stored[0]}",
            lambda stored=stored: _of_rows(compressed((24, 16), *stored)),
            (("weights_granularity" if stored[0] == "i4" else "weights_precision",),),
        )
        for stored in (("i4", 7), ("nf4", 1), ("f8e4m3", 448))
    ),
    Case(
        "weights compressed to i4, of a float",
        lambda: model(
            _quantized_layer(), named(opset1.matmul(parameter(_ROWS), compressed((24, 16), "i4", 7), False, True))
        ),
        (("no_fake_quantize",), ("weights_granularity",)),
    ),
    *(
        Case(f"{kind}, weights stored in i16{name}", build, (("weights_precision",),))
        for name, zero_point in (("", None), (" with a zero point", 3.0))
        for kind, build in (
            (
                "convolution",
                lambda z=zero_point: model(convolution(image(), stored_weights((8, 8, 1, 1), z, np.int16))),
            ),
            ("MatMul", lambda z=zero_point: _of_rows(stored_weights((24, 16), z, np.int16))),
        )
    ),
    *(
        Case(f"{kind}, weights to 65536 levels", build, (("weights_levels",),))
        for kind, build in (
            ("convolution", lambda: model(convolution(image(), weights((8, 8, 1, 1), 65536)))),
            ("MatMul", lambda: _of_rows(weights((24, 16), 65536))),
        )
    ),
    Case(
        "weights that are computed",
        lambda: model(convolution(image(), opset1.sigmoid(parameter((8, 8, 1, 1), "computed")))),
        (("dynamic_weights", "weights_not_quantized"),),
    ),
    Case(
        "weights that are computed, and quantized",
        lambda: model(convolution(image(), quantized(parameter((8, 8, 1, 1), "computed"), -1.28, 1.27))),
    ),
    Case(
        "data of two layers, of which one takes no zero point",
        lambda: _of_both(quantized(parameter(_ROWS), -0.5, 2.05)),
        (("zero_point",),),
    ),
    Case(
        "data of a product and of a convolution, which asks for another type",
        lambda: _of_a_convolution_too(quantized(parameter(), -0.5, 2.05)),
        (("zero_point",),),
    ),
    Case(
        "ScaledDotProductAttention of data with zero points",
        lambda: attention(fused=True, low=-0.5),
        (("lost_upstream", "no_fake_quantize"), ("zero_point",)),
    ),
    Case(
        "ScaledDotProductAttention of floats",
        lambda: attention(fused=True, quantize=False),
        (("no_fake_quantize",),),
    ),
    *(
        Case(f"deformable convolution{name}", lambda data=data: _deformable(data()), (("no_rule",),), curable=False)
        for name, data in (("", image), (" of a float", parameter))
    ),
    *(
        Case(f"{kind}{name}", lambda kind=kind, more=more: recurrent(kind, **more), (("no_rule",),), curable=False)
        for kind in ("RNNSequence", "LSTMCell", "GRUCell", "RNNCell")
        for name, more in {
            " of a float": {"data": parameter},
            " of weights that are not quantized": {"quantize": False},
        }.items()
    ),
    Case(
        "product of activations, the second from zero",
        lambda: _product(
            quantized(parameter(_ROWS), -1.28, 1.27), quantized(parameter((2, 8, 16), "second"), name="from_zero")
        ),
        (("zero_point",),),
    ),
    Case("product of activations in Q/DQ with zero points", _linear_product, (("zero_point",),)),
    Case("product of activations as moved integers", _moved_integers, (("zero_point",),)),
    Case("product of activations in repeated Q/DQ", lambda: _linear_product(repeated=True), (("zero_point",),)),
    Case("rows of an embedding in integers", _embedded, (("no_fake_quantize",), ("weights_not_quantized",))),
    Case(
        "convolution, float weights that a Transpose lays out",
        lambda: model(
            convolution(image(), opset1.transpose(opset1.unsqueeze(real((8, 8, 1)), i64(3)), i64(1, 0, 2, 3)))
        ),
        (("weights_not_quantized",),),
    ),
    Case("convolution", lambda: model(convolution(image()))),
    Case(
        "convolution, integer weights with a zero point",
        lambda: model(convolution(image(), stored_weights((8, 8, 1, 1), 3.0))),
        (("weights_zero_point",),),
        {"native_only": True},
    ),
    Case(
        "convolution, settings that no kernel takes",
        lambda: model(convolution(image())),
        (("no_kernel",),),
        {"plugin": ovlpt.PluginConfig("own", precision_restrictions=(I8,))},
        curable=False,
    ),
    Case("deconvolution in groups", lambda: model(group_deconvolution(image())), (("no_kernel",),), curable=False),
    *(
        Case(
            f"deconvolution in groups {name}, weights with a scale per column",
            lambda shape=shape, kernel=kernel: model(
                group_deconvolution(
                    quantized(parameter(shape)), weights(kernel, axis=len(kernel) - 1), [2] * (len(shape) - 2)
                )
            ),
            (("no_kernel",),),
            curable=False,
        )
        for name, shape, kernel in (
            ("of open sizes", (-1, 8, 8, 8), (2, 4, 4, 2, 2)),
            ("by channel over three axes", (1, 8, 8, 8, 8), (8, 1, 1, 2, 2, 2)),
        )
    ),
    Case(
        "deconvolution in groups, weights with a scale per column",
        lambda: model(group_deconvolution(quantized(parameter((1, 32, 8, 8))), weights((2, 16, 16, 2, 2), axis=4))),
        (("weights_granularity", "weights_not_quantized"),),
    ),
    Case(
        "convolution of data in float, weights with a scale per column",
        lambda: model(_quantized_layer(), convolution(parameter(), weights((8, 8, 3, 3), axis=3))),
        (("no_fake_quantize",), ("weights_granularity",)),
    ),
    Case(
        "deconvolution with a stride of 4",
        lambda: model(deconvolution(image(), weights((8, 8, 4, 4), axis=1), 4)),
        (("no_kernel",),),
        curable=False,
    ),
    Case(
        "convolution of constant data",
        lambda: model(
            opset1.add(convolution(quantized(real(IMAGE), -1.28, 1.27)), parameter()),
        ),
        (("constant_data",),),
        curable=False,
    ),
    Case(
        "convolution after PRelu of data with a zero point",
        lambda: model(
            convolution(named(opset1.prelu(quantized(parameter(), -0.5, 2.05), f32(np.full(8, 0.1))), "between"))
        ),
        (("float_result",),),
    ),
    Case(
        "convolution after PRelu with a slope stored as integers",
        lambda: model(convolution(opset1.prelu(image(), stored_slope()))),
    ),
    Case("attention", attention, (("lost_upstream",),)),
    Case("attention with quantized probabilities", lambda: attention(probabilities=True)),
    Case("ScaledDotProductAttention", lambda: attention(fused=True), (("lost_upstream",),)),
    Case("before a Loop", lambda: loop("outside")),
    Case("RNNSequence", lambda: recurrent("RNNSequence"), (("no_rule",),), curable=False),
    Case("GRUSequence", lambda: recurrent("GRUSequence")),
    Case("LSTMSequence", lambda: recurrent("LSTMSequence")),
    *(
        Case(f"{kind}{name}", lambda kind=kind, more=more: recurrent(kind, **more))
        for kind in sorted(RECURRENT)
        for name, more in {
            " of transposed data": {"data": transposed},
            " of squeezed and transposed data": {"data": _squeezed_and_transposed},
            " of padded data": {"data": padded(0.0)},
            " in both directions": {"direction": "bidirectional"},
            " of transposed data in both directions": {"data": transposed, "direction": "bidirectional"},
        }.items()
    ),
    *(
        Case(f"{kind}{name}", lambda kind=kind, more=more: recurrent(kind, **more), codes, curable=curable)
        for kind in sorted(RECURRENT)
        for name, (more, codes, curable) in {
            " of a float": ({"data": parameter}, (("data_grid",),), True),
            " of a Tanh": ({"data": _moved(opset1.tanh)}, (("data_grid",),), True),
            " of a Negative": ({"data": _moved(opset1.negative)}, (("negative_scale",),), True),
            " of data padded with another value": ({"data": padded(5.0)}, (("data_grid",),), True),
            " of 65536 levels": (
                {"data": lambda shape: quantized(parameter(shape), -1.0, 1.0, 65536)},
                (("data_grid",),),
                True,
            ),
            " of a float state": ({"state": _state}, (("state_not_quantized",),), True),
            " of a float state in both directions": (
                {"state": _state, "direction": "bidirectional"},
                (("state_not_quantized",),),
                True,
            ),
            " of a float and a float state": (
                {"data": parameter, "state": _state},
                (("data_grid",), ("state_not_quantized",)),
                True,
            ),
            " with a clip": ({"clip": 1.0}, (("activations",),), False),
            " of two steps": ({"steps": 2}, (("sequence_lengths",),), False),
            " of two steps and weights that are not quantized": (
                {"steps": 2, "quantize": False},
                (("sequence_lengths",),),
                False,
            ),
            " of two steps of a float": ({"steps": 2, "data": parameter}, (("sequence_lengths",),), False),
            " of weights that are not quantized": ({"quantize": False}, (("weights_not_quantized",),), True),
            " of weights that are not quantized and a float": (
                {"quantize": False, "data": parameter},
                (("data_grid",), ("weights_not_quantized",)),
                True,
            ),
            " of weights that are not quantized and a Negative": (
                {"quantize": False, "data": _moved(opset1.negative)},
                (("negative_scale",), ("weights_not_quantized",)),
                True,
            ),
            " of weights that one scale would lose, not quantized": (
                {"quantize": False, "data": _small, "rest": (-1, 0.1)},
                (("weights_lost",),),
                False,
            ),
            " of weights that one scale loses": ({"data": _small, "rest": (-1, 0.1)}, (("weights_lost",),), False),
            " of weights that a scale for each row would keep, not quantized": (
                {"quantize": False, "data": _small, "rest": (-2, 0.02)},
                (("weights_not_quantized",),),
                True,
            ),
            " of weights that a scale for each row would keep": (
                {"data": _small, "rest": (-2, 0.02)},
                (("weights_granularity",),),
                True,
            ),
        }.items()
    ),
    *(
        Case(f"{kind}{name}", lambda kind=kind, more=more: recurrent(kind, **more), (("data_grid",),))
        for kind in sorted(RECURRENT)
        for name, more in {
            " of an interval per feature": {"data": lambda shape: _per_channel(shape)},
            " of an interval per feature in both directions": {
                "data": lambda shape: _per_channel(shape),
                "direction": "bidirectional",
            },
        }.items()
    ),
    Case(
        "GRUSequence with linear_before_reset of a float",
        lambda: recurrent("GRUSequence", linear_before_reset=True, data=parameter),
        (("linear_before_reset",),),
        curable=False,
    ),
    Case(
        "LSTMSequence with a clip and weights that are not quantized",
        lambda: recurrent("LSTMSequence", clip=1.0, quantize=False),
        (("activations",),),
        curable=False,
    ),
    Case(
        "LSTMSequence of weights whose gates are rearranged",
        lambda: recurrent("LSTMSequence", data=parameter, rearranged=True),
        (("no_fake_quantize",), ("weights_grid",)),
    ),
    Case(
        "LSTMSequence of a float with a bias of two parts, as in ONNX",
        lambda: recurrent("LSTMSequence", data=parameter, folded=False),
        (("data_grid",),),
    ),
    Case(
        "GRUSequence with linear_before_reset in both directions",
        lambda: recurrent("GRUSequence", linear_before_reset=True, direction="bidirectional"),
        (("linear_before_reset",),),
        curable=False,
    ),
    *(
        Case(
            f"deconvolution of {read} channels to {made}",
            lambda read=read, made=made: model(
                named(
                    opset1.convolution_backprop_data(
                        quantized(parameter((1, read, 8, 8))),
                        weights((read, made, 2, 2), axis=1),
                        [2, 2],
                        pads_begin=[0, 0],
                        pads_end=[0, 0],
                    )
                )
            ),
        )
        for read, made in ((1, 8), (8, 1), (3, 5), (33, 32))
    ),
    Case("depthwise over three axes", lambda: _of_all_three_axes(1)),
    Case("depthwise over three axes, a zero point", lambda: _of_all_three_axes(1, -0.5), (("zero_point",),)),
    Case(
        "two outputs for each channel over three axes, a zero point",
        lambda: _of_all_three_axes(2, -0.5),
        (("zero_point",),),
    ),
    *(
        Case(
            f"MatMul of ranks {len(first)} and {len(second)}",
            lambda first=first, second=second: _multiplied(first, second),
        )
        for first, second in (
            ((16,), (16,)),
            ((16,), (16, 8)),
            ((4, 16), (16,)),
            ((2, 4, 16), (16,)),
            ((4, 1), (1, 8)),
            ((1, 2, 3, 4, 16), (16, 8)),
            ((1, 2, 3, 4, 16), (1, 2, 3, 16, 8)),
        )
    ),
    Case("LSTMCell", lambda: recurrent("LSTMCell"), (("no_rule",),), curable=False),
    Case("GRUCell", lambda: recurrent("GRUCell"), (("no_rule",),), curable=False),
    Case("RNNCell", lambda: recurrent("RNNCell"), (("no_rule",),), curable=False),
]
CASES = list(_cases())


def main(part: str = "") -> int:
    core = Core()
    judged = [judge(case, core) for case in CASES if part in case.name]
    missed = [each for each in judged if not each.is_true or not each.is_advised]
    for each in missed:
        faults = ["not true"] * (not each.is_true) + ["no working advice"] * (not each.is_advised)
        said = "; ".join(f"{', '.join(sorted(each.said))}: {answer.why} -> {answer.help}" for answer in each.answers)
        print(
            f"{' and '.join(faults)}: {each.case}: runs in {'int8' if each.in_int8 else 'float'}; said {said or 'int8'}"
        )
    count, low = len(judged), sum(each.in_int8 for each in judged)
    true, advised = sum(each.is_true for each in judged), sum(each.is_advised for each in judged if not each.in_int8)
    print(f"{count} cases, {count - low} of them in float")
    print(f"{true} answers are true ({true / max(count, 1):.1%})")
    print(f"{advised} advices for float layers work ({advised / max(count - low, 1):.1%})")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

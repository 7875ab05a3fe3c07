"""Whether the answers of `ovlpt.explain` are true, on small networks with one known cause each.

    python -m tools.answers [PART]        cases whose name holds PART; those that are missed first, then the shares

An answer is true when it says of the layer called "layer" what the plugin executed, and names the cause that was built
in, if the layer is float.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import ovlpt
from ovlpt.device.properties import F32, UNCACHED
from ovlpt.inspect.explain import Answer
from ovlpt.openvino_api import CompiledModel, Core, Model, Node, Output, PartialShape, opset1
from ovlpt.openvino_api import _module as openvino_module

opset3, opset4, opset5, opset8, opset13 = (openvino_module(f"opset{version}") for version in (3, 4, 5, 8, 13))
LAYER = "layer"
IMAGE = (1, 8, 8, 8)
I8 = ovlpt.PrecisionsRestriction.create("Convolution", {0: ["i8"], 1: ["i8"]})


@dataclass(frozen=True)
class Case:
    """A model whose layer called "layer" is float for one known reason; ``codes``: any of them names it, none for int8."""

    name: str
    build: Callable[[], Model]
    codes: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Judged:
    """What was said of a case, and what is so."""

    case: Case
    answers: tuple[Answer, ...]  # for the layer, of which an attention has two
    in_int8: bool  # as executed

    @property
    def is_true(self) -> bool:
        if not self.answers:
            return self.in_int8 and not self.case.codes
        said = {answer.reason.code for answer in self.answers} | {answer.root_reason.code for answer in self.answers}
        return not self.in_int8 and not said.isdisjoint(self.case.codes)


def judge(case: Case, core: Core) -> Judged:
    model = case.build()
    found = ovlpt.explain(model, core=core, **case.settings)
    weighted = {each.name for each in found.operations if each.name == LAYER}
    if not weighted:
        raise AssertionError(f"{case}: nothing is said of the layer")
    answers = tuple(each for each in found if each.name == LAYER)
    compiled = ovlpt.compile_model(model, "CPU", {**F32, **UNCACHED}, core=core, **case.settings)
    return Judged(case, answers, in_int8(compiled, LAYER))


def in_int8(compiled: CompiledModel, name: str) -> bool:
    """Whether the layer that holds an operation has a kernel of int8, read from the execution graph alone; of a fused
    attention, whether all that it reads are integers as well.
    """
    kernels, gives = [], {}
    for node in compiled.get_runtime_model().get_ordered_ops():
        info = {key: _text(value) for key, value in node.get_rt_info().items() if key in _KEYS}
        gives[node.get_friendly_name()] = "" if info["layerType"] == "Const" else info["outputPrecisions"].lower()
        held = {each.removesuffix("_original").split("/")[0] for each in info["originalLayersNames"].split(",")}
        if name in held | {node.get_friendly_name()} and info["layerType"] not in ("Const", "Reorder", "Convert"):
            fused = info["layerType"] in ("Subgraph", "Eltwise")
            integers = info["primitiveType"].lower().rsplit("_", 1)[-1] in ("i8", "u8")
            read = {gives[value.get_node().get_friendly_name()] for value in node.input_values()}
            kernels.append((not fused, integers and (not fused or read <= {"", "i8", "u8"})))
    return max(kernels, default=(False, False))[1]


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


def image(low=0.0, high=2.55, levels: int = 256, name: str = "x") -> Node:
    return quantized(parameter(name=name), low, high, levels, f"quantized_{name}")


def real(shape) -> Node:
    return f32(np.random.default_rng(0).uniform(-1, 1, shape))


def weights(shape, levels: int = 255, low=None, high=None, axis: int | None = 0) -> Node:
    values = real(shape)
    axes = tuple(each for each in range(len(shape)) if each != axis)
    ends = np.abs(values.data).max(axes, keepdims=True)
    return quantized(values, -ends if low is None else low, ends if high is None else high, levels, "weights")


def stored_weights(shape, zero_point: float) -> Node:
    """Integers with their dequantization, one scale for each output channel."""
    values = opset1.constant(np.random.default_rng(0).integers(-90, 90, shape).astype(np.int8))
    scale = f32(np.full((shape[0], *[1] * (len(shape) - 1)), 0.01))
    return opset1.multiply(opset1.subtract(opset1.convert(values, "f32"), f32(zero_point)), scale)


def convolution(data, kernel: Node | None = None, name: str = LAYER) -> Node:
    kernel = weights((8, 8, 1, 1)) if kernel is None else kernel
    return named(opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1]), name)


def deconvolution(data, kernel: Node | None = None) -> Node:
    kernel = weights((8, 8, 2, 2), axis=1) if kernel is None else kernel
    return named(opset1.convolution_backprop_data(data, kernel, [2, 2], pads_begin=[0, 0], pads_end=[0, 0]))


def group_deconvolution(data, kernel: Node | None = None) -> Node:
    kernel = weights((2, 4, 4, 2, 2), axis=None) if kernel is None else kernel
    return named(opset1.group_convolution_backprop_data(data, kernel, [2, 2]))


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


def attention(fused: bool = False, probabilities: bool = False) -> Model:
    inputs = [quantized(parameter((1, 2, 32, 32), name), -1.28, 1.27, name=f"quantized_{name}") for name in "qkv"]
    if fused:
        return model(named(opset13.scaled_dot_product_attention(*inputs, causal=False)))
    products = named(opset1.matmul(inputs[0], inputs[1], False, True), "scores")
    scores = named(opset8.softmax(products, -1), "softmax")
    scores = quantized(scores, 0.0, 1.0) if probabilities else scores
    return model(named(opset1.matmul(scores, inputs[2], False, False)))


def loop(name: str) -> Model:
    """``name``: "inside" or "outside": which of two convolutions, of the body and before the Loop, is the layer."""
    inside = parameter(name="inside")
    body_out = opset1.relu(convolution(inside, name=LAYER if name == "inside" else "body"))
    body = Model([body_out.output(0), opset1.constant(np.array(True)).output(0)], [inside], "body")
    node = opset5.loop(opset1.constant(np.int64(2)), opset1.constant(np.array(True)))
    node.set_function(body)
    node.set_special_body_ports([-1, 1])
    node.set_merged_input(
        inside.get_node() if isinstance(inside, Output) else inside, _before(name), body_out.output(0)
    )
    return model(node.get_iter_value(body_out.output(0), -1))


def _before(name: str) -> Output:
    return opset1.relu(convolution(image(), name=LAYER if name == "outside" else "before")).output(0)


def recurrent(kind: str, **attributes) -> Model:
    """``kind``: "LSTMSequence" and so on, of quantized data and weights."""
    name = kind.removesuffix("Sequence").removesuffix("Cell")
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    of_sequences = kind.endswith("Sequence")
    data = quantized(parameter((2, 3, 8) if of_sequences else (2, 8)), -1.28, 1.27)
    states = [f32(np.zeros((2, 1, 8) if of_sequences else (2, 8))) for _ in range(2 if gates == 4 else 1)]
    one = (1,) if of_sequences else ()
    kernels = [weights((*one, gates * 8, 8), axis=None) for _ in range(2)]
    bias = f32(np.zeros((*one, (gates + bool(attributes.get("linear_before_reset"))) * 8)))
    lengths = [opset1.constant(np.full(2, 3, np.int32))] if of_sequences else []
    activations = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}
    attributes = (
        {"hidden_size": 8, "activations": activations[name]}
        | ({"direction": "forward"} if of_sequences else {})
        | attributes
    )
    inputs = [each.output(0) for each in (data, *states, *lengths, *kernels, bias)]
    factory = openvino_module("utils.node_factory").NodeFactory("opset5")
    return model(named(factory.create(kind, inputs, attributes)).output(0))


CASES = [
    Case("convolution", lambda: model(convolution(image()))),
    Case(
        "convolution, integer weights with a zero point",
        lambda: model(convolution(image(), stored_weights((8, 8, 1, 1), 3.0))),
        ("weights_zero_point",),
        {"native_only": True},
    ),
    Case(
        "convolution, settings that no kernel takes",
        lambda: model(convolution(image())),
        ("no_kernel",),
        {"config": ovlpt.PluginConfig("own", precision_restrictions=(I8,))},
    ),
    Case("deconvolution of data with a zero point", lambda: model(deconvolution(image(-0.5, 2.05))), ("callback",)),
    Case("deconvolution in groups", lambda: model(group_deconvolution(image())), ("no_kernel",)),
    Case("attention", attention, ("lost_upstream",)),
    Case("attention with quantized probabilities", lambda: attention(probabilities=True)),
    Case("ScaledDotProductAttention", lambda: attention(fused=True), ("lost_upstream",)),
    Case("before a Loop", lambda: loop("outside")),
    Case("RNNSequence", lambda: recurrent("RNNSequence"), ("no_rule",)),
    Case("GRUSequence", lambda: recurrent("GRUSequence")),
    Case("LSTMSequence", lambda: recurrent("LSTMSequence")),
    Case("LSTMCell", lambda: recurrent("LSTMCell"), ("no_rule",)),
    Case("GRUCell", lambda: recurrent("GRUCell"), ("no_rule",)),
    Case("RNNCell", lambda: recurrent("RNNCell"), ("no_rule",)),
]


def main(part: str = "") -> int:
    core = Core()
    judged = [judge(case, core) for case in CASES if part in case.name]
    for each in judged:
        if not each.is_true:
            said = "; ".join(f"{answer.root_reason.code}: {answer.reason.text}" for answer in each.answers) or "int8"
            print(f"not true: {each.case}: executed in {'int8' if each.in_int8 else 'float'}, said {said}")
    true = sum(each.is_true for each in judged)
    print(f"{true} of {len(judged)} answers are true ({true / max(len(judged), 1):.1%})")
    return int(true < len(judged))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

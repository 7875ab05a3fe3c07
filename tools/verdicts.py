"""Whether the verdict of `ovlpt report` is true, on networks with one known bottleneck each.

    python -m tools.verdicts [PART]        measures those whose name holds PART on this CPU; misses first, then how many

The tests ask the same of the same networks with times that are given (`Case.times`), so that no machine decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import ovlpt
from ovlpt.inspect.report import Report, report
from ovlpt.inspect.report.causes import memory_bound
from ovlpt.openvino_api import Core, Model, Node, openvino_module, opset1
from ovlpt.reasons import Cause
from tools.answers import (
    DATA,
    attention,
    deconvolution,
    f32,
    i64,
    model,
    named,
    opset5,
    opset8,
    parameter,
    quantized,
    real,
    recurrent,
    stored_weights,
    weights,
)

CHANNELS, SIZE = 64, 56
IMAGE = (1, CHANNELS, SIZE, SIZE)
KERNEL = (CHANNELS, CHANNELS, 3, 3)
FORBIDDEN = ovlpt.PluginConfig("own", precision_restrictions=(ovlpt.PrecisionsRestriction.create("Convolution", {}),))


@dataclass(frozen=True)
class Case:
    """A network whose bottleneck is known. ``cause`` and ``code`` of the verdict, and the ``operation`` that it names.

    ``times``: milliseconds of each layer of a type, of others 0.01; ``speed``: that of int8 as a multiple of float's.
    ``settings``: of `ovlpt.report`. ``measurable``: whether a CPU with VNNI has this bottleneck, too.
    """

    name: str
    build: Callable[[], Model]
    cause: Cause
    operation: str | None = None
    code: str | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    speed: float = 1.3
    settings: Mapping[str, object] = field(default_factory=dict)
    measurable: bool = True

    def __str__(self) -> str:
        return self.name


def convolution(data: Node, kernel: Node | None = None, name: str = "layer", pad: int = 1) -> Node:
    kernel = weights(KERNEL) if kernel is None else kernel
    return named(opset1.convolution(data, kernel, [1, 1], [pad, pad], [pad, pad], [1, 1]), name)


def image(shape=IMAGE, name: str = "x") -> Node:
    return quantized(parameter(shape, name), name=f"quantized_{name}")


def layers(data: Node, count: int = 3) -> Node:
    """Convolutions in int8."""
    for at in range(count):
        data = quantized(opset1.relu(convolution(data, name=f"before{at}")), name=f"quantized{at}")
    return data


def moves() -> Model:
    """Layers with small kernels; between them turned, cut in three parts along rows, and joined in another order."""
    size, channels = 2 * SIZE, 16
    data = convolution(image((1, 8, size, size)), weights((channels, 8, 3, 3)), "first")
    data = quantized(opset1.relu(data), name="small")  # little to convert at either end
    for at in range(4):
        data = opset1.relu(convolution(data, weights((channels, channels, 1, 1)), f"before{at}", pad=0))
        data = quantized(data, name=f"quantized{at}")
        for _ in range(3):
            data = opset1.transpose(data, i64(0, 1, 3, 2))
            parts = opset1.variadic_split(data, i64(3), i64(22, 44, size - 66))
            data = opset1.concat([parts.output(2), parts.output(0), parts.output(1)], 3)
    return model(convolution(data, weights((8, channels, 3, 3))))


def island() -> Model:
    """Three of a Softmax, quantized after it."""
    data = image()
    for at in range(3):
        data = quantized(opset8.softmax(layers(data, 1), 1), 0.0, 1.0, name=f"after{at}")
    return model(convolution(data))


def head() -> Model:
    data = opset1.reshape(layers(image(), 1), i64(SIZE, -1), False)
    return model(named(opset1.matmul(opset1.relu(data), real((1000, CHANNELS * SIZE)), False, True)))


def depthwise() -> Model:
    data = image((1, 256, SIZE, SIZE))
    for at in range(6):
        kernel = weights((256, 1, 1, 3, 3))
        data = opset1.group_convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1])
        data = quantized(opset1.relu(data), name=f"quantized{at}")
    return model(data)


def tiny() -> Model:
    data = parameter((1, 16))
    for at in range(4):
        data = opset1.relu(opset1.matmul(quantized(data, name=f"quantized{at}"), weights((16, 16)), False, True))
    return model(data)


def float_branch() -> Model:
    joined = named(opset1.concat([layers(image(), 1), opset1.relu(parameter(IMAGE, "other"))], 1), "joined")
    return model(convolution(joined, weights((CHANNELS, 2 * CHANNELS, 3, 3))))


def different_scales() -> Model:
    """Intervals per channel on one branch, so that no common one is left."""
    high = np.linspace(0.5, 2.5, CHANNELS).reshape(1, CHANNELS, 1, 1)
    other = quantized(parameter(IMAGE, "other"), 0 * high, high, name="by_channel")
    joined = named(opset1.concat([image(), other], 1), "joined")
    return model(convolution(joined, weights((CHANNELS, 2 * CHANNELS, 3, 3))))


def gate() -> Model:
    """x * sigmoid(f(x)), not quantized after the product."""
    data = layers(image(), 1)
    scale = opset1.sigmoid(convolution(data, name="gate"))
    return model(convolution(opset1.multiply(data, scale)))


def long_stride() -> Model:
    kernel = weights((CHANNELS, CHANNELS, 8, 8), axis=1)
    data = image((1, CHANNELS, 28, 28))
    return model(named(opset1.convolution_backprop_data(data, kernel, [4, 4], pads_begin=[0, 0], pads_end=[0, 0])))


def with_zero_point() -> Model:
    data = quantized(parameter((1, CHANNELS, SIZE, SIZE)), -0.5, 2.05)
    return model(deconvolution(data, weights((CHANNELS, CHANNELS, 2, 2), axis=1)))


def dynamic_weights() -> Model:
    kernel = parameter(KERNEL, "kernel")
    return model(convolution(image(), kernel))


def looped() -> Model:
    """Four iterations of a convolution whose data nothing quantizes, after one in int8."""
    inside = parameter(IMAGE, "inside")
    out = opset1.relu(convolution(inside))
    node = opset5.loop(opset1.constant(np.int64(4)), opset1.constant(np.array(True)))
    node.set_function(Model([out.output(0), opset1.constant(np.array(True)).output(0)], [inside], "body"))
    node.set_special_body_ports([-1, 1])
    node.set_merged_input(inside, layers(image(), 1).output(0), out.output(0))
    return model(node.get_iter_value(out.output(0), -1))


def enlarged() -> Model:
    """A linear interpolation between two layers."""
    small = layers(image((1, CHANNELS, SIZE // 2, SIZE // 2)), 1)
    attributes = {
        "mode": "linear_onnx", "shape_calculation_mode": "sizes", "pads_begin": [0] * 4, "pads_end": [0] * 4,
        "coordinate_transformation_mode": "half_pixel",
    }  # fmt: skip
    inputs = [each.output(0) for each in (small, i64(SIZE, SIZE), f32([1, 1]), i64(2, 3))]
    made = openvino_module("utils.node_factory").NodeFactory("opset4").create("Interpolate", inputs, attributes)
    return model(convolution(named(made, "between")))


def pooled() -> Model:
    """As the PyTorch front end writes a pooling with ``ceil_mode``."""
    node = openvino_module("opset14").max_pool(layers(image(), 1), [1, 1], [1, 1], [0, 0], [0, 0], [2, 2], "ceil_torch")
    return model(convolution(named(node.output(0).get_node(), "pool").output(0)))


def of_data(name: str) -> Callable[[], Model]:
    """One layer after what `tools.answers` has for its data."""
    return lambda: model(convolution(DATA[name][0](IMAGE)))


def on_layers(kernel: Callable[[], Node] = lambda: weights(KERNEL), count: int = 0) -> Callable[[], Model]:
    """One layer with these weights after ``count`` of int8."""
    return lambda: model(convolution(layers(image(), count), kernel()))


_ON, _G, _H = Cause.PLACEMENT, Cause.GRAPH, Cause.HARDWARE
_FLOAT = {"Convolution": 1.9, "Reorder": 0.2}  # int8 takes a third of it
CASES = [
    Case("attention", lambda: attention(shape=(1, 8, 512, 64)), _ON, "Softmax", "lost_upstream", {"Subgraph": 0.5, "MatMul": 4.0, "Softmax": 3.0}),
    Case("data movement", moves, Cause.MOVEMENT, None, "data_movement",
         {"Transpose": 0.6, "Split": 0.2, "Concatenation": 0.1, "Convolution": 0.4}, 0.78),
    Case("float island", island, _G, "Softmax", "no_rule", {"Softmax": 0.2, "Reorder": 0.7, "Convolution": 0.4}),
    Case("head that is not quantized", head, _ON, "MatMul", "weights_not_quantized",
         {"FullyConnected": 10.0, "Convolution": 0.4}),
    Case("memory bound", depthwise, Cause.MEMORY, "Convolution", "few_products",
         {"Convolution": 0.2, "Reorder": 0.2}, 0.97, measurable=False),
    Case("tiny", tiny, Cause.TOO_SMALL, times={"FullyConnected": 0.001}, speed=0.98),
    Case("bf16 faster", on_layers(count=2), _H, times={"Convolution": 0.8, "Reorder": 0.03}, speed=0.9, measurable=False),
    Case("float branch of a Concat", float_branch, _ON, "Concat", "not_quantized", _FLOAT),
    Case("Loop", looped, _G, "Loop", "body", {"TensorIterator": 8.0, "Convolution": 0.4}),
    Case("deconvolution", long_stride, _H, "ConvolutionBackpropData", "no_kernel", {"Deconvolution": 4.0}, 1.0),
    Case("float first layer", of_data("nothing quantized"), _ON, "Convolution", "no_fake_quantize", _FLOAT, 1.0),
    Case("weights that are not quantized", on_layers(lambda: real(KERNEL)), _ON, "Convolution", "weights_not_quantized",
         _FLOAT, 0.8),
    Case("sigmoid gate", gate, _ON, "Convolution", "no_fake_quantize", _FLOAT),
    Case("interpolation", enlarged, _ON, "Interpolate", "lost_upstream", _FLOAT | {"Interpolate": 0.4}),
    Case("zero point", with_zero_point, _ON, "FakeQuantize", "zero_point", {"Deconvolution": 2.6}, 0.9),
    Case("different scales at a Concat", different_scales, _ON, "Convolution", "per_channel_activations", _FLOAT, 0.9),
    Case("512 levels", of_data("512 levels"), _ON, "FakeQuantize", "levels", _FLOAT, 0.9),
    Case("asymmetric weights", on_layers(lambda: stored_weights(KERNEL, 3.0)), _ON, "Convolution", "weights_zero_point",
         _FLOAT, 0.5, {"native_only": True}),
    Case("weights from an input", on_layers(lambda: parameter(KERNEL, "kernel")), _ON, "Convolution",
         "dynamic_weights", _FLOAT, 0.9),
    Case("LSTMCell", lambda: recurrent("LSTMCell", 1024), _G, "LSTMCell", "no_rule", {"RNNCell": 9.0}, 0.98),
    Case("restriction", on_layers(count=2), Cause.SETTINGS, "Convolution", "restriction", _FLOAT, 0.9,
         {"config": FORBIDDEN}),
    Case("pooling without a rule", pooled, _ON, "MaxPool", "lost_upstream", _FLOAT, 1.1, {"native_only": True}),
    Case("nothing", on_layers(count=9), Cause.NOTHING, times={"Convolution": 0.4, "Reorder": 0.05}, speed=2.9),
]  # fmt: skip


def is_true(case: Case, found: Report) -> bool:
    """Whether the verdict names the bottleneck of the case, and no other."""
    if found.verdict.cause is not case.cause:
        return False
    return case.code is None or any(
        case.code == each.code and case.operation in (None, each.operation)
        for each in (*found.bottlenecks, *memory_bound(found.layers))
        if f"because of {each.operation} {each.roots[0]}" in found.verdict.text and each.text in found.verdict.text
    )


def main(part: str = "") -> int:
    core = Core()
    judged = []
    for case in (each for each in CASES if part in each.name and each.measurable):
        found = report(case.build(), core=core, **case.settings)
        judged.append((is_true(case, found), case.name, found.verdict.text))
    for true, name, text in sorted(judged):
        print(f"{'true' if true else 'MISSED'}: {name}: {text}")
    true = sum(each for each, *_ in judged)
    print(
        f"{true} of {len(judged)} verdicts are true; not measured: {', '.join(each.name for each in CASES if not each.measurable)}"
    )
    return int(true < len(judged))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

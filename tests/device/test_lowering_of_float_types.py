"""Floats that are asked for in f16. The numbers tell something on a CPU that computes in f16 only: another one takes the
hint for f32, or for bf16 where it computes in that. That the nodes are marked is told on any.
"""

from __future__ import annotations

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import data
from ovlpt.device import PluginLowering
from ovlpt.device.compile import inference_precision
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import MARKS_TYPES, RELEASE, Core, Manager, Model, Node, NodeFactory, Type, opset1
from tests.conftest import inputs_of
from tests.graphs import opset5
from tests.lowered import recurrent
from tests.networks import (
    const,
    convolution,
    encoder,
    int8_weights,
    model,
    parameter,
    quantized,
    residual,
)
from tests.test_bodies import with_if, with_loop
from tools.fuzz.graphs import Form, Graph, Step, reference
from tools.fuzz.graphs import build as build_graph
from tools.fuzz.numbers import as_told, dropped_in, run

F32, IN_F16 = ({"INFERENCE_PRECISION_HINT": each} for each in ("f32", "f16"))
PRECISION = None if MARKS_TYPES else "f16"  # a release that has no mark for f16 alone has to be told
MOVING = ("Reorder", "Reshape")
LARGE = 1e6  # f16 ends at 65504


def large() -> Model:
    """Integers, sums and floats beyond f16; the first sums of integers are."""
    x = parameter([1, 16, 8, 8])
    first = opset1.convolution(
        quantized(x, -LARGE, LARGE), int8_weights([16, 16, 3, 3]), [1, 1], [1, 1], [1, 1], [1, 1]
    )
    second = opset1.convolution(
        quantized(opset1.relu(first), 0, 2 * LARGE), int8_weights([8, 16, 1, 1], seed=1), [1, 1], [0, 0], [0, 0], [1, 1]
    )
    return model([opset1.add(second, const(LARGE))], [x])


def small() -> Model:
    """Scales below the smallest number of f16."""
    x = parameter([1, 16, 8, 8])
    weights = opset1.multiply(int8_weights([16, 16, 3, 3]), const(1e-4))
    node = opset1.convolution(quantized(x, 0, 2.55e-4), weights, [1, 1], [1, 1], [1, 1], [1, 1])
    return model([opset1.multiply(node, const(1e6)), opset1.relu(node)], [x])


def wide() -> Model:
    """65536 levels beside an int8 layer, as ONNX files of mixed precision have them."""
    x = parameter([1, 16, 8, 8])
    node = quantized(convolution(quantized(x, 0, 2.55), 16, 16), -8, 8, 65536)
    return model([convolution(quantized(opset1.sigmoid(node), 0, 1.02), 8, 16)], [x])


NETWORKS = {
    "large": (large, LARGE),
    "small": (small, 1e-4),
    "wide": (wide, 1),
    "residual": (residual, 1),
    "zero points": (encoder, 1),
    "recurrent": (lambda: recurrent()[0], 1),
    "branches": (with_if, 1),
    "loop": (with_loop, 1),
}


def compiled_twice(compile_with, hint=IN_F16, marked=True):
    """Without f16 and with the hint for it: in bf16 and in f32 the plugin computes what it says of itself."""
    in_f16 = compile_with(hint)
    # without marks `ovlpt.compile_model` keeps the plugin from f16, and with that from bf16
    in_bf16 = marked and in_f16.get_property("INFERENCE_PRECISION_HINT") == Type.bf16
    return compile_with({"INFERENCE_PRECISION_HINT": "bf16"} if in_bf16 else F32), in_f16


def saved(net, core, folder):
    openvino.save_model(
        ovlpt.transform(net, core=core, precision=PRECISION), folder / "net.xml", compress_to_fp16=False
    )
    return core.read_model(folder / "net.xml")


def in_a_pipeline(net, core, folder):
    manager, net = Manager(), net.clone()
    manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core, "CPU")))
    manager.register_pass(PluginLowering("CPU", precision=PRECISION or "f32"))
    manager.run_passes(net)
    return net


def natively(net, core, folder):
    return ovlpt.transform(net, core=core, native_only=True, precision=PRECISION)


def layers(compiled) -> list[tuple[str, str]]:
    return sorted((layer.layer_type, layer.exec_type) for layer in ovlpt.execution_types(compiled).executed)


@pytest.mark.parametrize("change", [saved, in_a_pipeline, natively], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_compiled_with_the_hint(name, change, core, tmp_path):
    """Layers were parted from their post-operations, scales lost bits, sums were infinite, and some models threw."""
    build, factor = NETWORKS[name]
    ready = change(build(), core, tmp_path)
    properties = ovlpt.lpt_properties(ready, "CPU")
    assert_unmoved(*compiled_twice(lambda hint: core.compile_model(ready, "CPU", {**hint, **properties})), factor)


@pytest.mark.parametrize("hint", [IN_F16, {"DEVICE_PROPERTIES": {"CPU": IN_F16}}], ids=lambda each: next(iter(each)))
@pytest.mark.parametrize("name", NETWORKS)
def test_compile_model(name, hint, core):
    build, factor = NETWORKS[name]
    assert_unmoved(
        *compiled_twice(lambda each: ovlpt.compile_model(build(), config=each, core=core), hint, MARKS_TYPES), factor
    )


def in_bf16_in_part(in_f16) -> bool:
    """Whether the hint is taken for bf16, and types are kept by a mark that does not reach Reorders: from 2025 to 2026.2."""
    says = in_f16.get_property("INFERENCE_PRECISION_HINT")
    return RELEASE >= (2025, 0) and not MARKS_TYPES and says == Type.bf16


def assert_unmoved(without, in_f16, factor):
    values = [factor * each for each in inputs_of(without)]
    rounded = in_bf16_in_part(in_f16)
    computing = [[each for each in layers(one) if not (rounded and each[0] in MOVING)] for one in (in_f16, without)]
    assert computing[0] == computing[1]
    for found, expected in zip(in_f16(values).values(), without(values).values(), strict=True):
        assert np.isfinite(expected).all()
        tolerance = 2**-8 if rounded else 1e-5
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=0.1 * tolerance * np.abs(expected).max())


def test_the_bundled_network(core):
    assert_unmoved(
        *compiled_twice(lambda hint: ovlpt.compile_model(data.digits(), config=hint, core=core), marked=MARKS_TYPES), 1
    )


@pytest.mark.parametrize("build", [residual, encoder, lambda: recurrent()[0]])
def test_each_node_with_real_numbers_is_marked(build, core):
    ready = ovlpt.transform(build(), core=core, precision="f16")
    for node in ready.get_ops():
        values = (*node.outputs(), *node.input_values())
        if any(value.get_element_type().is_real() for value in values):
            assert {"DisablePrecisionConversion_0", "precise_0"} & set(node.get_rt_info()), node


def dynamic(length) -> Model:
    """As ONNX's DynamicQuantizeLinear and MatMulInteger are read: a product of 512 integers of 8 bits each."""
    x = parameter([length, 512])
    scale = opset1.divide(opset1.reduce_max(x, const([0, 1], "i64"), True), const(255))
    rounded = opset1.clamp(opset5.round(opset1.divide(x, scale)), 0.0, 255.0)
    integers = opset1.convert(opset1.convert(rounded, "u8"), "i32")
    kernel = const(np.random.default_rng(0).integers(30, 60, (512, 8)), "i8")
    product = opset1.matmul(integers, opset1.convert(kernel, "i32"), False, False)
    return model([opset1.multiply(opset1.convert(product, "f32"), opset1.multiply(scale, const(0.01)))], [x])


@pytest.mark.parametrize("form", ["compiled", "saved"])
@pytest.mark.parametrize("length", [3, -1, 1])
@pytest.mark.filterwarnings("ignore:.*passes unchanged")
def test_sums_of_a_dynamic_quantization(core, tmp_path, length, form):
    """They were infinite, and what was computed of them no number, in stock and in ovlpt."""
    ready = dynamic(length)
    if form == "saved":
        ready = saved(ready, core, tmp_path)
    values = np.random.default_rng(1).uniform(0, 1, (3 if length < 0 else length, 512)).astype(np.float32)
    without, in_f16 = (ovlpt.compile_model(ready, config=hint, core=core) for hint in (F32, IN_F16))
    found, expected = (np.array(compiled([values])[0]) for compiled in (in_f16, without))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.filterwarnings("ignore:.*passes unchanged")
def test_sums_of_a_dynamic_quantization_stay_in_f32(core):
    """On a CPU that computes in bf16 or f32 the numbers tell nothing."""
    keys = {"DisablePrecisionConversion_0", "precise_0"}
    marked = [
        node
        for node in ovlpt.transform(dynamic(3), core=core, precision="f16").get_ops()
        if keys & set(node.get_rt_info())
    ]
    assert [node.get_type_name() for node in marked] == ["Convert"]


@pytest.mark.parametrize(
    ("shape", "scales"), [([1, 8, 4], [1.5]), ([1, 8, 6, 6], [2]), ([1, 8, 6, 6], [2, 1.5])], ids=str
)
def test_an_interpolate_by_scales(shape, scales, core):
    """The plugin made a new one without the mark, and its scales were no constant: it threw, or ran a reference kernel."""
    x, rank = parameter(shape), len(shape)
    net = model([interpolate_by(quantized(x, -1.28, 1.27), scales, range(rank - len(scales), rank))], [x])
    assert_unmoved(
        *compiled_twice(lambda hint: ovlpt.compile_model(net, config=hint, core=core), marked=MARKS_TYPES), 1
    )


def interpolate_by(data: Node, scales, axes) -> Node:
    rank = len(data.get_output_shape(0))
    attributes = {
        "mode": "linear_onnx", "shape_calculation_mode": "scales", "coordinate_transformation_mode": "half_pixel",
        "pads_begin": [0] * rank, "pads_end": [0] * rank,
    }  # fmt: skip
    inputs = [data, const([1] * len(scales), "i64"), const(scales), const(list(axes), "i64")]
    return NodeFactory("opset4").create("Interpolate", [each.output(0) for each in inputs], attributes)


IN_HALF = {
    "pairs around a layer": [
        Step("Parameter", (), 1444670721, (1, 4, 5, 7)),
        Step("QuantizeDequantize", ((0, 0),), 1593638934, (1, 4, 5, 7)),
        Step("Pointwise", ((1, 0),), 744989708, (1, 8, 5, 7)),
        Step("QuantizeDequantize", ((2, 0),), 1012294291, (1, 8, 5, 7)),
    ],
    "a constant between layers": [
        Step("Parameter", (), 34715732, (1, 4, 4, 7)),
        Step("FakeQuantize", ((0, 0),), 1722353797, (1, 4, 4, 7)),
        Step("Pointwise", ((1, 0),), 808963203, (1, 4, 3, 5)),
        Step("AddConstant", ((2, 0),), 1631208752, (1, 4, 3, 5)),
        Step("Relu", ((3, 0),), 486570723, (1, 4, 3, 5)),
        Step("FakeQuantize", ((4, 0),), 1022302152, (1, 4, 3, 5)),
        Step("Pointwise", ((5, 0),), 489105816, (1, 16, 3, 5)),
        Step("Mask", ((6, 0),), 34659468, (1, 16, 3, 5)),
    ],
    "16 bits": [
        Step("Parameter", (), 1241867259, (2, 12)),
        Step("FakeQuantize", ((0, 0),), 185403991, (2, 12)),
        Step("Softmax", ((1, 0),), 1705931876, (2, 12)),
        Step("QuantizeDequantizeWide", ((2, 0),), 1837838982, (2, 12)),
    ],
}


@pytest.mark.parametrize("steps", IN_HALF.values(), ids=IN_HALF)
def test_a_model_of_f16_in_a_pipeline_computes_in_f32(steps, core, tmp_path):
    """Its own types were kept: the plugin threw, or constants were added to integers in f16."""
    net = build_graph(Graph(tuple(steps), ((len(steps) - 1, 0),), 2, Form("f16")))
    ready = in_a_pipeline(net, core, tmp_path)
    for node in ready.get_ops():
        if node.get_type_name() not in ("Parameter", "Result") and node.output(0).get_element_type() == Type.f16:
            assert {target.get_node().get_type_name() for target in node.output(0).get_target_inputs()} == {"Result"}
    assert_unmoved(*compiled_twice(lambda hint: core.compile_model(ready, "CPU", hint)), 1)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "f32"),
        ({"INFERENCE_PRECISION_HINT": "bf16"}, "f32"),
        ({"INFERENCE_PRECISION_HINT": "f16"}, "f16"),
        ({"INFERENCE_PRECISION_HINT": Type.f16}, "f16"),
        ({"EXECUTION_MODE_HINT": "ACCURACY"}, "f32"),
        ({"DEVICE_PROPERTIES": {"CPU": IN_F16, "GPU": F32}}, "f16"),
        ({"DEVICE_PROPERTIES": {"GPU": IN_F16}}, "f32"),
        ({"DEVICE_PROPERTIES_CPU": IN_F16}, "f16"),
        ({"EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_PRECISION_HINT": "f16"}, "f16"),
    ],
    ids=str,
)
def test_whether_the_plugin_changes_the_types_of_the_model(properties, expected, core):
    assert inference_precision(core, "CPU", properties) == expected


def test_a_hint_of_the_core():
    core = Core()
    core.set_property("CPU", IN_F16)
    build, factor = NETWORKS["zero points"]
    # asked so, a CPU that computes in bf16 computes in f32
    assert_unmoved(ovlpt.compile_model(build(), config=F32, core=core), ovlpt.compile_model(build(), core=core), factor)


def test_a_quantization_in_f16_whose_dequantization_is_in_f32():
    """Without the common optimizations, after branches: the plugin multiplied the ends, in f16, with the scale, and threw."""
    kinds = [
        ("Parameter", 289547160, (2, 1, 8)),
        ("LayersInBranches", 782115779, (2, 1, 8)),
        ("MultiplyConstant", 1697150320, (2, 1, 8)),
        ("FakeQuantize", 1475454438, (2, 1, 8)),
        ("Pointwise", 760878682, (2, 8, 8)),
        ("Relu", 1411301693, (2, 8, 8)),
        ("FakeQuantize", 406284590, (2, 8, 8)),
        ("LSTM", 1902374525, (2, 1, 8, 4)),
    ]
    steps = (Step(kind, ((i - 1, 0),) if i else (), seed, shape) for i, (kind, seed, shape) in enumerate(kinds))
    graph = Graph(tuple(steps), ((7, 1),), 0, Form("f16", "both"))
    lowered = dropped_in(build_graph(graph))
    expected = simulate(reference(graph), Core())(graph.inputs())[0]
    np.testing.assert_allclose(run(lowered, graph.inputs(), as_told(lowered))[0], expected, atol=0.05)

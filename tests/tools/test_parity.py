"""The result equals that of the native pass, driven with the same restrictions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import openvino
import pytest
from ovlpt.plugin_config import arm

from ovlpt import LowPrecision, Params, PassConfig
from ovlpt.cleanup.fq_stripping import FQStrippingTransformation
from ovlpt.config import PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.openvino_api import (
    RELAXES_EVERY_OPSET,
    RELEASE,
    ConvertFP32ToFP16,
    Manager,
    Model,
    Node,
    NodeFactory,
    PartialShape,
)
from ovlpt.trace import InputError
from tests.conftest import Transformed
from tests.graphs import (
    CASES,
    dequantization,
    f32,
    fake_quantize,
    i64,
    integers,
    model,
    opset1,
    opset3,
    opset5,
    opset6,
    opset8,
    opset12,
    parameter,
    run,
    weights,
)
from tests.main.test_recurrent_cell import of_open_batch, sequence
from tests.test_operations_on_graphs import quantized, variants
from tools.parity.compare import compare
from tools.parity.driver import NativePassFails, program, run_native, run_native_with, strip_native

pytestmark = [
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="the native pass is driven by a C++ program and there is no g++"
    ),
    pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one"),
]

strips = pytest.mark.skipif(
    RELEASE < (2025, 4), reason="the native library has no FQStrippingTransformation before 2025.4"
)

NOT_ON_CPU = "MultiplyToGroupConvolutionTransformation"
PRECISIONS = (
    PrecisionsRestriction.create("Convolution", {0: ["u8"], 1: ["i8"]}),
    PrecisionsRestriction.create("GroupConvolution", {0: ["u8"], 1: ["i8"]}),
    PrecisionsRestriction.create("MatMul", {0: ["u8", "i8"], 1: ["i8"]}),
)
GRANULARITY = (QuantizationGranularityRestriction.create("Convolution", [0]),)
NATIVE = Params(native_only=True)
# The native pass fails on these: it leaves a constant of rank 2 after data of rank 4.
NATIVE_FAILS = {("Broadcast rank", 1)}


def model_after(graph, precisions=(), granularity=(), params=NATIVE, disabled=()) -> Model:
    manager = Manager()
    manager.register_pass(LowPrecision(precisions, granularity, params, PassConfig(set(disabled))))
    manager.run_passes(graph)
    return graph


def assert_native(graph, precisions=(), granularity=(), params=NATIVE, disabled=(), on_cpu=True) -> None:
    disabled = {*disabled, *([NOT_ON_CPU] if on_cpu else ())}
    expected = run_native(graph, precisions, granularity, params, disabled=disabled)
    result = compare(expected, model_after(graph, precisions, granularity, params, disabled))
    assert result.equal, f"{result.matched} / {result.total}: {result.differences}"


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic_batch"])
@pytest.mark.parametrize("update", [True, False], ids=["", "precisions_kept"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_operation(case, update, dynamic):
    """Every granularity, with and without a zero point."""
    chosen = [variant for variant in variants(case, dynamic) if (case.name, variant.axis) not in NATIVE_FAILS]
    assert_native(quantized(case, chosen, dynamic), params=Params(update, native_only=True))


SHAPE = (1, 3, 4, 4)


def qdq(data, low: str = "u8", zero_point: int | None = 128):
    """A quantization as the ONNX front end gives it."""
    ends = (0, 255) if low == "u8" else (-128, 127)
    quantize = opset1.fake_quantize(data, f32(-1.28), f32(1.27), f32(ends[0]), f32(ends[1]), 256)
    node = opset1.convert(opset1.convert(quantize, low), "f32")
    if zero_point is not None:
        stored = opset1.constant(np.array(zero_point, np.uint8 if low == "u8" else np.int8))
        node = opset1.subtract(node, opset1.convert(stored, "f32"))
    return opset1.multiply(node, f32(0.01))


def convolution(data, channels: int = 3, zero_point=None):
    kernel = weights([4, channels, 1, 1], np.linspace(0.01, 0.02, 4).reshape(4, 1, 1, 1), zero_point)
    return opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1])


QDQ = {
    "u8 with a zero point": lambda: convolution(qdq(parameter(SHAPE))),
    "u8": lambda: convolution(qdq(parameter(SHAPE), zero_point=None)),
    "i8 composed to u8": lambda: convolution(qdq(parameter(SHAPE), "i8", None)),
    "i8 with a zero point": lambda: convolution(qdq(parameter(SHAPE), "i8", 5)),
    "weights with a zero point": lambda: convolution(qdq(parameter(SHAPE)), zero_point=3.0),
    "nothing quantized after": lambda: opset1.sigmoid(qdq(parameter(SHAPE))),
    "two inputs": lambda: opset1.add(
        convolution(qdq(parameter(SHAPE))), convolution(qdq(parameter(SHAPE, "x2"), "i8", 1))
    ),
    "product of activations": lambda: opset1.matmul(
        qdq(parameter((2, 4))), qdq(parameter((4, 4), "x2"), "i8", 0), False, False
    ),
    "quantized Concat": lambda: convolution(qdq(opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1)), 6),
    "Concat of quantized": lambda: convolution(
        opset1.concat([qdq(parameter(SHAPE)), qdq(parameter(SHAPE, "x2"))], 1), 6
    ),
    "integers given": lambda: convolution(dequantization(parameter(SHAPE, precision=np.uint8), 0.1, 3.0)),
    "Convert alone": lambda: opset1.convert(
        opset1.fake_quantize(parameter(SHAPE), f32(-1), f32(1), f32(0), f32(255), 256), "u8"
    ),
}


@pytest.mark.parametrize("restricted", [True, False], ids=["cpu", "unrestricted"])
@pytest.mark.parametrize("name", QDQ)
def test_quantize_dequantize(name, restricted):
    assert_native(model(QDQ[name]()), PRECISIONS if restricted else (), GRANULARITY if restricted else ())


PREREQUISITES = {
    "Concat before FakeQuantize": lambda: convolution(
        fake_quantize(opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1), 0.0, 2.55), 6
    ),
    "Concat and Relu before FakeQuantize": lambda: convolution(
        fake_quantize(opset1.relu(opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1)), 0.0, 2.55), 6
    ),
    "per channel after Concat": lambda: opset1.relu(
        fake_quantize(
            opset1.concat([parameter(SHAPE), parameter(SHAPE, "x2")], 1), np.zeros((1, 6, 1, 1)), np.linspace(1, 2, 6).reshape(1, 6, 1, 1)
        )
    ),
    "reshaped weights": lambda: opset1.matmul(
        fake_quantize(parameter((2, 4)), 0.0, 2.55),
        opset1.reshape(dequantization(integers((2, 3, 4)), np.full((1, 1, 4), 0.5)), np.array([6, 4]), False),
        False, True,
    ),
    "transposed weights": lambda: opset1.matmul(
        fake_quantize(parameter((2, 4)), 0.0, 2.55),
        opset1.transpose(dequantization(integers((5, 4)), np.linspace(1, 2, 5).reshape(5, 1)), np.array([1, 0])),
        False, False,
    ),
    "constants in sequence": lambda: opset1.multiply(
        opset1.add(opset1.add(parameter(SHAPE), f32(1.0)), f32(2.0)), f32(3.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PREREQUISITES)
def test_prerequisites(name):
    assert_native(model(PREREQUISITES[name]()), PRECISIONS, GRANULARITY)


def in_f16(*results):
    """All real numbers of the model in f16."""
    graph = model(*results)
    manager = Manager()
    manager.register_pass(ConvertFP32ToFP16())
    manager.run_passes(graph)
    return graph


def open_channels(operation):
    """The constant after a quantization by channels tells how many there are."""
    ends = np.linspace(1, 2, 3).reshape(1, 3, 1)
    return model(operation(fake_quantize(parameter((1, -1, 4)), -ends, ends, 255), f32(ends - 1.2)))


def padded(begin, end, mode="constant", ends=1.27):
    data = fake_quantize(parameter((1, 3, 5, -1)), -0.8 * ends, ends)
    return model(opset12.pad(data, i64(*begin), i64(*end), mode, f32(0.5)))


CHANNELS = np.linspace(1, 2, 3).reshape(1, 3, 1, 1)
FORMS = {
    "Add, open channels": lambda: open_channels(opset1.add),
    "Multiply, open channels": lambda: open_channels(opset1.multiply),
    "Pad by nothing, dynamic size": lambda: padded((0, 0, 0, 0), (0, 0, 0, 0)),
    "Pad that crops": lambda: padded((0, -1, -1, 0), (0, 0, -1, 0), ends=CHANNELS),
    "Pad that crops and adds": lambda: padded((0, 0, -1, 0), (0, 0, 2, 0)),
    "Pad that crops and adds, edge": lambda: padded((0, 1, -1, 0), (0, -2, 2, 0), "edge", CHANNELS),
    "constants along two axes, f16": lambda: in_f16(
        opset1.multiply(opset1.add(parameter(SHAPE), f32(np.linspace(-1, 1, 4))), f32(CHANNELS))
    ),
    "constants along two axes before Split, f16": lambda: in_f16(
        opset1.split(opset1.multiply(opset1.add(parameter(SHAPE), f32(np.linspace(-1, 1, 4))), f32(CHANNELS)), 1, 3)
    ),
    "a zero point of equal values before Split, f16": lambda: in_f16(
        opset1.split(fake_quantize(parameter(SHAPE), -CHANNELS / 4, CHANNELS), 2, 2)
    ),
    "a zero point next to zero, f16": lambda: in_f16(convolution(fake_quantize(parameter(SHAPE), -2.484, 2.266, 16))),
}


@pytest.mark.parametrize("update", [True, False], ids=["", "precisions_kept"])
@pytest.mark.parametrize("name", FORMS)
def test_open_sizes_crops_and_f16(name, update):
    assert_native(FORMS[name](), params=Params(update, default_precisions=("i8", "u8"), native_only=True))


def test_a_failure_of_the_driver_is_none_of_the_native_pass():
    def unknown(node) -> bool:
        return False

    data = fake_quantize(parameter((1, 2, 6, 8)), -1.0, 1.55)
    product = opset1.matmul(data, weights([12, 8], np.linspace(1, 2, 12).reshape(12, 1)), False, True)
    graph = model(opset1.max_pool(product, [1, 2], [0, 0], [0, 0], [1, 2]))
    with pytest.raises(InputError, match=r"the driver of the native pass fails: .*no predicate unknown") as caught:
        run_native(graph, callbacks={"AddTransformation": unknown})
    assert not isinstance(caught.value, NativePassFails)
    with pytest.raises(NativePassFails, match="MaxPoolTransformation: Argument shapes are inconsistent"):
        run_native(graph)


def test_a_driver_outlives_the_environment_that_built_it(tmp_path, monkeypatch):
    """One for each: it is linked with that library, and the next environment of the same release may be elsewhere."""
    there, build = tmp_path / "openvino", program.__wrapped__
    there.symlink_to(Path(openvino.__file__).parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(openvino, "__file__", str(there / "__init__.py"))
        build()
    there.unlink()
    result = subprocess.run([build()], capture_output=True, text=True)
    assert "libopenvino" not in result.stderr


def test_comparison_names_what_differs():
    def graph(high: float):
        return model(opset1.relu(fake_quantize(parameter(SHAPE), 0.0, high)))

    assert compare(graph(1.0), graph(1.0)).equal
    result = compare(graph(1.0), graph(2.0))
    assert result.matched == result.total - 2
    assert len(result.differences) == 2
    assert all("values differ by up to 1" in line for line in result.differences)


def test_an_input_of_a_body_that_nothing_reads_has_its_partner():
    bodies = []
    for value in (1.0, 2.0):
        unread = opset1.parameter([2], np.float32)
        bodies.append((Model([opset1.result(f32([value]))], [unread], "body"), unread))
    (one, first), (other, second) = bodies
    node = opset8.if_op(parameter((), "condition", bool).output(0))
    node.set_then_body(one)
    node.set_else_body(other)
    node.set_input(parameter((2,), "x").output(0), first, second)
    node.set_output(one.get_results()[0], other.get_results()[0])
    graph = model(node)
    assert compare(graph, graph.clone()).equal


def test_the_order_of_variables_is_no_difference():
    def graph(order: int):
        data, names = parameter(SHAPE), ("first", "second")
        kept = [opset6.read_value(f32(np.zeros(SHAPE)), name, np.float32, list(SHAPE)) for name in names]
        sums = [opset1.add(kept[0], data), opset1.multiply(kept[1], data)]
        sinks = [opset6.assign(value, name) for value, name in zip(sums, names, strict=True)]
        return Model([opset1.result(opset1.add(*sums))], sinks[::order], [data], "stateful")

    assert compare(graph(1), graph(-1)).equal


def test_two_nodes_for_one_are_a_difference():
    def graph(apart: bool):
        data = opset1.relu(parameter(SHAPE))
        again = opset1.relu(data.input_value(0)) if apart else data
        return model(opset1.add(opset1.exp(data), opset1.sqrt(again)))

    assert compare(graph(False), graph(False)).equal
    assert not compare(graph(False), graph(True)).equal


def test_an_axis_may_be_counted_from_the_last():
    def graph(axis: int):
        data = parameter(SHAPE)
        return model(opset1.concat([data, data], axis))

    assert compare(graph(1), graph(1 - len(SHAPE))).equal
    assert not compare(graph(1), graph(-1)).equal


def reshaped(shape, to, scale, zero_point=None):
    """Weights whose Reshape may or may not be folded into them."""
    kernel = opset1.reshape(dequantization(integers(shape), *constants(scale, zero_point)), i64(*to), False)
    if len(to) == 2:
        return opset1.matmul(fake_quantize(parameter((2, to[1])), 0.0, 2.55), kernel, False, True)
    data = fake_quantize(parameter((1, to[1], 5, 5)), 0.0, 2.55)
    return opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1])


def transposed(shape, order, scale, zero_point=None):
    kernel = opset1.transpose(dequantization(integers(shape), *constants(scale, zero_point)), i64(*order))
    return opset1.matmul(fake_quantize(parameter((2, shape[order[0]])), 0.0, 2.55), kernel, False, False)


def constants(scale, zero_point):
    rng = np.random.default_rng(0)
    return rng.uniform(1, 2, scale), None if zero_point is None else rng.integers(1, 9, zero_point)


PULLED = {
    "joined axes": lambda: reshaped((2, 3, 4), (6, 4), (2, 3, 1)),
    "joined axes, a scale along the second": lambda: reshaped((2, 3, 4), (6, 4), (1, 3, 1)),
    "joined axes, a zero point that cannot follow": lambda: reshaped((2, 3, 4), (6, 4), (), (1, 3, 1)),
    "a leading one goes": lambda: reshaped((1, 6, 4), (6, 4), (1, 6, 1)),
    "constants of a lower rank": lambda: reshaped((1, 6, 4), (6, 4), (6, 1)),
    "axes taken apart": lambda: reshaped((6, 4), (6, 4, 1, 1), (6, 1), (6, 1)),
    "a zero point taken apart": lambda: reshaped((6, 16), (6, 4, 2, 2), (6, 1), (1, 16)),
    "outputs taken apart": lambda: reshaped((12, 8), (6, 4, 2, 2), (12, 1)),
    "transposed": lambda: transposed((5, 4), (1, 0), (5, 1), (5, 1)),
    "transposed, constants of a lower rank": lambda: transposed((5, 4), (1, 0), (4,), (4,)),
}


@pytest.mark.parametrize("name", PULLED)
def test_pulled_through_the_dequantization_of_weights(name):
    graph = model(PULLED[name]())
    Transformed(graph).assert_numbers()  # the default goes further, and is right
    assert_native(graph)


@pytest.mark.parametrize("shape", [(16, 1, 3, 3), (16, 9)])
def test_weights_in_groups_of_one_scale(shape):
    """The Reshape makes the groups; the scale stays before it."""
    kernel = opset1.reshape(dequantization(integers(shape), 0.5), i64(16, 1, 1, 3, 3), False)
    data = fake_quantize(parameter((1, 16, 8, 8)), 0.0, 2.55)
    assert_native(model(opset1.group_convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1])))


def state(shape):
    return opset6.read_value(f32(np.zeros(shape)), "state", np.float32, list(shape))


def stateful(build):
    data, kept = parameter(SHAPE), state(SHAPE)
    result, new = build(data, kept)
    return Model([opset1.result(result)], [opset6.assign(new, "state")], [data], "stateful")


def last_channels(data):
    return opset8.slice(data, i64(3), i64(6), i64(1), i64(1))


def _cache(data, kept, low: float):
    joined = fake_quantize(opset1.concat([kept, data], 1), low, 2.54 + low)
    return convolution(joined, 6), last_channels(joined)


STATES = {
    "cache, signed": lambda: stateful(lambda data, kept: _cache(data, kept, -1.27)),
    "cache, unsigned": lambda: stateful(lambda data, kept: _cache(data, kept, 0.0)),
    "cache, zero point": lambda: stateful(lambda data, kept: _cache(data, kept, -1.0)),
    "quantized on both sides": lambda: stateful(
        lambda data, kept: (convolution(fake_quantize(kept, 0.0, 2.55)), fake_quantize(data, 0.0, 2.55, name="fq2"))
    ),
    "read by a convolution": lambda: stateful(lambda data, kept: (convolution(kept), fake_quantize(data, 0.0, 2.55))),
    "per channel": lambda: stateful(
        lambda data, kept: (
            convolution(kept),
            fake_quantize(data, np.zeros((1, 3, 1, 1)), np.linspace(1, 2, 3).reshape(1, 3, 1, 1)),
        )
    ),
    "accumulated": lambda: stateful(
        lambda data, kept: (lambda total: (convolution(total), total))(
            fake_quantize(opset1.add(fake_quantize(data, -1.28, 1.27, name="fq2"), kept), -2.56, 2.54)
        )
    ),
}


@pytest.mark.parametrize("restricted", [True, False], ids=["cpu", "unrestricted"])
@pytest.mark.parametrize("name", STATES)
def test_states(name, restricted):
    assert_native(STATES[name](), PRECISIONS if restricted else (), GRANULARITY if restricted else ())


@pytest.mark.parametrize("quantized_weights", [True, False])
def test_recurrent_cell(quantized_weights):
    assert_native(sequence(quantized_weights=quantized_weights))


def lstm(between, low: float = -1.0, weights_low: float = -1.27, hidden=None, levels: int = 256, data=None):
    """An LSTMSequence over [1, 3, 4], quantized before what lies between."""

    def kernel(seed: int):
        values = np.random.default_rng(seed).uniform(-1, 1, (1, 16, 4))
        return fake_quantize(f32(values), weights_low, 1.27, 255, name=f"kernel{seed}")

    data = between(data or fake_quantize(parameter((3, 4)), low, low + 2.55, levels, name="frames"))
    hidden = hidden or opset1.reshape(
        fake_quantize(parameter((1, 4), "h"), -1.0, 1.55, name="hidden"), i64(1, 1, 4), False
    )
    start, bias = f32(np.zeros((1, 1, 4))), f32(np.zeros((1, 16)))
    node = opset5.lstm_sequence(data, hidden, start, i64(3), kernel(1), kernel(2), bias, 4, "forward")
    return model(node.output(0))


def batched(data):
    return opset1.unsqueeze(data, i64(0))


RECURRENT = {
    "zero point": lambda: lstm(batched),
    "unsigned": lambda: lstm(batched, 0.0),
    "signed": lambda: lstm(batched, -1.28),
    "two operations between": lambda: lstm(lambda data: opset1.reshape(opset1.relu(data), i64(1, 3, 4), False), 0.0),
    "weights with a zero point": lambda: lstm(batched, weights_low=-0.5),
    "a constant state": lambda: lstm(
        batched, hidden=fake_quantize(f32(np.full((1, 1, 4), 0.3)), -1.0, 1.55, name="hidden")
    ),
    "a constant state of an open batch": of_open_batch,
    "16 bits": lambda: lstm(batched, levels=65536),
}


@pytest.mark.parametrize("left_alone", [False, True], ids=["", "not_decomposed_before"])
@pytest.mark.parametrize("name", RECURRENT)
def test_what_lies_above_a_recurrent_cell(name, left_alone):
    """Where nothing has decomposed a quantization, the cell does, through what lies between."""
    disabled = ["FakeQuantizeDecompositionTransformation"] if left_alone else []
    assert_native(RECURRENT[name](), PRECISIONS, disabled=disabled)


def test_the_cell_decomposes_nothing_when_one_state_does_not_fit():
    """A wanted difference: the native RecurrentCellTransformation has decomposed the frames when it finds that the hidden
    state is signed, and leaves them so.
    """
    signed = fake_quantize(parameter((1, 4), "h"), -1.28, 1.27, name="hidden")
    graph = lstm(batched, hidden=opset1.reshape(signed, i64(1, 1, 4), False))
    disabled = [NOT_ON_CPU, "FakeQuantizeDecompositionTransformation"]
    expected = run_native(graph, PRECISIONS, params=NATIVE, disabled=disabled)
    result = Transformed(graph, NATIVE, precision_restrictions=PRECISIONS, pass_config=PassConfig(disabled))
    assert result.reasons("RecurrentCell") == ["activation_precision"]
    assert not compare(expected, result.after).equal


def test_one_quantization_for_frames_and_state():
    """The native RecurrentCellTransformation throws here where it has to decompose: it comes to the StridedSlice twice."""
    frames = fake_quantize(parameter((3, 4)), -1.0, 1.55, name="frames")
    first = opset1.strided_slice(frames, i64(0, 0), i64(1, 4), i64(1, 1), begin_mask=[0, 0], end_mask=[0, 0])
    graph = lstm(batched, data=frames, hidden=opset1.reshape(first, i64(1, 1, 4), False))
    passes = PassConfig({NOT_ON_CPU, "FakeQuantizeDecompositionTransformation"})
    result = Transformed(graph.clone(), NATIVE, precision_restrictions=PRECISIONS, pass_config=passes)
    assert result.transformed("RecurrentCell")
    types = [node.get_output_element_type(0) for node in result.after.get_ops() if node.get_friendly_name() == "frames"]
    assert [each.get_type_name() for each in types] == ["u8"]
    assert_native(graph, PRECISIONS)


def wide(data, high: float = 2.0**17):
    """16 bits with a step of 4."""
    return fake_quantize(data, -high, high * (1 - 2 / 65536), 65536)


def normalized(data, *axes: int):
    return opset6.mvn(data, i64(*axes), True, 1e-5, "inside_sqrt")


def layer(data, bias: bool = True):
    inputs = data.get_output_shape(0)[1]
    node = opset1.matmul(data, weights([8, inputs], np.full((8, 1), 0.5)), False, True)
    return opset1.add(node, dequantization(integers((1, 8)), 0.3)) if bias else node


def image_layer(data):
    node = opset1.convolution(data, weights([4, 3, 1, 1], 0.5), [1, 1], [0, 0], [0, 0], [1, 1])
    return opset1.add(node, opset1.reshape(dequantization(integers((4,)), 0.3), i64(1, 4, 1, 1), False))


FRAMES = (2, 4)
STRIPPED = {
    "MatMul": lambda: normalized(wide(layer(parameter(FRAMES), bias=False)), 1),
    "MatMul and bias": lambda: normalized(wide(layer(parameter(FRAMES))), 1),
    "convolution and bias": lambda: normalized(wide(image_layer(parameter(SHAPE))), 2, 3),
    "Multiply": lambda: normalized(wide(opset1.multiply(parameter(FRAMES), dequantization(integers((1, 4)), 0.3))), 1),
    "two layers": lambda: normalized(wide(layer(opset1.relu(layer(parameter(FRAMES))))), 1),
    "residual": lambda: normalized(
        opset1.add(wide(layer(parameter(FRAMES))), wide(layer(parameter(FRAMES, "x2"), bias=False))), 1
    ),
    "FakeQuantize after": lambda: normalized(fake_quantize(wide(layer(parameter(FRAMES))), -128.0, 127.0), 1),
    "a result": lambda: wide(layer(parameter(FRAMES))),
    "a small step": lambda: normalized(wide(layer(parameter(FRAMES)), 4.0), 1),
    "Softmax": lambda: opset8.softmax(wide(layer(parameter(FRAMES))), 1),
}


def stripped(graph, native_only: bool, adjusts: bool = True):
    manager = Manager()
    manager.register_pass(FQStrippingTransformation([65536], adjusts, params=Params(native_only=native_only)))
    manager.run_passes(graph)
    return graph


@strips
@pytest.mark.parametrize("name", STRIPPED)
def test_stripping_with_adjusted_weights(name):
    graph = model(STRIPPED[name]())
    expected = strip_native(graph, 65536, need_weights_adjustment=True)
    result = compare(expected, stripped(graph.clone(), native_only=True))
    assert result.equal, result.differences
    data = [np.random.default_rng(0).uniform(-1, 1, port.shape).astype(np.float32) for port in graph.inputs]
    forms = (stripped(graph.clone(), False, adjusts) for adjusts in (False, True))
    before, after = (run(each, data)[0] for each in forms)
    assert np.abs(before - after).max() <= 1e-5 * max(1, np.abs(before).max())


@strips
def test_softmax_does_not_end_a_region():
    """A wanted difference: the native FQStrippingTransformation divides what Softmax reads, which changes its result."""
    graph = model(STRIPPED["Softmax"]())
    data = [np.random.default_rng(0).uniform(-1, 1, port.shape).astype(np.float32) for port in graph.inputs]
    native = strip_native(graph, 65536, need_weights_adjustment=True)
    assert np.abs(run(native, data)[0] - run(graph, data)[0]).max() > 0.1


def biased(data, stride: int = 1, kernel: int = 3):
    """A convolution with a bias, quantized after: one layer on ARM, unless it is a small one."""
    stored = weights([4, 4, kernel, kernel], np.linspace(0.01, 0.02, 4).reshape(4, 1, 1, 1))
    layer = opset1.convolution(data, stored, [stride] * 2, [kernel // 2] * 2, [kernel // 2] * 2, [1, 1])
    return opset1.add(layer, f32(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)))


def residual(shared_first: bool):
    data = fake_quantize(opset1.relu(parameter((1, 4, 8, 8))), 0.0, 2.55)
    branches = data, fake_quantize(biased(data), 0.0, 1.27)
    return opset1.relu(opset1.add(*branches if shared_first else branches[::-1]))


ARM = {
    **QDQ,
    **PREREQUISITES,
    "small convolution": lambda: biased(fake_quantize(parameter((1, 4, 8, 8)), 0.0, 2.55)),
    "strided convolutions": lambda: biased(
        fake_quantize(biased(fake_quantize(parameter((1, 4, 8, 8)), 0.0, 2.55), 2), 0.0, 2.55), 2
    ),
    "signed after unsigned": lambda: biased(
        fake_quantize(biased(fake_quantize(parameter((1, 4, 8, 8)), 0.0, 2.55), 1, 1), -1.28, 1.27), 1, 1
    ),
    "residual, shared input first": lambda: residual(True),
    "residual, shared input second": lambda: residual(False),
}


@pytest.mark.parametrize("convolutions", [True, False], ids=["", "products_only"])
@pytest.mark.parametrize("name", ARM)
def test_arm(name, convolutions):
    graph, config = model(ARM[name]()), arm.config(convolutions)
    expected = run_native_with(config, graph)
    manager = Manager()
    manager.register_pass(LowPrecision.from_config(config, native_only=True))
    manager.run_passes(graph)
    result = compare(expected, graph)
    assert result.equal, f"{result.matched} / {result.total}: {result.differences}"


@pytest.mark.parametrize("operation", [opset1.add, opset1.multiply])
@pytest.mark.parametrize("constant_first", [False, True])
def test_a_constant_by_column_before_an_interval(operation, constant_first):
    data = opset1.relu(parameter((2, 12))), f32(np.linspace(0.5, 1, 12).reshape(1, 12))
    assert_native(model(fake_quantize(operation(*data[:: -1 if constant_first else 1]), 0.0, 2.55)), PRECISIONS)


_READERS = {
    "Reshape": lambda data: opset1.reshape(data, i64(1, 4, 8, 2), False),
    "Split": lambda data: opset1.relu(opset1.split(data, opset1.constant(np.int64(2)), 2).output(0)),
    "MVN": lambda data: NodeFactory("opset6").create(
        "MVN", [data.output(0), i64(2, 3).output(0)],
        {"normalize_variance": False, "eps": 1e-5, "eps_mode": "inside_sqrt"},
    ),
    "Multiply": lambda data: opset1.multiply(
        data, opset1.multiply(data.input_value(1), f32(np.linspace(0.5, 1, 4).reshape(1, 4, 1, 1)))
    ),
}  # fmt: skip


@pytest.mark.parametrize("reader", list(_READERS))
def test_a_factor_on_the_left_of_data_that_a_fake_quantize_reads_too(reader):
    """Whoever takes it as a dequantization puts the constant second, where the FakeQuantize takes it in."""
    scaled = opset1.multiply(f32(np.linspace(0.5, 1, 4).reshape(1, 4, 1, 1)), parameter((1, 4, 4, 4)))
    assert_native(model(fake_quantize(scaled, 0.0, 2.55), _READERS[reader](scaled)), PRECISIONS)


@pytest.mark.parametrize("kind", ["If", "TensorIterator", "Loop"])
def test_a_pool_before_bodies(kind):
    """It stays in low precision: what holds bodies forbids none."""
    data = opset1.avg_pool(fake_quantize(parameter((1, 4, 4, 4)), 0.0, 2.55), [1, 1], [0, 0], [0, 0], [2, 2], True)
    assert_native(model(_into_bodies(kind, data)), PRECISIONS)


def _into_bodies(kind: str, data: Node) -> Node:
    def body(*first: Node) -> tuple[Model, Node]:
        inner = opset1.parameter([1, 4, 3, 3], np.float32)
        ends = [opset1.result(value) for value in (*first, opset1.relu(inner))]
        return Model(ends, [inner], "body"), inner

    if kind == "If":
        node = opset8.if_op(opset1.constant(True).output(0))
        (one, inner), (other, again) = body(), body()
        node.set_then_body(one)
        node.set_else_body(other)
        node.set_input(data.output(0), inner, again)
        node.set_output(one.get_results()[0], other.get_results()[0])
        return node
    if kind == "Loop":
        node = opset8.loop(opset1.constant(np.int64(2)), opset1.constant(True))
        inside, inner = body(opset1.constant(True))
        node.set_function(inside)
        node.set_special_body_ports([-1, 0])
    else:
        node = opset8.tensor_iterator()
        inside, inner = body()
        node.set_body(inside)
    node.set_invariant_input(inner, data.output(0))
    node.get_iter_value(inside.get_results()[-1].output(0), -1)
    return node


def ends(low, high, dtype=np.float16):
    return [opset1.constant(np.array(end, dtype)) for end in (low, high)]


# Products of two quantized tensors, of which the native library rewrites the scale alone.
PRODUCTS = {
    "both with a zero point": lambda: opset1.multiply(qdq(parameter(SHAPE)), qdq(parameter(SHAPE, "x2"))),
    "one with a zero point": lambda: opset1.multiply(
        qdq(parameter(SHAPE)), qdq(parameter(SHAPE, "x2"), zero_point=None)
    ),
    "a factor and a zero point": lambda: opset1.multiply(
        opset1.multiply(parameter(SHAPE), f32(0.3)), qdq(parameter(SHAPE, "x2"))
    ),
    "a difference": lambda: opset1.multiply(
        fake_quantize(parameter(SHAPE), -1.0, 1.0, 255),
        opset1.add(opset1.multiply(parameter(SHAPE, "x2"), f32(-0.3)), f32(0.1)),
    ),
}


@pytest.mark.parametrize("half", [False, True], ids=["f32", "f16"])
@pytest.mark.parametrize("update", [True, False], ids=["", "precisions_kept"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, update, half):
    product = PRODUCTS[name]()
    assert_native(in_f16(product) if half else model(product), params=Params(update, native_only=True))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_what_is_an_output_too(name):
    product = PRODUCTS[name]()
    assert_native(model(product, product.input_value(0), product.input_value(1)))


@pytest.mark.parametrize("operation", [opset1.add, opset1.multiply])
def test_with_itself_what_is_an_output_too(operation):
    """The library gives one of the two inputs a chain of its own."""
    data = qdq(parameter(SHAPE))
    assert_native(model(operation(data, data), data))


def test_two_scales_in_f32_of_data_in_f16():
    """They are one in f16."""
    data = [parameter(SHAPE, name, np.float16) for name in ("x", "x2")]
    first, second = (
        opset1.fake_quantize(each, *ends(low, 1), *ends(low, 1), 256) for each, low in zip(data, (-1, 0), strict=True)
    )
    assert_native(model(opset1.multiply(first, second), first), params=Params(False, native_only=True))


@pytest.mark.parametrize("update", [True, False], ids=["", "precisions_kept"])
@pytest.mark.parametrize("low", [-1, 0], ids=["signed", "unsigned"])
@pytest.mark.parametrize("levels", [256, 65535, 65536])
def test_second_factor_of_more_levels_than_the_allowed_types_hold(levels, low, update):
    """It has the type that its interval asks for, which the product reads after a Convert."""
    high = 1 if low == 0 or levels % 2 else (levels // 2 - 1) / (levels // 2)
    integers = np.arange(32).reshape(1, 4, 8) - 16
    kernel = opset1.multiply(opset1.convert(opset1.constant(integers.astype(np.int8)), "f32"), f32(0.04))
    data = fake_quantize(parameter((1, 8, 3)), low, high, levels)
    graph = model(opset1.matmul(kernel, data, False, False))
    assert_native(graph, params=Params(update, native_only=True))


@pytest.mark.parametrize("low", [-1, 0], ids=["signed", "unsigned"])
@pytest.mark.parametrize("levels", [15, 16, 255, 256, 65535, 65536])
def test_data_of_more_levels_than_the_only_allowed_type_holds(levels, low):
    """Since 2026.3 it has that type; before, it stays in float."""
    data = fake_quantize(parameter((1, 8, 6, 6)), low, 2.0, levels)
    kernel = opset1.multiply(opset1.convert(opset1.constant(np.ones((4, 8, 1, 1), np.int8)), "f32"), f32(0.04))
    graph = model(opset1.convolution(data, kernel, [1, 1], [0, 0], [0, 0], [1, 1]))
    assert_native(graph, (PrecisionsRestriction.create("Convolution", {0: ["u8"], 1: ["i8"]}),))


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("rows", [1, 4], ids=["one_scale", "scales_by_row"])
@pytest.mark.parametrize("low", [-1, 0], ids=["signed", "unsigned"])
def test_second_factor_of_65536_levels_after_marked_weights(low, rows, port):
    """Where a restriction is given, weights with scales by row are marked as float, and the data stays, too."""
    scale = np.linspace(0.01, 0.04, rows).reshape(rows, 1)
    kernel = opset1.multiply(opset1.convert(opset1.constant(np.ones((4, 8), np.int8)), "f32"), f32(scale))
    data = fake_quantize(parameter((1, 2, 8, 3)), low, 32767 / 32768 if low else 1, 65536)
    restrictions = (PrecisionsRestriction.create("MatMul", {port: ["u8", "i8"]}),)
    assert_native(model(opset1.matmul(kernel, data, False, False)), restrictions)


def vector(count: int) -> np.ndarray:
    return np.linspace(0.5, 1, count).astype(np.float32)


# A constant of a value for each element: those of a vector are its channels.
VECTORS = {
    "a difference and its data": lambda x: model(
        opset1.add(opset1.add(f32(vector(8)), opset1.multiply(x, f32(-1))), x)
    ),
    "a product and a difference": lambda x: model(
        scaled := opset1.multiply(f32(vector(8)), x), opset1.add(f32(vector(8)), opset1.multiply(scaled, f32(-1)))
    ),
    "a bias before a quantization": lambda x: model(
        fake_quantize(opset1.add(_product(fake_quantize(x, -0.4, 2.5, 255)), f32(vector(8))), -1.5, 3.6)
    ),
}


def _product(data: Node) -> Node:
    return opset1.matmul(data, weights([8, 8], 0.01), False, True)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    assert_native(VECTORS[name](parameter((8,))), PRECISIONS)


@pytest.mark.parametrize("reader", [opset1.relu, lambda data: opset1.clamp(data, 0.0, 6.0)], ids=["Relu", "Clamp"])
def test_a_row_of_scales_without_other_axes(reader):
    """The native library asks no further where it belongs."""
    data = dequantization(parameter((1, 2, 8), precision=np.uint8), vector(8))
    assert_native(model(opset1.multiply(reader(data), parameter((1, 2, 8), "x2"))))


IN_F16 = {
    "after a Clamp": lambda: [
        opset1.add(opset1.clamp(fake_quantize(parameter(SHAPE), -1.28, 1.27), 0.0, 6.0), f32(vector(4)))
    ],
    "after a Clamp with a zero point": lambda: [
        opset1.add(opset1.clamp(fake_quantize(parameter(SHAPE), -1.2, 1.71), 0.0, 6.0), f32(vector(4)))
    ],
    "data turned that is an output too": lambda: [
        data := qdq(parameter(SHAPE), "i8", None),
        opset1.add(opset1.multiply(data, f32(-1.0)), f32(vector(4))),
    ],
    "after a zero point": lambda: [opset1.add(qdq(parameter(SHAPE)), f32(vector(4)))],
    "normalized": lambda: [opset1.normalize_l2(qdq(parameter(SHAPE), "i8", None), i64(1), 1e-6, "add")],
}


@pytest.mark.parametrize("name", IN_F16)
def test_types_in_f16(name):
    """The type of what is scaled stays, whatever the scale is stored in; a normalization gives that of dequantizations."""
    assert_native(in_f16(*IN_F16[name]()))


@pytest.mark.parametrize(("low", "high"), [(1.25, 3.7), (-3.7, -1.25), (1.0, 1.9961)])
def test_a_zero_point_out_of_range_of_a_second_factor(low, high):
    """Above or below the integers it wraps around, and is none where that makes it zero."""
    data = fake_quantize(parameter((2, 8)), low, high, 255)
    restrictions = (PrecisionsRestriction.create("MatMul", {0: ["i8"], 1: ["i8"]}),)
    kernel = weights([12, 8], np.linspace(0.01, 0.02, 12).reshape(12, 1))
    assert_native(model(opset1.matmul(kernel, data, False, True)), restrictions)


ASKED = {
    "quantize": lambda data: data,
    "convolution": lambda data: convolution(data, 4),
    "product": lambda data: opset1.matmul(data, weights((4, 4), 0.01), False, True),
    "pool": lambda data: opset1.max_pool(data, [1, 1], [0, 0], [0, 0], [1, 1]),
    "clamp": lambda data: opset1.clamp(data, -0.5, 0.5),
    "reshape": lambda data: opset1.reshape(data, i64(0, 2, 8, 4), True),
    "sum": lambda data: opset1.add(data, opset1.relu(data)),
    "concat": lambda data: opset1.concat([data, opset1.relu(data)], 1),
    "split": lambda data: opset1.split(data, opset1.constant(1), 2),
}


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("name", ASKED)
def test_what_asks_for_a_shape_reads_the_dequantization(name, read):
    data = ASKED[name](fake_quantize(parameter((-1, 4, 4, 4)), -1.27, 1.27)).outputs()[-1]
    more = [opset1.exp(data)] if read else []
    assert_native(model(opset1.convert(opset8.shape_of(data), "f32"), *more), PRECISIONS)


OF_ANY_RANK = {
    "max": lambda data: opset1.max_pool(data, [1, 1], [0, 0], [0, 0], [2, 2]),
    "average": lambda data: opset1.avg_pool(data, [1, 1], [0, 0], [0, 0], [2, 2], True),
    "transpose": lambda data: opset1.transpose(data, i64(0, 2, 3, 1)),
    "reshape": lambda data: opset1.reshape(data, i64(0, -1), True),
    "convolution": convolution,
    "relu": opset1.relu,
}


@pytest.mark.parametrize(
    "quantize", [fake_quantize, lambda data, *ends: opset1.multiply(opset1.subtract(data, f32(1)), f32(100))]
)
@pytest.mark.parametrize("name", OF_ANY_RANK)
def test_data_of_an_open_rank(name, quantize):
    data = opset1.parameter(PartialShape.dynamic(), np.float32)
    assert_native(model(OF_ANY_RANK[name](quantize(data, -1.27, 1.27))))


@pytest.mark.parametrize("kept", [True, False])
def test_equal_zero_points_of_a_transposed_convolution(kept):
    low = np.full((1, 4, 1, 1), -1.0, np.float32)
    data = opset1.fake_quantize(parameter((1, 4, 4, 4)), *map(f32, (low, low + 2.55, low, low + 2.55)), 256)
    layer = opset1.convolution_backprop_data(data, weights((4, 4, 2, 2), 0.01), [2, 2])
    assert_native(model(layer), params=Params(not kept, native_only=True))


BY_COLUMN = {
    "mean": lambda data: opset1.reduce_mean(data, i64(3), True),
    "largest": lambda data: opset1.reduce_max(data, i64(3), False),
    "mean of rows": lambda data: opset1.reduce_mean(data, i64(2), True),
    "split": lambda data: opset1.split(data, opset1.constant(1), 2),
}


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("name", BY_COLUMN)
def test_a_scale_by_column_of_fewer_axes_gets_all_of_them(name, read):
    """It is by column then for what makes grouped convolutions of scales, too."""
    data = opset1.multiply(parameter((1, 4, 4, 3)), f32([0.1, 0.2, 0.3]))
    assert_native(model(BY_COLUMN[name](data).outputs()[-1], *([opset1.exp(data)] if read else [])), on_cpu=False)


@pytest.mark.parametrize("sizes", [(), (1, 4, 1), "unlike"])
@pytest.mark.parametrize("zero_point", [9e-6, -9e-6, 2e-5])
def test_a_zero_point_that_is_next_to_nothing_in_a_sum(zero_point, sizes):
    """As rounding leaves it of two equal ones, in what is less its mean."""
    shift = np.full((1, 4, 1) if sizes == "unlike" else sizes, -10 * zero_point, np.float32)
    if sizes == "unlike":
        shift[0, 0] = 0
    data = opset1.fake_quantize(parameter((1, 4, 8)), f32(shift), f32(shift + 2550), f32(shift), f32(shift + 2550), 256)
    other = fake_quantize(parameter((1, 4, 8), "x2"), 0.0, 7.65)
    assert_native(model(opset1.add(opset1.reduce_mean(data, i64(2), True), other)))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("low", [-1.28, -1.0, 0.0])
@pytest.mark.parametrize("default", [("u8", "i8"), ("i8", "u8")])
@pytest.mark.parametrize("taken", [("u8",), ("i8",), ("u8", "i8")])
def test_types_of_a_factor_that_becomes_a_grouped_convolution(taken, default, low, first):
    """Of one on the left they follow the data, where that has a zero point."""
    data = fake_quantize(parameter(SHAPE), low, 1.27)
    factor = f32(np.linspace(0.5, 1.5, 3).reshape(1, 3, 1, 1))
    product = opset1.multiply(factor, data) if first else opset1.multiply(data, factor)
    precisions = (PrecisionsRestriction.create("Convolution", {0: taken, 1: ["i8"]}),)
    graph = model(opset1.tanh(product), convolution(data))
    assert_native(graph, precisions, params=Params(default_precisions=default, native_only=True), on_cpu=False)


def test_a_scale_stays_after_a_quantization_whose_open_sizes_a_layer_narrows():
    difference = opset1.add(f32(0.3), opset1.multiply(parameter((-1, 2, -1, -1)), f32(-1)))
    assert_native(model(fake_quantize(difference, -1.1, 1.4)), on_cpu=False)


@pytest.mark.parametrize("operation", [opset1.multiply, opset1.subtract])
def test_a_constant_with_more_axes_than_what_is_quantized(operation):
    shifted = operation(fake_quantize(parameter((1, 2, 6, 4)), 0.0, 2.55), f32(np.full((1, 1, 1, 1, 1), 2.0)))
    assert_native(model(shifted), disabled=["MultiplyPartialTransformation"])


def quantized_to(low: float, high: float):
    """Two results: of data whose output interval that is, and of the data."""
    data = parameter((1, 2, 6, 4))
    quantize = opset1.fake_quantize(opset1.sigmoid(data), f32(0), f32(1), f32(low), f32(high), 256)
    return model(opset1.tanh(quantize), opset1.exp(data))


@pytest.mark.parametrize(("low", "high", "update"), [(5.4, 5.4, False), (5.0, 5.0, True), (-3.4e38, 0.0, True)])
def test_a_quantization_that_gives_one_value_is_a_constant(low, high, update):
    """So does one whose scale overflows once it is back in the interval."""
    assert_native(quantized_to(low, high), params=Params(update, native_only=True))


def test_the_native_pass_rounds_a_quantization_that_gives_one_value():
    """Which is why `native_only` does otherwise: 5.4 is 5 in u8."""
    results = [run_native(quantized_to(5.4, 5.4), params=NATIVE), model_after(quantized_to(5.4, 5.4))]
    found = [np.unique(graph.get_results()[0].input_value(0).get_node().data) for graph in results]
    assert np.allclose(found, np.tanh([[5.0], [5.4]]))


BY_COLUMN_SCALES = np.linspace(1, 2, 4).reshape(1, 1, 1, 4)
SCALED_BY_COLUMN = {
    "quantized": lambda: opset1.fake_quantize(
        parameter((1, 4, 4, 4)), *map(f32, (0 * BY_COLUMN_SCALES, BY_COLUMN_SCALES) * 2), 256
    ),
    "integers": lambda: dequantization(parameter((1, 4, 4, 4), precision=np.uint8), BY_COLUMN_SCALES, 3.0),
    "real": lambda: opset1.multiply(parameter((1, 4, 4, 4)), f32(BY_COLUMN_SCALES)),
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("name", SCALED_BY_COLUMN)
def test_a_factor_after_a_scale_by_column_becomes_a_grouped_convolution(name, restricted, update, first):
    """Which has lost the scale."""
    data, factor = SCALED_BY_COLUMN[name](), f32(np.linspace(1, 2, 4).reshape(1, 4, 1, 1))
    product = opset1.multiply(factor, data) if first else opset1.multiply(data, factor)
    params = Params(update, native_only=True)
    assert_native(model(product), PRECISIONS if restricted else (), params=params, on_cpu=False)


SCALES = {
    "one": np.full((), 0.3),
    "equal by channel": np.full((1, 4, 1, 1), 0.3),
    "equal by row": np.full((4,), 0.3),
    "by channel": np.array([0.1, 0.2, -0.3, 0.0]).reshape(1, 4, 1, 1),
    "by row": np.array([0.1, 0.2, -0.3, 0.0]),
}


@pytest.mark.skipif(not RELAXES_EVERY_OPSET, reason="this release cannot relax MVN-6")
@pytest.mark.parametrize("axes", [(1,), (2,), (3,), (1, 2), (2, 3), (1, 2, 3), (0, 1)])
@pytest.mark.parametrize("name", SCALES)
def test_the_scale_of_what_is_normalized(name, axes):
    """Only the channels must not be among the axes, whatever the scale varies along."""
    data = dequantization(parameter((2, 4, 4, 4), precision=np.uint8), SCALES[name])
    assert_native(model(opset6.mvn(data, i64(*axes), True, 1e-3, "inside_sqrt")))


MOVED = {
    "gathered": lambda x: opset8.gather(x, i64(0, 2), opset1.constant(np.int64(3))),
    "gathered channels": lambda x: opset8.gather(x, i64(0, 2), opset1.constant(np.int64(1))),
    "gathered pairs": lambda x: opset8.gather(x, i64([0, 2], [1, 3]), opset1.constant(np.int64(3))),
    "copied": lambda x: opset3.broadcast(x, i64(2, 4, 4, 4), i64(0, 1, 2, 3), "explicit"),
    "copied to other channels": lambda x: opset3.broadcast(x, i64(3, 2, 4, 4, 4), i64(1, 2, 3, 4), "explicit"),
}


@pytest.mark.parametrize("name", ["one", "equal by channel", "by channel"])
@pytest.mark.parametrize("move", MOVED)
def test_scales_that_are_moved(move, name):
    """Several equal ones are one only where they are gathered."""
    assert_native(model(MOVED[move](dequantization(parameter((2, 4, 4, 4), precision=np.uint8), SCALES[name]))))


def joined_for_several() -> Model:
    """Two dequantizations of the integers of what a Concat joins."""
    joined = opset1.concat([parameter(SHAPE), opset1.relu(parameter(SHAPE, "x2"))], 1)
    integers_of_both = opset1.convert(opset1.fake_quantize(joined, *map(f32, (-1, 1.55, 0, 255)), 256), "u8")
    return model(*(opset1.exp(dequantization(integers_of_both, scale, 100.0)) for scale in (0.01, 0.02)))


def test_the_native_pass_quantizes_twice_what_is_joined_for_several():
    """It moves one of the dequantizations before the Concat; `native_only` moves what all of them read."""
    kinds = [
        [node.get_type_name() for node in graph.get_ops()]
        for graph in (run_native(joined_for_several(), params=NATIVE), model_after(joined_for_several()))
    ]
    assert [each.count("FakeQuantize") for each in kinds] == [3, 2]

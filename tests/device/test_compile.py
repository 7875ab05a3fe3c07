from __future__ import annotations

import inspect
import os
import subprocess
import sys
from io import BytesIO
from itertools import product

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import data
from ovlpt.graph.text import to_text
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.numbers.distance import Numbers, OutputNumbers, Verdict
from ovlpt.openvino_api import RELEASE, opset1
from ovlpt.precisions import NUMPY
from ovlpt.trace import InputError
from tests.conftest import EXACT, TRUTH, assert_close, inputs_of
from tests.graphs import opset13
from tests.inspect.faults import break_lowering, pointwise
from tests.networks import const, convolution, int8_weights, model, one_convolution, parameter, quantized


def passes_of(statement: str) -> str:
    """What OpenVINO prints of its passes while a statement runs in a process of its own."""
    code = f"import openvino, ovlpt; core = openvino.Core(); path = {str(data.digits())!r}; {statement}"
    environment = {**os.environ, "OV_ENABLE_PROFILE_PASS": "true"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_the_plugins_own_lpt_is_off():
    """The small networks by which some CPUs are asked what they take are compiled with it."""
    marker = "low_precision::LowPrecision"
    assert marker in passes_of("core.compile_model(path, 'CPU')")
    asked = passes_of("ovlpt.plugin_config.for_device(core, 'CPU')").count(marker)
    assert passes_of("ovlpt.compile_model(path, core=core)").count(marker) == asked


def test_the_callers_model_is_not_changed(core):
    net = one_convolution()
    before = to_text(net)
    ovlpt.compile_model(net, core=core)
    assert to_text(net) == before


def test_the_bundled_network_runs_in_int8(core):
    compiled = ovlpt.compile_model(data.digits(), core=core, properties=EXACT)
    stock = core.compile_model(str(data.digits()), "CPU", EXACT)
    mine, theirs = (ovlpt.execution_types(each) for each in (compiled, stock))
    for execution in (mine, theirs):  # a FullyConnected may run as a convolution
        counts = [count for kind, count in execution.summary().items() if kind in ("Convolution", "FullyConnected")]
        assert np.sum(counts, axis=0).tolist() == [11, 11]
    images, labels = data.heldout()
    answers = [int(compiled([image[None]])[0].argmax()) for image in images[:100]]
    assert np.mean(np.array(answers) == labels[:100]) >= 0.97


def test_a_missing_file(core):
    with pytest.raises(InputError, match=r'no file "nowhere\.xml"'):
        ovlpt.compile_model("nowhere.xml", core=core)


def test_a_text_file_called_xml(core, tmp_path):
    path = tmp_path / "model.xml"
    path.write_text("hello")
    with pytest.raises(InputError, match=r'OpenVINO cannot read ".*model.xml"'):
        ovlpt.compile_model(path, core=core)


def test_an_unknown_device(core):
    with pytest.raises(InputError, match='no device "TPU" on this machine; available: CPU'):
        ovlpt.compile_model(one_convolution(), "TPU", core=core)


def test_a_float_model(core):
    x = parameter([1, 8])
    net = model(opset1.matmul(x, const(np.ones((8, 4))), False, False), x)
    with pytest.raises(InputError, match='the model "net" is not quantized'):
        ovlpt.transform(net, core=core)
    with pytest.raises(InputError, match='the model "net" is not quantized'):
        ovlpt.compile_model(net, core=core, strict=True)
    with pytest.warns(UserWarning, match='the model "net" is not quantized.*it is compiled as it is') as warned:
        assert ovlpt.compile_model(net, core=core)([np.ones((1, 8), np.float32)])[0].shape == (1, 4)
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_a_warning_is_at_the_callers_line(core):
    """However many functions of the package lie between."""
    x = parameter([4, 32])
    weights = opset1.multiply(opset1.convert(const(np.ones((32, 16)), "i8"), "f32"), const(0.1))
    net = model(opset1.matmul(x, weights, False, False), x)
    for call in (ovlpt.transform, ovlpt.compile_model):
        with pytest.warns(UserWarning, match="passes unchanged") as warned:
            call(net, core=core)
        assert {warning.filename for warning in warned} == {__file__}


def test_the_names_and_the_order_are_those_of_openvino(core):
    net, hint = one_convolution(), {"PERFORMANCE_HINT": "THROUGHPUT"}
    own = ovlpt.plugin_config.for_device(core)
    parameters = inspect.signature(ovlpt.compile_model).parameters
    assert list(parameters)[:3] == list(inspect.signature(openvino.Core.compile_model).parameters)[1:4]
    for how in (
        {"device_name": "CPU", "config": hint, "plugin": own},
        {"device": "CPU", "properties": hint, "config": own},
        {"config": hint},
    ):
        compiled = ovlpt.compile_model(net, core=core, **how)
        assert "THROUGHPUT" in str(compiled.get_property("PERFORMANCE_HINT"))
    with pytest.raises(InputError, match="config is a mapping"):
        ovlpt.compile_model(net, "CPU", "THROUGHPUT", core=core)
    for call in (ovlpt.compile_model, ovlpt.transform):
        with pytest.raises(InputError, match="are a PluginConfig, not a str"):
            call(net, plugin="CPU", core=core)


def test_a_model_in_memory_as_openvino_takes_it(core, tmp_path):
    openvino.save_model(one_convolution(), tmp_path / "net.xml", compress_to_fp16=False)
    text, weights = (tmp_path / "net.xml").read_text(), (tmp_path / "net.bin").read_bytes()
    for model_in_memory, values in product((text, text.encode(), BytesIO(text.encode())), (weights, BytesIO(weights))):
        compiled = ovlpt.compile_model(model_in_memory, None, EXACT, weights=values, core=core)
        assert any(layer.is_int8 for layer in ovlpt.execution_types(compiled).executed)
    for wrong in (text[:100], tmp_path):
        with pytest.raises(InputError, match="cannot read the text of a model and its weights"):
            ovlpt.compile_model(wrong, weights=weights, core=core)


def test_settings_have_one_name_everywhere(core):
    net, nothing = one_convolution(), ovlpt.PluginConfig("nothing", params=ovlpt.Params(update_precisions=False))
    assert "u8" not in to_text(ovlpt.transform(net, device_name="CPU", plugin=nothing, lowered=False, core=core))
    assert "u8" not in to_text(ovlpt.transform(net, config=nothing, lowered=False, core=core))
    assert "u8" in to_text(ovlpt.transform(net, lowered=False, core=core))
    with pytest.raises(TypeError, match="plugin and config of transform are the same"):
        ovlpt.transform(net, plugin=nothing, config=nothing, core=core)


def test_compressed_weights_pass_unchanged_with_a_sentence(core):
    x = parameter([1, 64])
    net = model(opset1.matmul(x, int8_weights([16, 64]), False, True), x)
    with pytest.warns(UserWarning, match="compressed weights only"):
        transformed = ovlpt.transform(net, core=core)
    assert to_text(transformed) == to_text(net)
    with pytest.warns(UserWarning, match="compressed weights only"):
        assert ovlpt.compile_model(net, core=core)([np.ones((1, 64), np.float32)])


def test_what_scales_a_reduction_in_a_model_that_passes_unchanged(core):
    """The plugin takes a scale by channel after a reduction of the last of three axes for that of another."""
    x = parameter([2, 8, 32])
    product = opset1.matmul(x, int8_weights([5, 32]), False, True)
    factor = np.linspace(0.5, 1.5, 8, dtype=np.float32)
    net = model(
        [opset1.multiply(opset1.reduce_max(product, const([2], "i64"), False), const(factor[None])), product], x
    )
    values = np.random.default_rng(0).uniform(-1, 1, (2, 8, 32)).astype(np.float32)
    with pytest.warns(UserWarning, match="passes unchanged"):
        result, products = ovlpt.compile_model(net, core=core, properties=EXACT)([values]).values()
    np.testing.assert_allclose(result, products.max(axis=2) * factor, rtol=1e-5)


def test_floats_of_8_bits_pass_unchanged_with_a_sentence(core):
    x, scale, rng = parameter([1, 32]), const(np.float32(0.5)), np.random.default_rng(0)
    data, weights = (
        opset13.fake_convert(each, scale, destination_type="f8e4m3")
        for each in (x, const(rng.uniform(-1, 1, (16, 32))))
    )
    net = model(opset1.matmul(data, weights, False, True), x)
    with pytest.warns(UserWarning, match="floats of 8 bits"):
        transformed = ovlpt.transform(net, core=core)
    assert to_text(transformed) == to_text(net)
    inputs = [rng.uniform(-1, 1, (1, 32)).astype(np.float32)]
    with pytest.warns(UserWarning, match="floats of 8 bits"):
        compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    np.testing.assert_array_equal(compiled(inputs)[0], core.compile_model(net, "CPU", EXACT)(inputs)[0])


def test_execution_types_of_a_wrong_input(core):
    compiled = ovlpt.compile_model(one_convolution(), core=core)
    with pytest.raises(InputError, match=r"the inputs do not fit the model, which takes f32\[1,16,8,8\]"):
        ovlpt.execution_types(compiled, [np.zeros((1, 3, 4, 4), np.float32)])


def test_execution_types_join_counters_and_graph(core):
    x = parameter([1, 16, 8, 8])
    net = model(opset1.sigmoid(convolution(quantized(x, 0, 2.55), 16, name="conv")), x)
    compiled = ovlpt.compile_model(net, core=core, properties={**EXACT, "PERF_COUNT": True})
    layers = ovlpt.execution_types(compiled, [np.zeros((1, 16, 8, 8), np.float32)])
    executed = next(layer for layer in layers if layer.layer_type == "Convolution")
    assert executed.status == "EXECUTED"
    assert executed.precision == "u8"
    assert executed.output_precision == "f32"
    assert executed.exec_type.lower().endswith("i8")
    assert executed.real_time > 0
    assert "conv" in executed.original_names
    fused = next(layer for layer in layers if layer.layer_type == "Sigmoid")
    assert fused.status == "NOT_RUN"
    assert not fused.is_executed
    assert 0 < layers.int8_time_share <= 1


def test_what_reads_constants_only_is_no_executed_layer(core):
    """The plugin brings a bias into another shape, once."""
    x = parameter([1, 16, 8, 8])
    net = model(convolution(quantized(x, 0, 2.55), 16, bias=True, name="conv"), x)
    for properties, inputs in ((EXACT, None), ({**EXACT, "PERF_COUNT": True}, [np.zeros((1, 16, 8, 8), np.float32)])):
        layers = ovlpt.execution_types(ovlpt.compile_model(net, core=core, properties=properties), inputs)
        assert {layer.status for layer in layers if layer.layer_type == "Const"} == {"CONSTANT"}
        executed = {layer.layer_type for layer in layers.executed}
        assert "Convolution" in executed
        assert not executed & {"Const", "Reshape"}


def test_quantize_and_dequantize_pairs_as_the_onnx_front_end_leaves_them(core, infer):
    """Zero points of activations as u8 scalars, those of weights as an i8 vector of zeros after a Reshape."""
    x = parameter([1, 16, 8, 8])
    ends = [const(-1.2), const(1.35), const(0), const(255)]
    low = opset1.convert(opset1.convert(opset1.fake_quantize(x, *ends, 256), "u8"), "f32")
    zero_point = opset1.convert(const(120, "u8"), "f32")
    data = opset1.multiply(opset1.subtract(low, zero_point), const(0.01))
    generator = np.random.default_rng(0)
    stored = opset1.convert(const(generator.integers(-127, 128, (8, 16, 3, 3)), "i8"), "f32")
    zeros = opset1.reshape(opset1.convert(const(np.zeros(8), "i8"), "f32"), const([8, 1, 1, 1], "i64"), True)
    scale = opset1.reshape(const(generator.uniform(0.01, 0.02, 8)), const([8, 1, 1, 1], "i64"), True)
    weights = opset1.multiply(opset1.subtract(stored, zeros), scale)
    net = model(opset1.convolution(data, weights, [1, 1], [1, 1], [1, 1], [1, 1]), x)
    inputs = [generator.uniform(-1.5, 1.5, (1, 16, 8, 8)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT)
    layers = ovlpt.execution_types(compiled)
    assert layers.summary()["Convolution"] == (1, 1)
    assert_close(list(compiled(inputs).values()), infer(net, inputs, "YES"))


def test_a_self_check_keeps_what_is_right(core, recwarn):
    net = pointwise([1, 16, 4, 4])
    values = [np.random.default_rng(0).uniform(-1, 1.5, (1, 16, 4, 4)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, core=core, properties=EXACT, self_check=values)
    layers = ovlpt.execution_types(compiled)
    assert [layer.is_int8 for layer in layers if layer.layer_type == "Convolution"] == [True, True]
    assert not [warning for warning in recwarn if issubclass(warning.category, UserWarning)]
    assert_close(list(compiled(values).values()), infer(core, net, values))


def test_a_self_check_falls_back_to_the_plugins_own_lpt_and_names_the_layer(core, monkeypatch, tmp_path):
    net = pointwise([1, 16, 4, 4])
    values = [np.random.default_rng(0).uniform(-1, 1.5, (1, 16, 4, 4)).astype(np.float32)]
    expected = infer(core, net, values)
    break_lowering(monkeypatch, lambda _, lowering: not lowering.serializable)
    wrong = ovlpt.compile_model(net, core=core, properties=EXACT)(values)[0]
    assert np.abs(wrong - expected[0]).max() > 0.1 * np.abs(expected[0]).max()  # off by default
    openvino.save_model(net, tmp_path / "net.xml", compress_to_fp16=False)
    for given in (net, tmp_path / "net.xml"):
        with pytest.warns(UserWarning, match=r'wrong numbers from the layer "first" on: .* dB against the simulation'):
            compiled = ovlpt.compile_model(given, core=core, properties=EXACT, self_check=values)
        assert_close(list(compiled(values).values()), expected)
        layers = ovlpt.execution_types(compiled)
        assert [layer.is_int8 for layer in layers if layer.layer_type == "Convolution"] == [True, True]


def test_a_self_check_keeps_what_is_as_wrong_as_stock(core, monkeypatch):
    """The plugin's own LPT would be slower, and no nearer."""
    examined, far = [], OutputNumbers("y0", "compiled", "as compiled", "[1,16,4,4]", 12.0, 12.0, Verdict.FAR)
    monkeypatch.setattr(
        "ovlpt.inspect.numbers.numbers_of", lambda found, *more: examined.append(found) or Numbers((far,), "first", ())
    )
    values = [np.zeros((1, 16, 4, 4), np.float32)]
    with pytest.warns(
        UserWarning, match=r'wrong numbers from the layer "first" on: 12.0 dB .* 12.0 dB \("ovlpt check"'
    ):
        compiled = ovlpt.compile_model(pointwise([1, 16, 4, 4]), core=core, properties=EXACT, self_check=values)
    assert compiled is examined[0]


@pytest.mark.parametrize(
    ("make", "values", "sentence"),
    [
        (lambda: pointwise([1, 16, 4, 4]), [np.zeros((1, 16), np.float32)], "takes the shape"),
        (lambda: pointwise([1, 16, 4, 4]), [], "has 1 inputs, and 0 arrays are given"),
        (
            lambda: ovlpt.transform(pointwise([1, 16, 4, 4])),
            [np.zeros((1, 16, 4, 4), np.float32)],
            "is transformed already and no longer shows how it was quantized",
        ),
    ],
)
def test_a_self_check_that_cannot_be(make, values, sentence, core):
    with pytest.raises(InputError, match=sentence):
        ovlpt.compile_model(make(), core=core, self_check=values)


def infer(core, net, values):
    return [np.array(value) for value in core.compile_model(net, "CPU", TRUTH)(values).values()]


def by_definition(net, core, values):
    """Each FakeQuantize computed as such, as `check` does."""
    return [np.array(value) for value in simulate(net, core)(values).values()]


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("low", [0.0, -8.0, -1.0])
def test_a_quantization_to_16_bits(core, infer, low, serializable, native_only):
    """Since 2026.1 the plugin drops it before anything else; a Relu before it then has to stay. Before, it clips."""
    x = parameter([1, 8, 6, 6])
    hidden = convolution(quantized(x, -1.28, 1.27), 8, bias=True)
    hidden = opset1.relu(hidden) if low == 0 else hidden
    wide = quantized(hidden, low, 8.0 * 32767 / 32768 if low == -8 else 8.0, 65536)
    net = model(convolution(wide, 8, seed=1), x)
    inputs = inputs_of(net)
    result = ovlpt.transform(net, core=core, native_only=native_only, serializable=serializable)
    truth = infer(net, inputs) if native_only else by_definition(net, core, inputs)
    assert_close(infer(result, inputs), truth, level=2e-3, share=1)


@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize(
    "ends", [(0.0, 2.0), (0.0, np.linspace(0.5, 2, 8).reshape(1, 8, 1, 1))], ids=["one", "by channel"]
)
def test_a_relu_that_a_quantization_to_16_bits_holds(core, infer, ends, serializable):
    """As ONNX Runtime's quantizer leaves it. The plugin drops it with the rounding, and the simulation did so, too."""
    x = parameter([1, 8, 6, 6])
    hidden = convolution(quantized(x, -1.28, 1.27), 8, bias=True)
    wide = quantized(hidden, *ends, 65536)
    net = model([hidden, opset1.negative(wide)], x)
    inputs = inputs_of(net)
    unclipped, simulated = by_definition(net, core, inputs)
    clipped = np.clip(unclipped, *ends)
    assert (unclipped < -0.1).mean() > 0.1
    np.testing.assert_allclose(-simulated, clipped, atol=4e-5)
    reader = model(convolution(wide, 8, seed=1), x)
    result = ovlpt.transform(reader, core=core, serializable=serializable)
    assert_close(infer(result, inputs), by_definition(reader, core, inputs), level=2e-3, share=1)


@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("from_output", [False, True])
def test_a_quantization_to_16_bits_that_is_an_output(core, infer, from_output, serializable):
    """The plugin cannot drop it after an input or another output, and cannot compile what is left."""
    x = parameter([1, 8, 6, 6])
    above = opset1.relu(x) if from_output else x
    wide = quantized(above, -0.5, 0.5, 65536)
    net = model([convolution(quantized(x, -1.28, 1.27), 8), wide, *[above] * from_output], x)
    inputs = inputs_of(net)
    result = ovlpt.transform(net, core=core, serializable=serializable)
    data = inputs[0] if not from_output else np.maximum(inputs[0], 0)
    assert np.abs(inputs[0]).max() > 0.6
    np.testing.assert_allclose(infer(result, inputs)[1], np.clip(data, -0.5, 0.5), atol=2e-5)


@pytest.mark.parametrize("serializable", [False, True])
def test_integers_of_16_bits_that_f16_rounds_clip(core, infer, serializable):
    """Their largest is 32770 in f16, which is none of 16 bits: the plugin makes no pair of them, and keeps what they clip. One
    FakeQuantize that the cleanup makes of them was dropped in memory.
    """
    x, ends = parameter([2, 6, 2, 2]), [const(end) for end in (-4.0, 4.0, -32768.0, 32768.0)]
    product = opset1.matmul(x, const(np.random.default_rng(0).uniform(-3, 3, (2, 8))), False, False)
    stored = opset1.convert(opset1.convert(opset1.fake_quantize(product, *ends, 65536), "i16"), "f32")
    net = model([opset1.multiply(stored, const(4 / 32768)), product], x)
    result = ovlpt.transform(net, core=core, serializable=serializable)
    found, unclipped = infer(result, inputs_of(net))
    assert np.abs(unclipped).max() > 5
    np.testing.assert_allclose(found, np.clip(unclipped, -4, 4), atol=1e-3)


@pytest.mark.xfail(
    RELEASE < (2026, 1), reason="the plugin drops none, and its kernel computes the width in f32", strict=True
)
@pytest.mark.filterwarnings("error")
def test_a_mask_in_16_bits(core, infer):
    """An interval that is wider than f32 can say."""
    x, least = parameter([1, 4]), float(np.finfo(np.float32).min)
    masked = quantized(opset1.add(x, const([[0, least, 0, 0]])), least, -0.9 * least, 65536)
    net = model([opset1.softmax(masked, 1), opset1.matmul(quantized(x, 0, 2.55), int8_weights([4, 4]), False, True)], x)
    inputs = [np.ones((1, 4), np.float32)]
    expected = np.array([[1, 0, 1, 1]]) / 3
    for found in (by_definition(net, core, inputs), infer(ovlpt.transform(net, core=core), inputs)):
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("serializable", [False, True])
@pytest.mark.parametrize("precision", ["i16", "u16"])
@pytest.mark.parametrize("shared", [False, True])
def test_pairs_of_quantize_and_dequantize_in_16_bits(core, infer, precision, shared, serializable, native_only):
    """As ONNX files have them. The plugin makes one FakeQuantize of each pair, then drops it: a Relu before it stays."""
    x = parameter([1, 8, 6, 6])
    limits, step = np.iinfo(NUMPY[precision]), 8 / 65535
    hidden = opset1.relu(opset1.add(convolution(quantized(x, -1.28, 1.27), 8, bias=True), x))
    bounds = [const(end) for end in (0.0, 8.0, float(limits.min), float(limits.max))]
    stored = opset1.convert(opset1.convert(opset1.fake_quantize(hidden, *bounds, 65536), precision), "f32")
    zero_point = opset1.convert(const(limits.min, precision), "f32")
    wide = opset1.multiply(opset1.subtract(stored, zero_point), const(step))
    net = model([convolution(wide, 8, seed=1), opset1.add(x, wide)][: 1 + shared], x)
    inputs = inputs_of(net)
    result = ovlpt.transform(net, core=core, native_only=native_only, serializable=serializable)
    assert_close(infer(result, inputs), infer(net, inputs), level=2e-3, share=1)


@pytest.mark.parametrize("native_only", [False, True])
def test_16_bits_where_only_i8_is_allowed(core, infer, native_only):
    """A second factor: the native pass throws there, and its integers of 8 bits came to other numbers."""
    x = parameter([1, 8, 3, 3])
    high = np.linspace(1, 4, 8).reshape(1, 8, 1, 1)
    wide = opset1.fake_quantize(opset1.relu(x), *(const(end) for end in (0.0, high, 0.0, 1.8 * high)), 65536)
    stored = opset1.convert(const(np.random.default_rng(0).integers(60, 200, (3, 8)), "u8"), "f32")
    weights = opset1.multiply(opset1.subtract(stored, const(128.0)), const(np.linspace(0.005, 0.013, 8).reshape(1, 8)))
    mean = opset1.avg_pool(wide, [1, 1], [1, 1], [1, 1], [3, 3], True)
    net = model([opset1.matmul(weights, wide, True, True), mean], x)
    inputs = inputs_of(net)
    expected = infer(net, inputs, "NO")
    result = ovlpt.transform(net, core=core, native_only=native_only)
    assert_close(infer(result, inputs), expected, level=1e-3, share=1)

"""SQNR by error and layer: against numpy, on data with labels, and what is said of unusable input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ovlpt import cli, compile_model, data, transform
from ovlpt.fake_quantize import fake_quantize
from ovlpt.inspect import runs
from ovlpt.inspect.compare import Comparison, LayerErrors, compare
from ovlpt.inspect.runs import DEFAULT, FAKE_QUANTIZED, FLOAT, FLOAT_PRECISION, INT8, QUANTIZATION, TRANSFORMATION
from ovlpt.openvino_api import Core, Model, opset1
from ovlpt.trace import InputError
from tests.conftest import EXACT, TRUTH
from tests.networks import const, model, one_convolution, parameter, quantized

RNG = np.random.default_rng(3)
WEIGHTS = [RNG.standard_normal((16, 24)).astype(np.float32), RNG.standard_normal((24, 8)).astype(np.float32)]
SAMPLES = np.abs(RNG.standard_normal((3, 1, 4, 16))).astype(np.float32)
RANGES = [(0.0, 2.5), (0.0, 9.0)]


def sqnr(reference, value) -> float:
    reference, value = np.asarray(reference, np.float64), np.asarray(value, np.float64)
    noise = ((reference - value) ** 2).sum()
    return 10 * math.log10((reference**2).sum() / noise) if noise else math.inf


def stored(weights) -> tuple[np.ndarray, np.ndarray]:
    scale = np.abs(weights).max(0, keepdims=True) / 127
    return np.rint(weights / scale).astype(np.int8), scale.astype(np.float32)


def named(node, name):
    node.set_friendly_name(name)
    return node


def network(quantize: bool) -> Model:
    """MatMul, ReLU, MatMul; of rank 2 the plugin would make one layer of it all where it can."""
    x = parameter([1, 4, 16])
    value = x
    for index, weights in enumerate(WEIGHTS):
        if quantize:
            integers, scale = stored(weights)
            value = quantized(value, *RANGES[index], name=f"quantize{index}")
            weights = opset1.multiply(opset1.convert(const(integers, "i8"), "f32"), const(scale))
        else:
            weights = const(weights)
        value = named(opset1.matmul(value, weights, False, False), f"layer{index}")
        if index == 0:
            value = named(opset1.relu(value), "relu")
    return model(value, x)


def in_numpy(values: np.ndarray, index: int, quantize: bool) -> np.ndarray:
    """One layer up to the next FakeQuantize."""
    weights = WEIGHTS[index]
    if quantize:
        integers, scale = stored(weights)
        weights, values = integers * scale, on_grid(values, index)
    result = values @ weights
    return np.maximum(result, 0) if index == 0 else result


def on_grid(values: np.ndarray, index: int) -> np.ndarray:
    low, high = (np.float32(end) for end in RANGES[index])
    return fake_quantize(values, low, high, low, high, 256)


@pytest.fixture
def samples(tmp_path):
    np.savez(tmp_path / "samples.npz", x=SAMPLES)
    return tmp_path / "samples.npz"


def test_quantization_is_what_numpy_says(samples):
    comparison = compare(network(True), samples, network(False), seconds=0)
    layers = {layer.name: layer for layer in comparison.layers}
    exact = [SAMPLES]
    approximate = [SAMPLES]
    for index in (0, 1):
        exact.append(in_numpy(exact[-1], index, False))
        approximate.append(in_numpy(approximate[-1], index, True))
    shown = [on_grid(approximate[1], 1), approximate[2]]  # what is stored after the layer
    for index in (0, 1):
        layer = layers[f"layer{index}"]
        local = sqnr(exact[index + 1], in_numpy(exact[index], index, True))
        assert layer.local[QUANTIZATION] == pytest.approx(local, abs=1e-2)
        assert layer.cumulative[QUANTIZATION] == pytest.approx(sqnr(exact[index + 1], shown[index]), abs=1e-2)
    assert comparison.sqnr[QUANTIZATION]["y0"] == pytest.approx(sqnr(exact[2], approximate[2]), abs=1e-2)


@pytest.fixture(scope="module")
def digits() -> Comparison:
    return compare(layer_samples=3, seconds=0)


def test_every_layer_of_a_residual_network_is_what_numpy_says(digits, core):
    """Each layer's value from a network of its own that ends there, float and fake-quantized ones by their names."""
    quantized_model, original = core.read_model(data.digits()), core.read_model(data.digits_float())
    images = data.heldout()[0][:3]

    def values(net: Model, output, compiled) -> np.ndarray:
        net = Model([opset1.result(output)], net.get_parameters())
        network = compiled(net)
        return np.concatenate([np.array(network([image[None]])[0]) for image in images])

    seen = 0
    for layer in digits.layers:
        clones = [quantized_model.clone() for _ in range(2)]
        ends = [end_of(clone, layer.operations[-1] if layer.operations else layer.name) for clone in clones]
        simulated, integer = (
            values(clone, end, compiled)
            for clone, end, compiled in zip(
                clones,
                ends,
                (
                    lambda net: core.compile_model(net, "CPU", TRUTH),
                    lambda net: compile_model(net, "CPU", EXACT, core=core),
                ),
                strict=True,
            )
        )
        float_clone = original.clone()
        name = ends[0].get_node()
        name = name.input_value(0).get_node() if name.get_type_name() == "FakeQuantize" else name
        (node,) = (each for each in float_clone.get_ops() if each.get_friendly_name() == name.get_friendly_name())
        exact = values(float_clone, node.output(0), lambda net: core.compile_model(net, "CPU", EXACT))
        assert layer.cumulative[QUANTIZATION] == pytest.approx(sqnr(exact, simulated), abs=0.1)
        expected = sqnr(simulated, integer)
        assert layer.cumulative[TRANSFORMATION] == pytest.approx(expected, abs=0.1) or expected > 100
        seen += 1
    assert seen == len(digits.layers) >= 11


def end_of(model: Model, name: str):
    """Where the segment of the operation ``name`` is read."""
    (node,) = (each for each in model.get_ops() if each.get_friendly_name() == name)
    output = node.output(0)
    while output.get_node().get_type_name() != "FakeQuantize":
        (target,) = output.get_target_inputs()
        if target.get_node().get_type_name() == "Result":
            return output
        output = target.get_node().output(0)
    return output


def test_transformation_alone_is_the_compiled_layer_with_the_reference_as_its_input(samples, core):
    """The second layer, compiled as a network of its own, on what the first one gives in numpy."""
    comparison = compare(network(True), samples, core=core, seconds=0)
    (second,) = (layer for layer in comparison.layers if layer.name == "layer1")
    read = on_grid(in_numpy(SAMPLES, 0, True), 1)
    x = parameter([1, 4, 24])
    integers, scale = stored(WEIGHTS[1])
    weights = opset1.multiply(opset1.convert(const(integers, "i8"), "f32"), const(scale))
    alone = compile_model(
        model(opset1.matmul(quantized(x, *RANGES[1]), weights, False, False), x), "CPU", EXACT, core=core
    )
    result = np.stack([np.array(alone([values])[0]) for values in read])
    expected = sqnr(in_numpy(read, 1, True), result)
    bounded = min(second.local[TRANSFORMATION], 90)  # beyond lies the rounding of f32
    assert bounded == pytest.approx(min(expected, 90), abs=0.1)
    assert QUANTIZATION not in second.local
    assert comparison.ignored() == []
    assert FLOAT not in comparison.latency


def test_reading_the_layers_of_a_residual_network_does_not_disturb_it(digits):
    assert digits.disturbance == 0


def test_accuracy_of_each_run(digits):
    assert digits.samples == 500
    assert set(digits.accuracy) == {FLOAT, FAKE_QUANTIZED, INT8, DEFAULT}
    assert min(digits.accuracy.values()) >= 0.97


def test_a_scale_that_the_quantizer_moved_from_activations_to_weights():
    """The float model has no such Multiply; the layer's local error is that of the same layer without one."""
    x = np.abs(RNG.standard_normal((4, 16))).astype(np.float32)
    smooth = np.linspace(0.5, 2, 16, dtype=np.float32)

    def scaled(quantize: bool) -> Model:
        data_in = parameter([4, 16])
        value = named(opset1.relu(data_in), "relu")
        if not quantize:
            return model(named(opset1.matmul(value, const(WEIGHTS[0]), False, False), "layer"), data_in)
        value = quantized(named(opset1.multiply(value, const(smooth[None])), "smooth"), 0, 5)
        integers, scale = stored(WEIGHTS[0] / smooth[:, None])
        weights = opset1.multiply(opset1.convert(const(integers, "i8"), "f32"), const(scale))
        return model(named(opset1.matmul(value, weights, False, False), "layer"), data_in)

    layers = {layer.name: layer for layer in compare(scaled(True), [x], scaled(False), seconds=0).layers}
    integers, scale = stored(WEIGHTS[0] / smooth[:, None])
    read = fake_quantize(x * smooth, np.float32(0), np.float32(5), np.float32(0), np.float32(5), 256)
    expected = sqnr(x @ WEIGHTS[0], read @ (integers * scale))
    assert layers["layer"].local[QUANTIZATION] == pytest.approx(expected, abs=1e-2)
    assert layers["smooth"].local[QUANTIZATION] > 100


def test_the_device_s_own_precision_is_a_run_of_its_own_where_it_is_not_f32(samples, monkeypatch):
    monkeypatch.setattr(runs, "precision_of_floats", lambda compiled, device: "bf16")
    found = compare(network(True), samples, seconds=0)
    assert all(FLOAT_PRECISION in layer.local and FLOAT_PRECISION in layer.cumulative for layer in found.layers)
    assert found.float_precision == "bf16"


def test_floats_are_in_f32_where_a_cpu_is_asked_for_f16(samples):
    """Of the transformed model; it was called f16 on CPUs that compute in it."""
    asked = Core()
    asked.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f16"})
    assert compare(network(True), samples, seconds=0, core=asked).float_precision == "f32"


def test_a_float_model_with_other_names_leaves_the_other_errors():
    original = network(False)
    for node in original.get_ops():
        node.set_friendly_name(f"other {node.get_friendly_name()}")
    found = compare(network(True), [SAMPLES[0]], original, seconds=0)
    assert found.first == TRANSFORMATION
    assert not any(QUANTIZATION in layer.local for layer in found.layers)
    assert math.isfinite(found.sqnr[QUANTIZATION]["y0"])


def test_a_dynamic_batch():
    nets = network(True), network(False)
    for net in nets:
        net.reshape([-1, 4, 16])
    found = compare(nets[0], [SAMPLES[0]], nets[1], seconds=0)
    fixed = compare(network(True), [SAMPLES[0]], network(False), seconds=0)
    for layer, other in zip(found.layers, fixed.layers, strict=True):
        assert layer.local[QUANTIZATION] == pytest.approx(other.local[QUANTIZATION], abs=1e-2)


def comparison_of(*local: float) -> Comparison:
    layers = tuple(
        LayerErrors(f"layer{index}", "MatMul", (f"layer{index}",), {QUANTIZATION: value}, {QUANTIZATION: value})
        for index, value in enumerate(local)
    )
    return Comparison("net", "CPU", 1, 1, "f32", {}, {}, {}, layers, 0.0, False)


@pytest.mark.parametrize(
    ("local", "share", "count"),
    [
        ((10, 20, 30), 0.5, 1),  # noise 0.1, 0.01, 0.001: the first makes nine tenths
        ((10, 20, 30), 0.95, 2),
        ((20, 20, 20), 0.5, 2),
        ((math.inf, math.inf), 0.5, 0),
        ((), 0.5, 0),
    ],
)
def test_the_ignored_scope_is_the_fewest_worst_layers(local, share, count):
    found = comparison_of(*local)
    assert found.ignored(share) == [f"layer{index}" for index in range(count)]
    if count:
        calls = {}
        exec("scope = " + found.ignored_scope(share), {"nncf": type("nncf", (), {"IgnoredScope": dict})}, calls)
        assert calls["scope"] == {"names": found.ignored(share)}
    else:
        assert found.ignored_scope(share) == ""


def test_json_is_strict(digits):
    text = json.dumps(digits.to_json(), allow_nan=False)
    assert json.loads(text)["layers"][0]["local_sqnr_db"][QUANTIZATION] == digits.layers[0].local[QUANTIZATION]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: compare(network(True), [SAMPLES[0]], one_convolution()), "is another network: its inputs are"),
        (lambda: compare(network(True), [SAMPLES[0]], network(True)), "give the model before quantization"),
        (lambda: compare(network(False), [SAMPLES[0]]), "is not quantized"),
        (lambda: compare(transform(network(True)), [SAMPLES[0]]), "is transformed already"),
        (lambda: compare(network(True), [SAMPLES[0]], device="TPU"), 'no device "TPU"'),
        (lambda: compare(network(True), [SAMPLES[0]], layer_samples=0), "give at least 1"),
        (lambda: compare(network(True), [SAMPLES[0]], labels=[1, 2]), "2 labels and 4 answers"),
        (lambda: compare(network(True), [SAMPLES[0][:, :2]]), "takes the shape"),
    ],
)
def test_unusable_input_is_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_command_prints_runs_errors_layers_and_the_scope(tmp_path, capsys, core):
    images = data.heldout()[0][:4]
    original = core.compile_model(data.digits_float(), "CPU", EXACT)
    labels = np.array([original([image[None]])[0].argmax() for image in images])
    labels[0] = (labels[0] + 1) % 10  # one of four answers is wrong
    np.savez(tmp_path / "data.npz", images=images, labels=labels)
    arguments = [str(data.digits()), "-f", str(data.digits_float()), "-i", str(tmp_path / "data.npz"), "--layers", "2"]
    assert cli.main(["compare", *arguments, "--samples", "1", "--json", str(tmp_path / "out.json")]) == 0
    printed = capsys.readouterr().out
    content = json.loads((tmp_path / "out.json").read_text())["result"]
    assert set(content["accuracy"]) == {FLOAT, FAKE_QUANTIZED, INT8, DEFAULT}
    assert content["accuracy"][FLOAT] == 0.75
    assert (content["samples"], content["layer_samples"]) == (4, 1)
    assert all(run in printed for run in content["accuracy"])
    assert f"The worst 2 of {len(content['layers'])} layers" in printed
    assert "nncf.IgnoredScope(names=[" in printed
    assert content["ignored_scope"][0] in printed
    assert ("no VNNI" in printed) == content["saturates"]
    equals = "the default run equals the int8 run" in printed
    assert equals == (content["float_precision"] == "f32")

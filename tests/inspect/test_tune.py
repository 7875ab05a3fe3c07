"""The form of each layer that was measured to be faster. What is measured is not tested: the measurements are given."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from openvino import save_model
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt import cli
from ovlpt.device.loading import read_model
from ovlpt.inspect import tune as module
from ovlpt.inspect.tune import Measured, tune
from ovlpt.openvino_api import opset1
from ovlpt.trace import InputError
from tests.conftest import assert_documented
from tests.networks import const, int8_weights, model, parameter, quantized

SMALL, LARGE, OPEN = (4, 32, 48), (4, 48, 16), (-1, 256, 192)
RATIOS = {SMALL: (0.8, 0.7, 0.9), LARGE: (1.2, 1.1, 1.3)}


def perceptron(rows: int = 4):
    """Two layers, each with a quantization after it."""
    x = parameter([rows, 32])
    first = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([48, 32], seed=1), False, True)
    second = opset1.matmul(quantized(opset1.relu(first), 0, 2.55), int8_weights([16, 48]), False, True)
    return model(opset1.softmax(quantized(second, -4, 4), 1), x)


def head():
    """A layer whose data is quantized before it loses two axes, as after a pool."""
    x = parameter([4, 32, 1, 1])
    data = quantized(x, *(np.full((1, 1, 1, 1), end, np.float32) for end in (-1.28, 1.27)))
    flat = opset1.reshape(data, const([4, 32], "i64"), False)
    return model(opset1.softmax(opset1.matmul(flat, int8_weights([48, 32]), False, True), 1), x)


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Measurements, and an empty cache. The shapes that were asked for."""
    asked = []

    def measure(shape, *_):
        asked.append(shape)
        return Measured(*shape, *RATIOS[shape])

    monkeypatch.setattr(module, "_measure", measure)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return asked


def forms(net) -> dict[str, int]:
    kinds = [node.get_type_name() for node in net.get_ops()]
    return {kind: kinds.count(kind) for kind in ("MatMul", "Convolution")}


@pytest.mark.parametrize("default", [False, True])
def test_the_faster_form_is_chosen(given, default):
    net = perceptron()
    tuned = tune(net, config=cpu.config(slow_mat_mul=default))
    assert tuned.config.params.mat_mul_as_convolution == (SMALL,)
    assert [each.shape for each in tuned.measured] == [SMALL, LARGE]
    assert forms(ovlpt.transform(net, config=tuned.config)) == {"MatMul": 1, "Convolution": 1}
    assert forms(net) == {"MatMul": 2, "Convolution": 0}


@pytest.mark.parametrize("default", [False, True])
def test_where_neither_is_faster_the_default_stays(given, monkeypatch, default):
    monkeypatch.setitem(RATIOS, SMALL, (0.95, 0.92, 1.1))
    monkeypatch.setitem(RATIOS, LARGE, (1.05, 0.95, 1.1))
    tuned = tune(perceptron(), config=cpu.config(slow_mat_mul=default))
    assert tuned.config.params.mat_mul_as_convolution == ((SMALL, LARGE) if default else ())


@pytest.mark.parametrize("default", [False, True])
def test_open_rows_keep_the_default(given, default):
    x = parameter([-1, 256])
    layer = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([192, 256]), False, True)
    tuned = tune(model(opset1.softmax(layer, 1), x), config=cpu.config(slow_mat_mul=default))
    assert given == []
    assert tuned.config.params.mat_mul_as_convolution == ((OPEN,) if default else ())


def test_what_was_measured_is_remembered(given, tmp_path):
    first, second = tune(perceptron()), tune(perceptron())
    assert given == [SMALL, LARGE]
    assert [each.remembered for each in (*first.measured, *second.measured)] == [False, False, True, True]
    assert first.config == second.config
    tune(perceptron(), properties={"INFERENCE_NUM_THREADS": 1})
    assert given == [SMALL, LARGE] * 2
    for file in (tmp_path / "cache" / "ovlpt" / "tuning").iterdir():
        file.write_text(file.read_text()[:-5])
    tune(perceptron())
    assert given == [SMALL, LARGE] * 3


def test_what_tells_nothing_is_not_remembered(given, monkeypatch, tmp_path, capsys):
    """As other work on the machine leaves it; the default stays, and the next call measures again."""
    monkeypatch.setitem(RATIOS, SMALL, (0.8, 0.3, 1.4))
    for default in (False, True):
        with pytest.warns(UserWarning, match="left 1 of 2 layers' measurements unclear"):
            tuned = tune(perceptron(), config=cpu.config(slow_mat_mul=default))
        assert tuned.config.params.mat_mul_as_convolution == ((SMALL,) if default else ())
    assert given == [SMALL, LARGE, SMALL]
    save_model(perceptron(), tmp_path / "net.xml", compress_to_fp16=False)
    cli.main(["transform", str(tmp_path / "net.xml"), "-o", str(tmp_path / "out.xml"), "--tune"])
    printed = capsys.readouterr()
    assert "0.80 (0.30–1.40, unclear)" in printed.out
    assert "other work on this machine" in printed.err
    assert given == [SMALL, LARGE, SMALL, SMALL]


@pytest.mark.parametrize(("high", "blocks"), [(1.05, 3), (1.5, 6)])
def test_more_is_measured_where_the_first_blocks_tell_nothing(monkeypatch, tmp_path, high, blocks):
    compiled = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "_run", lambda each, data: compiled.append(each) or (lambda: None))
    monkeypatch.setattr(module, "interleaved_latencies", lambda runs, *_, **more: {name: [1.0] for name in runs})
    monkeypatch.setattr(module, "bootstrap_interval", lambda blocks: (0.95, high))
    with pytest.warns(UserWarning, match="unclear") if high > 1.2 else contextlib.nullcontext():
        tune(head())
    assert len(compiled) == 2 * blocks


def test_without_a_cache_nothing_is_remembered(given, tmp_path, monkeypatch):
    """A file in its place, which stops root as well; and a user without a home folder."""
    (tmp_path / "cache").touch()
    with pytest.warns(UserWarning, match=r'not saved: cannot write ".*cache/ovlpt": Not a directory') as said:
        tuned = tune(perceptron())
    assert [each.shape for each in tuned.measured] == [SMALL, LARGE]
    assert len(said) == 1

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr("pathlib.Path.home", homeless)
    with pytest.warns(UserWarning, match="not saved: you have no home folder; set XDG_CACHE_HOME to"):
        assert tune(perceptron()) == tuned


@pytest.mark.parametrize(("network", "layers"), [(perceptron, 2), (head, 1)])
def test_measured_for_once(monkeypatch, tmp_path, network, layers):
    """Both forms of the layers alone compile, run, and are what they are called."""
    compiled = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "SECONDS", 0.0)
    monkeypatch.setattr(module, "BLOCKS", 1)
    monkeypatch.setattr(module, "MOST_BLOCKS", 1)
    monkeypatch.setattr(module, "_run", lambda each, data: compiled.append(each) or (lambda: each(data)))
    for each in tune(network()).measured:
        assert 0 < each.low <= each.ratio <= each.high
    kinds = [{layer.layer_type for layer in ovlpt.execution_types(each).executed if layer.is_int8} for each in compiled]
    assert ["Convolution" in each for each in kinds] == [False, True] * layers
    assert all(kinds)


def test_tuned_networks_compute_the_same(given, core):
    net, data = perceptron(), np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
    plain = ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core)(data)[0]
    tuned = ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core, tune=True)
    assert np.abs(tuned(data)[0] - plain).max() < 1e-6


def test_a_saved_model_says_what_it_was_tuned_for(given, core, recwarn):
    transformed = ovlpt.transform(perceptron(), tune=True, core=core)
    assert transformed.get_rt_info(["ovlpt", "cpu"]).astype(str) == core.get_property("CPU", "FULL_DEVICE_NAME")
    ovlpt.transform(transformed, core=core)
    assert not recwarn
    transformed.set_rt_info("another CPU", ["ovlpt", "cpu"])
    with pytest.warns(UserWarning, match="of the kind another CPU"):
        ovlpt.transform(transformed, core=core)


def test_the_command(given, tmp_path, capsys, core):
    save_model(perceptron(), tmp_path / "net.xml", compress_to_fp16=False)
    arguments = [tmp_path / "net.xml", "-o", tmp_path / "out.xml", "--tune", "--json", tmp_path / "out.json"]
    assert cli.main(["transform", *map(str, arguments)]) == 0
    printed = capsys.readouterr().out
    assert "0.80 (0.70–0.90)" in printed
    assert "1.20 (1.10–1.30)" in printed
    assert forms(read_model(tmp_path / "out.xml", core))["Convolution"] == 1
    written = json.loads((tmp_path / "out.json").read_text())
    assert_documented(written)
    tuned = written["result"]["tuned"]
    assert [(each["rows"], each["inputs"], each["outputs"]) for each in tuned] == [SMALL, LARGE]


def test_another_device_is_refused(core):
    with pytest.raises(InputError, match='not on "AUTO:GPU"'):
        tune(perceptron(), "AUTO:GPU", core=core)


@pytest.mark.parametrize("shapes", ["all", [[1, 2]], [[0, 4, 4]], [[4, -1, 4]], [4]])
def test_shapes_that_are_none(shapes):
    with pytest.raises(InputError, match="mat_mul_as_convolution is"):
        ovlpt.Params(mat_mul_as_convolution=shapes)


def test_shapes_in_a_file(tmp_path):
    path = tmp_path / "cpu.toml"
    path.write_text("[params]\nmat_mul_as_convolution = [[4, 32, 48], [-1, 256, 192]]\n")
    assert ovlpt.load_config(path).params.mat_mul_as_convolution == (SMALL, OPEN)

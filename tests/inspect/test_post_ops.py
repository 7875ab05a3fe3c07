"""Predicted scales and post-operations against oneDNN's own log."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ovlpt import cli
from ovlpt.inspect.post_ops import Logged, post_ops
from ovlpt.openvino_api import opset1
from ovlpt.trace import InputError
from tests.conftest import assert_documented
from tests.networks import const, convolution, encoder, int8_weights, model, parameter, quantized, residual


def chain():
    """A bias, a relu, a range with a fraction for its zero point, and a second layer with an activation."""
    x = parameter([1, 16, 8, 8])
    first = opset1.relu(convolution(quantized(x, 0, 2.55), 32, bias=True, name="first"))
    second = convolution(quantized(first, -0.3, 3.0), 16, bias=True, name="second")
    return model(opset1.sigmoid(second), x)


def classifier():
    """A bias at the end of the model, whose name the layer has."""
    x = parameter([1, 48])
    product = opset1.matmul(quantized(x, 0, 2.55), int8_weights([10, 48]), False, True)
    biased = opset1.add(product, const(np.linspace(-1, 1, 10).reshape(1, 10)))
    last = opset1.matmul(quantized(opset1.relu(biased), 0, 5), int8_weights([6, 10], seed=1), False, True)
    return model(opset1.add(last, const(np.linspace(-1, 1, 6).reshape(1, 6))), x)


def barely_shifted(low: float):
    """A range after the first layer that starts a third of a step below 0, or at 0."""
    x = parameter([1, 16, 8, 8])
    first = convolution(quantized(x, 0, 2.55), 32, bias=True, name="first")
    return model(convolution(quantized(first, low, 3.0), 16, name="second"), x)


@pytest.mark.parametrize("stock", [False, True], ids=["ovlpt", "stock"])
@pytest.mark.parametrize("build", [chain, residual, encoder, classifier], ids=lambda each: each.__name__)
def test_every_layer_is_as_predicted(core, build, stock):
    layers = post_ops(build(), stock=stock, core=core)
    assert len(layers) >= 2
    assert [layer.reason for layer in layers] == [None] * len(layers)
    assert all(layer.equal and layer.actual for layer in layers)


def test_scales_are_where_the_plugins_own_lpt_has_them(core):
    mine, theirs = (post_ops(chain(), stock=stock, core=core) for stock in (False, True))
    assert [Logged.parse(layer.actual) for layer in mine] == [Logged.parse(layer.actual) for layer in theirs]
    assert all("wei:" in layer.actual and "eltwise_clip:-3.4" not in layer.actual for layer in mine)


def test_a_wrong_prediction_is_told_from_the_log():
    line = "attr-scales:dst:0:f32+wei:1:f32 attr-post-ops:eltwise_linear:2:128+sum:1:0:u8+binary_mul:f32:2"
    logged = Logged.parse(line)
    assert logged.scales == ("dst:0", "wei:1")
    assert [kind for kind, _ in logged.post_operations] == ["eltwise_linear", "sum", "binary_mul"]
    assert logged.difference(logged) is None
    assert (
        Logged.parse(line.replace(":128", ":127")).difference(logged)
        == "eltwise_linear with (2.0, 127.0), not (2.0, 128.0)"
    )
    assert Logged.parse(line.replace("+wei:1:f32", "")).difference(logged) == "scales dst:0, not dst:0+wei:1"
    assert "binary_add" in Logged.parse(line.replace("binary_mul", "binary_add")).difference(logged)
    assert not Logged.parse(line.replace("f32:2", "f32:3")).agrees(logged)


def test_a_range_that_costs_a_post_operation(core):
    shifted, straight = (post_ops(barely_shifted(low), core=core)[0] for low in (-0.004, 0.0))
    assert (shifted.equal, shifted.saved) == (True, 1)
    assert (straight.equal, straight.saved) == (True, 0)
    count = [len(Logged.parse(layer.actual).post_operations) for layer in (shifted, straight)]
    assert count == [1, 0]  # what the adjusted range really saves


def test_another_device(core):
    with pytest.raises(InputError, match='no log of post-operations on "GPU"; give the device "CPU"'):
        post_ops(chain(), "GPU", core=core)


def test_the_command(tmp_path, capsys):
    import openvino

    path, written = tmp_path / "net.xml", tmp_path / "layers.json"
    openvino.save_model(chain(), path, compress_to_fp16=False)
    assert cli.main(["explain", "--post-ops", "--strict", str(path), "--json", str(written)]) == 0
    content = json.loads(written.read_text())
    assert_documented(content)
    layers = content["result"]["layers"]
    assert all(layer["equal"] for layer in layers)
    assert {"name", "predicted", "actual", "equal"} <= set(layers[0])
    assert "2 of 2 int8 layers have the predicted scales" in capsys.readouterr().out


def test_the_command_names_hazards(tmp_path, capsys):
    import openvino

    x = parameter([1, 16, 8, 8])
    active = opset1.relu(convolution(quantized(x, 0, 2.55), 32, name="conv"))
    net = model(opset1.tanh(opset1.multiply(active, const(np.float32(-0.5)))), x)
    openvino.save_model(net, tmp_path / "net.xml", compress_to_fp16=False)
    assert cli.main(["explain", str(tmp_path / "net.xml")]) == 0
    told = capsys.readouterr().out
    assert "conv: the scale" in told
    assert "ovlpt.compile_model keeps the numbers right" in told

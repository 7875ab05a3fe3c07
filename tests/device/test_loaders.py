"""A saved model is an ordinary model: whoever loads it has the same int8 layers and the same numbers."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import openvino
import pytest
from openvino._offline_transformations import apply_moc_transformations
from openvino.preprocess import PrePostProcessor

import ovlpt
from ovlpt import data
from ovlpt.device.properties import F32
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.openvino_api import ConstantFolding, opset1
from tests.conftest import EXACT, run_pass
from tests.lowered import recurrent
from tests.networks import const, convolution, depthwise, encoder, int8_weights, model, parameter, quantized
from tools import loaders
from tools.loaders import int8_layers


def by_channel():
    """Intervals by channel, and one on another grid after a product that stays in float."""
    x = parameter([2, 16, 8, 8])
    high = np.linspace(1, 2.55, 16).reshape(1, 16, 1, 1)
    ends = [const(np.zeros((1, 16, 1, 1))), const(high), const(np.zeros((1, 16, 1, 1))), const(high)]
    data_ = quantized(depthwise(opset1.fake_quantize(x, *ends, 256)), -1.0, 1.0)
    other = quantized(opset1.sigmoid(quantized(convolution(data_, 8), -1.28, 1.27)), 0, 1, 16)
    return model([other, quantized(convolution(data_, 16, seed=1), 0, 2.55, 255)], x)


def of_rank_0():
    """A FakeQuantize of a single number beside a product."""
    x, y = parameter([4, 16]), parameter([], name="y")
    product = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([16, 8], axis=1), False, False)
    return model(opset1.multiply(product, quantized(y, -2, 2)), [x, y])


NETWORKS = {
    "digits": lambda: data.digits(),
    "encoder": encoder,
    "by channel": by_channel,
    "rank 0": of_rank_0,
    "recurrent": lambda: recurrent()[0],
}


def as_read(read):
    return read


def processed(read):
    """With a PrePostProcessor in front, which folds constants."""
    processor = PrePostProcessor(read)
    for index, port in enumerate(read.inputs):
        processor.input(index).tensor().set_element_type(port.element_type)
    return processor.build()


def folded(read):
    return run_pass(read, ConstantFolding())


def optimized(read):
    """As a model is when another tool has converted it."""
    apply_moc_transformations(read, False)
    return read


def reshaped(read):
    read.reshape({port: port.partial_shape for port in read.inputs})
    return read


def saved_again(core, read, folder):
    """As `openvino.save_model` writes it by default, which makes f16 of constants elsewhere."""
    openvino.save_model(read, folder / "again.xml")
    return core.read_model(folder / "again.xml")


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda name: name.replace(" ", "_"))
def saved(request, core, tmp_path_factory):
    """A file, inputs, how `ovlpt.compile_model` runs the network, and the outputs of the file."""
    net = NETWORKS[request.param]()
    path = tmp_path_factory.mktemp("saved") / "saved.xml"
    ovlpt.save_model(ovlpt.transform(net, core=core), path)
    here = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    generator = np.random.default_rng(0)
    inputs = [generator.integers(0, 4, list(port.shape)).astype(np.float32) for port in here.inputs]
    numbers = list(ovlpt.compile_model(path, "CPU", EXACT, core=core)(inputs).values())
    return request.param, path, inputs, here, [np.array(each) for each in numbers]


def assert_equal(compiled, saved, numbers: bool = True) -> None:
    _, _, inputs, here, expected = saved
    found = [np.array(each) for each in compiled(inputs).values()]
    assert int8_layers(compiled) == int8_layers(here) > 0
    if numbers:
        for one, other in zip(found, expected, strict=True):
            assert np.abs(one - other).max() <= 1e-5 * np.abs(other).max()


@pytest.mark.parametrize("device", ["CPU", "AUTO:CPU", "MULTI:CPU", "HETERO:CPU", "BATCH:CPU(1)"])
@pytest.mark.parametrize("change", [as_read, processed, folded, optimized, reshaped], ids=lambda each: each.__name__)
def test_devices(saved, core, device, change):
    """None of them sets the plugin's own LPT off."""
    compiled = core.compile_model(change(core.read_model(saved[1])), device, EXACT)
    assert_equal(compiled, saved)


@pytest.mark.parametrize("change", [as_read, processed, optimized, reshaped, folded], ids=lambda each: each.__name__)
def test_without_the_own_lpt_of_the_plugin(saved, core, change):
    if saved[0] == "recurrent":
        pytest.skip("the plugin forms quantized recurrent layers only while its own LPT is on")
    compiled = core.compile_model(change(core.read_model(saved[1])), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    assert_equal(compiled, saved)


def test_saved_again(saved, core, tmp_path):
    for change in (as_read, processed, reshaped, folded):
        read = saved_again(core, change(core.read_model(saved[1])), tmp_path)
        assert_equal(core.compile_model(read, "CPU", EXACT), saved)


@pytest.mark.parametrize(
    "hint", [{}, {"INFERENCE_PRECISION_HINT": "bf16"}, {**F32, "PERFORMANCE_HINT": "THROUGHPUT"}], ids=str
)
@pytest.mark.parametrize("change", [as_read, processed], ids=lambda each: each.__name__)
def test_hints(saved, core, hint, change):
    """What stays in float may be in bf16, and its numbers with it."""
    compiled = core.compile_model(change(core.read_model(saved[1])), "CPU", hint)
    assert_equal(compiled, saved, numbers=F32.items() <= hint.items())


@pytest.mark.parametrize("name", loaders.LOADERS)
def test_loaders(saved, name, tmp_path):
    """Programs of the wheel, its C library, a server's configuration, and the devices that stand before a CPU."""
    if name == "C program" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    _, path, inputs, here, expected = saved
    of_tool = loaders.Saved(path, inputs, int8_layers(here), expected)
    assert loaders.verdict(of_tool, loaders.LOADERS[name](of_tool, tmp_path)) == "same"


def test_the_table(core, tmp_path, capsys):
    """A cell says which layers were lost, or how far off the numbers are, and the exit status is 1 then."""
    saved = loaders.Saved(tmp_path / "none.xml", [], 2, [np.array([1.0, 2.0])])
    assert loaders.verdict(saved, loaders.Loaded(1, saved.outputs)) == "1 of 2 layers"
    assert loaders.verdict(saved, loaders.Loaded(2, [np.array([1.0, 2.2])])) == "numbers off by 0.1"
    assert loaders.verdict(saved, loaders.Loaded(2, [np.array([1.0, np.nan])])) == "numbers off by nan"
    assert loaders.row(saved, {"path": loaders.from_path}) == {"path": "fails"}
    assert "none.xml, path:" in capsys.readouterr().err


FRESH = """
import sys, openvino
core = openvino.Core()
{line}
core.read_model(sys.argv[1])
"""


@pytest.mark.parametrize("line", ["core.available_devices", 'core.get_versions("CPU")', ""])
def test_read_in_a_fresh_process(core, tmp_path, line):
    """The CPU plugin brings the operations."""
    ovlpt.save_model(ovlpt.transform(data.digits(), core=core), tmp_path / "saved.xml")
    command = [sys.executable, "-c", FRESH.format(line=line), str(tmp_path / "saved.xml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode == 0) == bool(line)
    assert line or "unsupported opset: type_relaxed_opset" in done.stderr


def test_no_loader_can_see_the_ends(saved, core):
    """Where no FakeQuantize has four Constants, or Converts of such, the plugin's own LPT stays off."""
    if saved[0] == "recurrent":
        pytest.skip("here it has to be on")
    for change in (as_read, processed, folded, optimized, reshaped):
        read = change(core.read_model(saved[1]))
        found = [node for node in read.get_ops() if node.get_type_name() == "FakeQuantize"]
        assert found
        for node in found:
            kinds = {value.get_node().get_type_name() for value in node.input_values()[1:]}
            assert not kinds <= {"Constant", "Convert"}
            assert QuantizationDetails.of(node) is not None  # ovlpt sees through

"""What a transformation reads and copies once."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.graph.constants import numbers_read_once
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.openvino_api import Model, opset1
from tests.networks import const, convolution, model, parameter, quantized


def network():
    x = parameter([1, 4, 6, 6])
    return model(convolution(quantized(x, 0, 2.55), 4), x)


def test_details_are_read_once():
    """While a model is transformed, and anew where an interval has changed."""
    quantize = quantized(parameter([1, 4]), 0.0, 2.55)
    node = quantize if hasattr(quantize, "get_type_name") else quantize.get_node()
    assert QuantizationDetails.of(node) is not QuantizationDetails.of(node)
    with numbers_read_once():
        found = QuantizationDetails.of(node)
        assert QuantizationDetails.of(node) is found
        node.input(2).replace_source_output(const(1.275).output(0))
        assert QuantizationDetails.of(node).input_high == np.float32(1.275)
        node.input(2).replace_source_output(opset1.parameter([], np.float32).output(0))
        assert QuantizationDetails.of(node) is None


def test_pass_and_lowering_share_what_was_read():
    """What one of several contexts has read is forgotten with the outermost."""
    quantize = quantized(parameter([1, 4]), 0.0, 2.55)
    node = quantize if hasattr(quantize, "get_type_name") else quantize.get_node()
    with numbers_read_once():
        with numbers_read_once():
            found = QuantizationDetails.of(node)
        with numbers_read_once():
            assert QuantizationDetails.of(node) is found
    assert QuantizationDetails.of(node) is not found


@pytest.fixture
def clones(monkeypatch):
    """How often the network is copied."""
    made, clone = [], Model.clone

    def counted(self):
        if self.get_parameters() and self.get_friendly_name() == "network":
            made.append(self)
        return clone(self)

    monkeypatch.setattr(Model, "clone", counted)
    return made


def test_a_file_is_not_copied(core, tmp_path, clones):
    """A caller's model is, so that what a failing pass leaves is thrown away with the copy. Common optimizations work on a
    copy of any model, of nodes that nobody holds.
    """
    net = network()
    net.set_friendly_name("network")
    ovlpt.save_model(net, tmp_path / "network.xml")
    ovlpt.transform(net, core=core)
    assert len(clones) == 2
    clones.clear()
    ovlpt.transform(tmp_path / "network.xml", core=core)
    assert len(clones) == 1


def test_in_place(core):
    """The same graph as by way of a copy."""
    config = ovlpt.plugin_config.for_device(core, "CPU")
    kinds = []
    for in_place in (False, True):
        net = network()
        ovlpt.LowPrecision.from_config(config, in_place=in_place).run_on_model(net)
        kinds.append([node.get_type_name() for node in net.get_ordered_ops()])
    assert kinds[0] == kinds[1]
    assert kinds[0].count("Multiply") == 1

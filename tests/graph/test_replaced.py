"""The graph does not depend on who holds what was replaced: a debugger, a profiler, a worker whose frames are looked at."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ovlpt
from ovlpt.data import digits
from ovlpt.device.lowering import PluginLowering
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.replaced import detach, is_replaced
from ovlpt.graph.text import to_text
from ovlpt.openvino_api import Manager, Model, opset1
from tests import networks
from tests.graphs import parameter
from tools.fuzz.exported import EXPORTED
from tools.fuzz.graphs import Form, build, random_graph
from tools.fuzz.operations import KINDS

PACKAGE = str(Path(ovlpt.__file__).parent)
PASSES = ("_rewrite", "_run", "run_on_model", "_run_passes", "__init__")  # hold what C++ has to free in its own order


@contextmanager
def watched() -> Iterator[None]:
    """All frames of rules are held, and so are the nodes in them."""
    held = []

    def hold(frame, event, _):
        code = frame.f_code
        if event == "return" and code.co_filename.startswith(PACKAGE) and code.co_name not in PASSES:
            held.append(frame)

    before = sys.getprofile()
    sys.setprofile(hold)
    try:
        yield
    finally:
        sys.setprofile(before)


def _text(source: Model, **settings) -> str:
    return _numbered_alike(ovlpt.transform(source, **settings))


def _numbered_alike(model: Model) -> str:
    text = to_text(model)
    return re.sub(r"\b([A-Z][A-Za-z0-9]+)_\d+", r"\1", text)  # OpenVINO numbers the nodes of a process


NETWORKS = {
    "digits": digits,
    "one convolution": networks.one_convolution,
    "residual": networks.residual,
    "shared zero point": networks.shared_zero_point,
    "encoder": networks.encoder,
    **{f"random {seed}": lambda seed=seed: build(random_graph(seed)) for seed in (0, 1, 2, 4, 5, 7, 8)},
}


@pytest.mark.parametrize("device", ["CPU", "GPU"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_graph_whoever_holds_frames(core, name, device):
    made = NETWORKS[name]()
    source = made if isinstance(made, Model) else core.read_model(made)
    settings = {"config": ovlpt.plugin_config.gpu.config()} if device == "GPU" else {}
    expected = _text(source, device=device, **settings)
    with watched():
        found = _text(source, device=device, **settings)
    assert found == expected


HALF = {
    f"half {seed}": lambda seed=seed: build(replace(random_graph(seed, {**KINDS, **EXPORTED}), form=Form("f16")))
    for seed in range(3)
}


@pytest.mark.parametrize("name", [*NETWORKS, *HALF])
def test_the_same_graph_whoever_holds_the_nodes_of_the_model(core, name):
    made = (NETWORKS | HALF)[name]()
    source = made if isinstance(made, Model) else core.read_model(made)

    def lowered(model: Model) -> str:
        manager = Manager()
        manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core, "CPU")))
        manager.register_pass(PluginLowering("CPU"))
        manager.run_passes(model)
        return _numbered_alike(model)

    held, other = source.clone(), source.clone()
    nodes = all_nodes(held)
    assert lowered(held) == lowered(other)
    assert nodes


def test_what_was_replaced_reads_nothing():
    data = parameter((1, 4))
    above = opset1.relu(data)
    node = opset1.add(above, np.ones((1, 4), np.float32))
    assert is_replaced(node)
    detach(node)
    assert not data.output(0).get_target_inputs()
    assert node.input_value(0).get_node().get_type_name() == "Constant"


def test_what_is_read_stays():
    data = parameter((1, 4))
    above = opset1.relu(data)
    result = opset1.result(above)
    detach(above)
    detach(result)
    detach(data)
    assert result.input_value(0) == above.output(0)
    assert len(data.output(0).get_target_inputs()) == 1

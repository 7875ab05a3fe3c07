"""Networks × restrictions: the result equals that of the native pass, node by node."""

from __future__ import annotations

import shutil

import pytest

from ovlpt import LowPrecision, Params, PassConfig, PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.openvino_api import RELEASE, Manager
from tests.restricted_networks import NETWORKS
from tools.parity.compare import compare
from tools.parity.driver import run_native

WEIGHTED = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul")
NOT_ON_CPU = "MultiplyToGroupConvolutionTransformation"


def allowed(*activations: str) -> tuple[PrecisionsRestriction, ...]:
    """The element types of the activations; weights are i8.

    A list a port: the native pass crashes where two lists of a LSTMSequence are each shared by two ports.
    """
    return (
        *(PrecisionsRestriction.create(name, {0: activations, 1: ["i8"]}) for name in WEIGHTED),
        PrecisionsRestriction.create("LSTMSequence", {0: activations, 1: activations, 4: ["i8"], 5: ["i8"]}),
    )


PER_TENSOR = tuple(QuantizationGranularityRestriction.create(name, [0]) for name in WEIGHTED)
RESTRICTIONS = {
    "none": ((), (), {}),
    "u8": (allowed("u8"), (), {}),
    "i8": (allowed("i8"), (), {}),
    "u8, i8": (allowed("u8", "i8"), (), {}),
    "i8, u8": (allowed("i8", "u8"), (), {}),
    "empty": (tuple(PrecisionsRestriction.create(name, {}) for name in (*WEIGHTED, "LSTMSequence")), (), {}),
    "per tensor": ((), PER_TENSOR, {}),
    "per tensor, u8": (allowed("u8"), PER_TENSOR, {}),
    "per channel": (
        (),
        tuple(QuantizationGranularityRestriction.create(name, {0: "per_channel"}) for name in WEIGHTED),
        {},
    ),
    "precisions kept": ((), (), {"update_precisions": False}),
    "deq f16": ((), (), {"deq_precision": "f16"}),
}
CELLS = {(network, restriction) for network in NETWORKS for restriction in RESTRICTIONS}
# Cells that differ, by the reason, which names the native class at fault: at most 2 % of all, five for a reason.
DIFFERENT: dict[str, set[tuple[str, str]]] = {}

pytestmark = [
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="the native pass is driven by a C++ program and there is no g++"
    ),
    pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one"),
]


def results(network: str, restriction: str):
    """The native pass's and ours."""
    precisions, granularity, changes = RESTRICTIONS[restriction]
    params = Params(native_only=True, **changes)
    graph = NETWORKS[network]()
    expected = run_native(graph, precisions, granularity, params, disabled=[NOT_ON_CPU])
    manager = Manager()
    manager.register_pass(LowPrecision(precisions, granularity, params, PassConfig({NOT_ON_CPU})))
    manager.run_passes(graph)
    return expected, graph


@pytest.mark.parametrize("restriction", RESTRICTIONS)
@pytest.mark.parametrize("network", NETWORKS)
def test_cell(network, restriction):
    expected, graph = results(network, restriction)
    result = compare(expected, graph)
    is_listed = any((network, restriction) in cells for cells in DIFFERENT.values())
    assert result.equal is not is_listed, f"{result.matched} / {result.total}: {result.differences}"


def test_what_differs_is_little_and_has_reasons():
    listed = [cell for cells in DIFFERENT.values() for cell in cells]
    assert set(listed) <= CELLS
    assert len(listed) <= 0.02 * len(CELLS)
    assert all(len(cells) <= 5 for cells in DIFFERENT.values())


@pytest.mark.parametrize("network", ["convolution, signed", "Concat, signed", "two convolutions", "depthwise"])
def test_restrictions_change_the_native_result(network):
    """The matrix compares results that differ from one another."""
    unrestricted, _ = results(network, "none")
    changed = [
        name for name in RESTRICTIONS if name != "none" and not compare(unrestricted, results(network, name)[0]).equal
    ]
    assert len(changed) >= 3, changed

"""Whole networks, channels last: nothing but convolutions, biases and activations is left."""

from __future__ import annotations

import pytest

from ovlpt.trace import Outcome
from tests.fusions.networks import kinds
from tests.fusions.whole_networks import NETWORKS

EXPECTED = {
    "ResNet-like": {"Convolution": 22, "Add": 28, "Relu": 19},
    "MobileNet-like": {"Convolution": 13, "GroupConvolution": 6, "Add": 22, "Clamp": 13},
    "ResNeXt-like": {"Convolution": 10, "GroupConvolution": 4, "Add": 18, "Relu": 13},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_network(name: str, fused) -> None:
    model, trace = fused(NETWORKS[name](size=16), plugin=True)
    counts = kinds(model)
    assert {kind: counts[kind] for kind in counts if kind not in ("Transpose", "ReduceMean", "MatMul")} == EXPECTED[
        name
    ]
    assert not [event for event in trace if event.outcome is not Outcome.TRANSFORMED]

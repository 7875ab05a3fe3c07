"""The text of what becomes of a network: the same for the same, and another for another."""

from __future__ import annotations

from tests import networks
from tools import fingerprint


def test_a_network_built_twice_has_one_text(core):
    text = fingerprint.describe(networks.one_convolution(), core)
    assert text == fingerprint.describe(networks.one_convolution(), core)
    assert "ConvolutionTransformation" in text
    assert all(f"{name}, pass" in text for name in fingerprint.SETTINGS)


def test_another_constant_or_type_is_another_text(core):
    text = fingerprint.describe(networks.one_convolution(), core)
    for other in (networks.one_convolution(0, 2.5), networks.one_convolution(-1.28, 1.27)):
        assert fingerprint.describe(other, core) != text

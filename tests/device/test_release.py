from __future__ import annotations

import pytest

import ovlpt
from ovlpt.device import release
from ovlpt.trace import OvlptError
from tests.networks import one_convolution


@pytest.fixture
def unseen(monkeypatch):
    monkeypatch.setattr(release, "SEEN", frozenset())
    release._try_relaxed_convolution.cache_clear()
    yield
    release._try_relaxed_convolution.cache_clear()


def test_a_new_release_is_tried_and_taken(core, unseen):
    ovlpt.transform(one_convolution(), core=core)
    ovlpt.compile_model(one_convolution(), core=core)
    assert release._try_relaxed_convolution.cache_info().currsize == 1


def test_a_release_without_relaxed_operations_is_named(core, unseen, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("Exception from somewhere:\nunknown opset\n")

    monkeypatch.setattr(release, "relaxed", refuse)
    with pytest.raises(OvlptError, match=r"OpenVINO \d+\.\d+ is new to ovlpt .*unknown opset"):
        ovlpt.transform(one_convolution(), core=core)


def test_a_release_that_computes_wrongly_is_named(core, unseen, monkeypatch):
    monkeypatch.setattr(release, "constant", lambda values, precision="f32": release_constant(values + 1, precision))
    with pytest.raises(OvlptError, match="computes a type-relaxed convolution wrongly"):
        ovlpt.transform(one_convolution(), core=core)


release_constant = release.constant

from __future__ import annotations

import gc

import pytest

import ovlpt
from ovlpt.graph.garbage import uncollected
from tests import networks


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_as_it_was(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(ValueError), uncollected():  # noqa: PT011, PT012  # any would do
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_no_collection_during_a_transformation(core):
    """Each goes through all that the process holds."""
    model, generations = networks.encoder(), []

    def collected(phase, facts):
        generations.append(facts["generation"])

    gc.callbacks.append(collected)
    threshold = gc.get_threshold()
    try:
        gc.set_threshold(50)
        ovlpt.transform(model, core=core)
        within = len(generations)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)
    assert within < 20  # a few before and after; otherwise more than fifty

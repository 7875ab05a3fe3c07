"""Large graphs: the time grows with their size, and no walk needs a stack as deep as they are."""

from __future__ import annotations

import time

import numpy as np
import pytest

import ovlpt
from ovlpt.attributes.intervals_alignment import Grid, Interval, IntervalsAlignment
from ovlpt.graph.constants import is_constant_path, remembering
from ovlpt.graph.weights import folded_constant
from ovlpt.openvino_api import opset1
from tests.networks import const, convolution, model, parameter, quantized


def pools(count):
    """An activation that is only copied, all the way."""
    x = parameter([1, 4, 2, 2])
    value = quantized(x, 0, 2.55)
    for _ in range(count):
        value = opset1.max_pool(value, [1, 1], [1, 1], [1, 1], [3, 3])
    return model(convolution(quantized(value, 0, 2.55), 4, 1), x)


def test_deeper_than_the_stack(core):
    kinds = [node.get_type_name() for node in ovlpt.transform(pools(1100), core=core).get_ops()]
    assert kinds.count("MaxPool") == 1100


def test_a_walk_is_made_once():
    """From each node of a chain up to its input: 8 million steps where each is made anew."""
    chain = [parameter([4])]
    for _ in range(4000):
        chain.append(opset1.relu(opset1.multiply(chain[-1], const(2.0))))
    start = time.process_time()
    with remembering():
        assert not any(is_constant_path(node) for node in chain)
        assert all(folded_constant(node.output(0)) is None for node in chain)
    assert time.process_time() - start < 2
    assert is_constant_path(opset1.multiply(const(1.0), const(2.0)))
    assert folded_constant(opset1.multiply(const(1.0), const(2.0)).output(0)) == 2


def test_what_is_remembered_is_forgotten():
    """A node may become constant once the rewrite is over."""
    x = parameter([4])
    node = opset1.relu(opset1.relu(x))
    with remembering():
        assert not is_constant_path(node)
    node.input(0).replace_source_output(const([1.0] * 4).output(0))
    assert is_constant_path(node)
    with remembering():
        assert is_constant_path(node)


def intervals(count, levels):
    generator = np.random.default_rng(count)
    for low, high in zip(-generator.uniform(0, 2, count), generator.uniform(1, 3, count), strict=True):
        kept = int(generator.choice(levels))
        yield IntervalsAlignment(Interval(low, high, low, high, kept, ("u8",), (Grid(low, high, kept),)), kept)


@pytest.mark.parametrize("levels", [(256,), (16, 256), (16, 256, 65536)], ids=str)
def test_many_intervals_meet_at_once(levels):
    """As if they met one after the other."""
    one, other = next(intervals(1, levels)), next(intervals(1, levels))
    one.merge(intervals(30, levels))
    for each in intervals(30, levels):
        other.merge([each])
    assert (one.value, one.levels) == (other.value, other.levels)


def test_thousands_of_intervals():
    start = time.process_time()
    one = next(intervals(1, (256,)))
    one.merge(intervals(4000, (256,)))
    for _ in range(4000):
        assert one.value.common_grid is None
    assert time.process_time() - start < 2

from __future__ import annotations

import numpy as np
import pytest

from ovlpt.canonicalize.plain_pooling import PlainPooling
from ovlpt.graph.text import to_text
from ovlpt.openvino_api import Manager
from ovlpt.trace import Trace
from tests.graphs import model, opset14, parameter, run

WINDOWS = [  # size, kernel, stride, padding before and after
    ((112, 112), 3, 2, 0, 0),
    ((7, 10), 3, 2, 1, 1),
    ((9, 8), 2, 2, 1, 1),  # rounded up, the last window would start in the padding
    ((13, 12), 3, 3, 1, 0),
    ((11, 5), 4, 3, 0, 2),
    ((6, 6), 2, 2, 0, 0),
]


def max_pool(size, kernel, stride, begin, end, dilation=1):
    x = parameter((2, 3, *size))
    window = [stride] * 2, [dilation] * 2, [begin] * 2, [end] * 2, [kernel] * 2
    return opset14.max_pool(x, *window, "ceil_torch").output(0)


def avg_pool(size, kernel, stride, begin, end, exclude_pad):
    x = parameter((2, 3, *size))
    return opset14.avg_pool(x, [stride] * 2, [begin] * 2, [end] * 2, [kernel] * 2, exclude_pad, "ceil_torch")


def repaired(graph):
    result, trace, manager = graph.clone(), Trace(), Manager()
    manager.register_pass(PlainPooling(trace=trace))
    manager.run_passes(result)
    return result, trace


def assert_plain(graph, shape) -> None:
    result, trace = repaired(graph)
    assert "ceil" not in to_text(result)
    assert [event.reason.code for event in trace] == ["ceil_torch"]
    data = [np.random.default_rng(0).standard_normal(shape).astype(np.float32)]
    for before, after in zip(run(graph, data), run(result, data), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_maxima_are_the_same(window):
    assert_plain(model(max_pool(*window)), (2, 3, *window[0]))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_averages_without_padding_are_the_same(window):
    assert_plain(model(avg_pool(*window, True)), (2, 3, *window[0]))


@pytest.mark.parametrize("window", [WINDOWS[2], WINDOWS[5], ((9, 9), 3, 2, 1, 1)], ids=str)
def test_averages_that_count_the_given_padding_are_the_same(window):
    assert_plain(model(avg_pool(*window, False)), (2, 3, *window[0]))


@pytest.mark.parametrize(
    "build, code",
    [
        (lambda: avg_pool((112, 112), 3, 2, 0, 0, False), "counted_padding"),
        (lambda: max_pool((12, 12), 3, 2, 0, 0, dilation=2), "dilation"),
        (lambda: max_pool((-1, 12), 3, 2, 0, 0), "dynamic_shape"),
    ],
)
def test_refusals(build, code):
    graph = model(build())
    result, trace = repaired(graph)
    assert to_text(result) == to_text(graph)
    assert [event.reason.code for event in trace] == [code]


def test_indices_that_are_read():
    pool = max_pool((8, 8), 3, 2, 0, 0).get_node()
    _, trace = repaired(model(pool.output(0), pool.output(1)))
    assert [event.reason.code for event in trace] == ["indices"]


def test_another_rounding_is_no_concern():
    x = parameter((2, 3, 8, 8))
    _, trace = repaired(model(opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [3, 3], "ceil").output(0)))
    assert not len(trace)

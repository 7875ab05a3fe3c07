from __future__ import annotations

from ovlpt.graph.text import diff, to_text
from tests.networks import one_convolution

TEXT = """
x: f32[1,16,8,8] = Parameter
quantize: f32[1,16,8,8] = FakeQuantize(x, 0, 2.55, 0, 2.55) {levels=256}
"""


def test_one_line_a_node():
    lines = to_text(one_convolution()).splitlines()
    assert lines[:2] == TEXT.strip().splitlines()
    assert sum("Convolution(quantize, " in line and "pads_begin=[1, 1]" in line for line in lines) == 1


def test_difference():
    assert diff("a\nb", "a\nb") == ""
    assert "-b" in diff("a\nb", "a\nc")

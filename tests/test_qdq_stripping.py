"""What plugins do first to a model quantized to 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

from ovlpt import Params
from ovlpt.openvino_api import PartialShape
from ovlpt.precisions import NUMPY
from ovlpt.qdq_stripping import QDQStripping
from tests.conftest import run_pass
from tests.graphs import dequantization, f32, model, opset1, parameter
from tests.prerequisites.graphs import kinds


def pair(precision: str, reads: int = 1, shape: PartialShape | None = None):
    limits = np.iinfo(NUMPY[precision])
    levels = int(limits.max) - int(limits.min) + 1
    data = parameter((1, 3)) if shape is None else opset1.parameter(shape, np.float32)
    quantize = opset1.fake_quantize(data, f32(0), f32(8), f32(limits.min), f32(limits.max), levels)
    stored = opset1.convert(quantize, precision)
    restored = dequantization(stored, 8 / (levels - 1), float(limits.min) or None)
    return model(*[opset1.relu(restored) for _ in range(reads)], *[stored][: reads - 1])


@pytest.mark.parametrize("native_only", [False, True])
@pytest.mark.parametrize("precision", ["i16", "u16"])
def test_of_a_pair_its_clipping_stays(precision, native_only):
    passes = QDQStripping([65536], params=Params(native_only=native_only))
    assert kinds(run_pass(pair(precision), passes)) == ["Clamp"] * (not native_only) + ["Relu"]


def test_of_a_pair_of_open_rank_its_clipping_stays():
    """One number leaves data of any rank as it is. In bf16 the integers of what stayed were rounded to multiples of 256."""
    passes = QDQStripping([65536])
    assert kinds(run_pass(pair("u16", shape=PartialShape.dynamic()), passes)) == ["Clamp", "Relu"]


def test_a_pair_that_others_read_stays_for_them():
    found = kinds(run_pass(pair("i16", 2), QDQStripping([65536])))
    assert sorted(found) == ["Clamp", "Convert", "FakeQuantize", "Relu", "Relu"]


@pytest.mark.parametrize("precision", ["i8", "u8"])
def test_a_pair_of_other_levels_stays(precision):
    before = kinds(pair(precision))
    assert kinds(run_pass(pair(precision), QDQStripping([65536]))) == before

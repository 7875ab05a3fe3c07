from __future__ import annotations

import numpy as np
import pytest

from ovlpt.cleanup.fuse_convert import FuseConvertTransformation
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, fake_quantize, model, parameter


def kinds(output):
    return [node.get_type_name() for node in run_pass(model(output), FuseConvertTransformation()).get_ordered_ops()]


@pytest.mark.parametrize(("constant", "fused"), [(3.0, True), (-3.0, False)])
def test_an_operation_reads_the_integers_themselves(constant, fused):
    """Unsigned data minus a negative constant could leave its type."""
    data = opset1.convert(parameter((1, 3), precision=np.uint8), "f32")
    assert ("Convert" not in kinds(opset1.subtract(data, f32(constant)))) is fused


def test_a_fake_quantize_keeps_its_convert():
    assert "Convert" in kinds(fake_quantize(opset1.convert(parameter((1, 3), precision=np.uint8), "f32"), 0.0, 2.55))


@pytest.mark.parametrize("operation", [opset1.add, opset1.multiply, opset1.subtract])
@pytest.mark.parametrize("stored", ["f8e4m3", "f8e5m2", "nf4", "u1"])
def test_a_type_that_no_kernel_computes_with_keeps_its_convert(stored, operation):
    data = opset1.convert(opset1.convert(parameter((1, 3)), stored), "f32")
    assert kinds(operation(data, f32(2.0))).count("Convert") == 2

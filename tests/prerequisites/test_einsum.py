"""Einsum as products, Transposes and Reshapes, with the numbers of numpy."""

from __future__ import annotations

import numpy as np
import pytest

import ovlpt
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.openvino_api import Model
from tests.conftest import EXACT
from tests.graphs import NodeFactory, f32, fake_quantize, model, parameter, run
from tests.prerequisites.test_quantize_dequantize import assert_as_stock, weighted

PAIRS = {
    "bsh,hd->bsd": ((2, 5, 8), (8, 6)),
    "bsh,dh->bsd": ((2, 5, 8), (6, 8)),
    "bsh,hnd->bnsd": ((2, 5, 8), (8, 3, 4)),
    "bsh,nhd->bsnd": ((2, 5, 8), (3, 8, 4)),
    "bnsd,ndh->bsh": ((2, 3, 5, 4), (3, 4, 8)),
    "bqhd,bkhd->bhqk": ((2, 5, 3, 4), (2, 6, 3, 4)),
    "bhqk,bkhd->bqhd": ((2, 3, 5, 6), (2, 6, 3, 4)),
    "ab,bc": ((3, 4), (4, 5)),
    "ba,bc->ca": ((4, 3), (4, 5)),
    "i,i->": ((7,), (7,)),
    "bi,bi->b": ((3, 7), (3, 7)),
    "bi,bj->bij": ((3, 4), (3, 5)),
    "ij,kl->ik": ((3, 4), (5, 6)),
    "...h,hd->...d": ((2, 3, 5, 8), (8, 6)),
    "b...h,bh...->b...": ((2, 3, 8), (2, 8, 3)),
    "abc,bcd->ad": ((2, 3, 4), (3, 4, 5)),
    "hd,bsh->sbd": ((8, 6), (2, 5, 8)),
}
ALONE = {"ij->ji": (3, 4), "ijk->ik": (3, 4, 5), "ij->": (3, 4), "...i->...": (2, 3, 4), "ba": (3, 4)}


def einsum(equation: str, *operands):
    return NodeFactory("opset7").create("Einsum", [each.output(0) for each in operands], {"equation": equation})


def decomposed(graph: Model) -> Model:
    CommonOptimizations().run_on_model(graph)
    assert "Einsum" not in {node.get_type_name() for node in graph.get_ops()}
    return graph


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("equation", [*PAIRS, *ALONE])
def test_numbers(equation, is_open):
    shapes = PAIRS.get(equation) or (ALONE[equation],)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    operands = [
        parameter([-1] * len(shape) if is_open else shape, f"x{index}") for index, shape in enumerate(shapes)
    ]  # fmt: skip
    graph = decomposed(model(einsum(equation, *operands)))
    np.testing.assert_allclose(run(graph, inputs)[0], np.einsum(equation, *inputs), atol=1e-5)


@pytest.mark.parametrize("equation, shapes", [("ii->i", [(3, 3)]), ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)])])
def test_what_is_left_to_the_plugin(equation, shapes):
    graph = model(einsum(equation, *(parameter(shape, f"x{index}") for index, shape in enumerate(shapes))))
    CommonOptimizations().run_on_model(graph)
    assert "Einsum" in {node.get_type_name() for node in graph.get_ops()}


@pytest.mark.parametrize("equation", ["bsh,hd->bsd", "bsh,dh->bsd", "bsh,hnd->bnsd", "bsh,nhd->bsnd", "bnsd,ndh->bsh"])
def test_quantized_weights_run_in_int8(equation, core):
    data, kernel = PAIRS[equation]
    stored = f32(np.random.default_rng(1).uniform(-0.5, 0.5, kernel))
    quantized = fake_quantize(parameter(data), -1.28, 1.27), fake_quantize(stored, -1.0, 1.0, 255)
    graph = model(einsum(equation, *quantized))
    assert_as_stock(graph, core)
    assert weighted(ovlpt.compile_model(graph, "CPU", EXACT, core=core)) == [True]


@pytest.mark.parametrize("equation", ["bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bi,bi->b"])
def test_two_quantized_tensors(equation, core):
    operands = (fake_quantize(parameter(shape, name), -1.28, 1.27) for shape, name in zip(PAIRS[equation], "xy"))  # noqa: B905
    graph = model(einsum(equation, *operands))
    assert_as_stock(graph, core)

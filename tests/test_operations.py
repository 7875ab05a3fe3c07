"""The table of operations says all that is asked of one, and nothing that belongs to a row stands elsewhere."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ovlpt.graph.copies import copied_data
from ovlpt.low_precision import MAIN, AssignAndReadValueTransformation
from ovlpt.openvino_api import NodeFactory, openvino_module, opset1
from ovlpt.operations import OPERATIONS, RECURRENT, WEIGHTED, as_native
from ovlpt.operations.table import ROWS
from tests.networks import const, parameter


def test_each_row_with_a_rule_has_a_transformation_and_each_transformation_a_row():
    """Who adds a row of an operation that computes, and no class in `ovlpt.low_precision`, is told here."""
    transformed = {
        name.split(".")[1] for kind in (*MAIN, AssignAndReadValueTransformation) for name in kind.type_names()
    }
    assert transformed == {row.name for row in OPERATIONS.values() if row.has_rule} | {"ReadValue"} & transformed


def test_each_operation_has_one_row():
    """Who adds a row and leaves that of `ovlpt.operations.absent` is told here: the last of them would count."""
    twice = [name for name, rows in Counter(row.name for row in ROWS).items() if rows > 1]
    assert not twice, f"more than one row: {', '.join(twice)}"


@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_a_row_is_of_one_piece(row):
    assert bool(row.weights) == (row.kind == "weighted")
    assert (row.input_axis is not None) == bool(row.weights_axes)
    assert row.why_absent is None or not row.has_rule
    assert set(row.weights) <= set(row.data_inputs or ())
    assert not (row.copies and row.kind in ("weighted", "elementwise"))


def test_layers_with_weights_are_those_of_the_rows():
    assert WEIGHTED | RECURRENT.keys() == {row.name for row in OPERATIONS.values() if row.kind == "weighted"}
    assert RECURRENT == {"LSTMSequence": (4, 5), "GRUSequence": (3, 4)}


def test_what_a_node_copies():
    x, y = parameter([1, 4, 4, 4]), parameter([1, 4, 4, 4], name="y")
    axes = const([0, 2, 1, 3], "i64")
    assert copied_data(opset1.transpose(x, axes)) == [x.output(0)]
    assert copied_data(opset1.concat([x, y], 1)) == [x.output(0), y.output(0)]
    pads = const([0, 0, 1, 1], "i64")
    value = const(0.0)
    assert copied_data(opset1.pad(x, pads, pads, "constant", value)) == [x.output(0), value.output(0)]
    assert copied_data(opset1.pad(x, pads, pads, "reflect")) == [x.output(0)]
    for blocks, copied in ((pads, []), (const([0, 0, 0, 0], "i64"), [x.output(0)])):
        assert (
            copied_data(openvino_module("opset2").space_to_batch(x, const([1, 1, 2, 2], "i64"), blocks, blocks))
            == copied
        )
    for node in (opset1.relu(x), opset1.add(x, y)):
        assert copied_data(node) == []
    assert copied_data(
        NodeFactory("opset1").create("SpaceToDepth", [x.output(0)], {"mode": "blocks_first", "block_size": 2})
    ) == [x.output(0)]


@pytest.mark.parametrize(
    ("name", "native", "ours"), [("Tile", False, True), ("MaxPool", True, True), ("Clamp", False, False)]
)
def test_what_follows_a_scale(name, native, ours):
    assert (as_native(OPERATIONS[name]).follows_scale, OPERATIONS[name].follows_scale) == (native, ours)


def test_what_copies_gives_out_values_of_its_data():
    """Not the checks of a reader: the numbers of the operations that tests have graphs of."""
    from tests.graphs import CASES, CORE, model
    from tests.graphs import parameter as data
    from tests.test_operations_on_graphs import operation

    copying = [case for case in CASES if OPERATIONS[operation(case.name)].copies]
    assert len(copying) > 30
    for case in copying:
        values = np.random.default_rng(0).permutation(int(np.prod(case.shape))).reshape(case.shape).astype(np.float32)
        result = CORE.compile_model(model(case.build(data(case.shape))), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(
            [values]
        )[0]
        assert set(result.flat) <= set(values.flat), case.name

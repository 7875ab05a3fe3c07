"""The gate that compares numbers: what it has to notice, and what it must not blame."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import cli, data
from ovlpt.device import PluginLowering
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.inputs import open_sizes, typical_inputs
from ovlpt.inspect.numbers import comparison, simulator, variants
from ovlpt.inspect.numbers.cases import STEPS, cases_of
from ovlpt.inspect.numbers.comparison import STAND_IN, compare_numbers
from ovlpt.inspect.numbers.distance import Distance, Verdict, verdict
from ovlpt.inspect.numbers.steadiness import COARSE
from ovlpt.inspect.numbers.variants import COMPILED, SAVED, Variant
from ovlpt.openvino_api import Model, NodeFactory, Type, opset1, opset6
from ovlpt.trace import InputError
from tests import networks
from tests.graphs import f32, fake_quantize, i64, model, parameter
from tests.inspect.faults import break_lowering, pointwise
from tests.test_cli import save
from tools.fuzz.numbers import computes_in


def anywhere(*_):
    return True


@pytest.mark.parametrize(("serializable", "form"), [(True, SAVED), (False, COMPILED)])
def test_what_is_wrong_in_one_form_only_is_found_and_its_layer_named(serializable, form, monkeypatch):
    assert ovlpt.check(pointwise([1, 16, 4, 4])).ok
    break_lowering(monkeypatch, lambda _, lowering: lowering.serializable is serializable)
    found = ovlpt.check(pointwise([1, 16, 4, 4]))
    assert not found.ok
    assert found.differences == ()
    assert {record.form for record in found.numbers.failures} == {form}
    kept = {"f32": 60, "bf16": 40}  # dB that stock keeps in the type of what is not quantized
    assert all(
        record.ovlpt < 10 < kept[record.setting.split(",")[0]] < record.stock for record in found.numbers.failures
    )
    assert found.numbers.layer == "first"


def test_wrong_numbers_of_an_open_batch_in_layers_of_the_right_precision(monkeypatch):
    """A gate that looks at precisions alone passes; so do layers cut out with the sizes of their inputs."""
    break_lowering(monkeypatch, lambda node, _: node.get_output_partial_shape(0).is_dynamic)
    net = pointwise([-1, 16, 1, 1])
    assert ovlpt.check(net, against="stock", numbers=False).ok
    assert ovlpt.check(pointwise([1, 16, 1, 1])).ok
    found = ovlpt.check(net, against="stock")
    assert not found.ok
    assert found.differences == ()
    assert {record.form for record in found.numbers.failures} == {COMPILED, SAVED}


def test_what_is_wrong_at_one_size_only(monkeypatch):
    break_lowering(monkeypatch, anywhere, only_at_one_pixel=True)
    failures = ovlpt.check(pointwise([-1, 16, -1, -1])).numbers.failures
    assert {"[1,16,1,1]", "[2,16,1,1]"} == {record.inputs for record in failures}


def test_a_layer_that_is_wrong_only_while_nobody_reads_it(monkeypatch):
    """Then networks that end after fewer layers tell which it is."""
    break_lowering(monkeypatch, lambda node, _: len(node.output(0).get_target_inputs()) == 1)
    found = ovlpt.check(pointwise([1, 16, 4, 4]))
    assert not found.ok
    assert found.numbers.layer in ("first", "second")


@pytest.mark.parametrize("sizes", [[-1, 16, 1, 1], [-1, 16, -1, -1], [1, 16, 1, 1]])
def test_a_shift_by_channel_before_an_interval_over_a_single_pixel(sizes, core):
    """The plugin took it for another on CPUs with VNNI, with an open batch of 1. Whatever it does, this says so."""
    net = pointwise(sizes, bias=True)
    values = typical_inputs(net, 1, 1)
    expected, stock, found = (
        np.array(compiled(values)[0])
        for compiled in (
            simulator("CPU", core)(net),
            core.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}),
            ovlpt.compile_model(net, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}, core=core),
        )
    )
    mine, others = Distance.of(expected, found).sqnr, Distance.of(expected, stock).sqnr
    records = ovlpt.check(net, core=core, inputs=values).numbers.records
    assert records[0].ovlpt == pytest.approx(mine, abs=0.5)
    assert records[0].fails == (mine < min(40, others - 3))


def off(net: Model, share: float, more: float, samples: Iterable[int]) -> Model:
    """The network with an output that is off by ``share`` of itself, and by ``more`` on generated ``samples``."""
    drawn = cases_of(net, None)[0].draw
    firsts = np.array([drawn(number)[0][0].flat[0] for number in samples], np.float32)
    net = net.clone()
    first = opset1.gather(opset1.reshape(net.get_parameters()[0], np.array([-1]), False), np.array([0]), np.array(0))
    hits = opset1.reduce_max(opset1.convert(opset1.equal(first, firsts), "f32"), np.array([0]), False)
    factor = opset1.add(opset1.multiply(hits, np.float32(more)), np.float32(1 + share))
    result = net.get_results()[0]
    result.input(0).replace_source_output(opset1.multiply(result.input_value(0), factor).output(0))
    return net


@pytest.mark.parametrize(
    ("mine", "stock", "ok"),
    [
        ((0.05, 0.25, (1, 9, 17, 25)), (0.05, 0.25, (5, 12, 20, 28)), True),  # as near, and once among the first four
        ((0.08, 0, ()), (0.05, 0, ()), False),  # 4 dB below on every sample
        ((0.05, 0.25, (1, 9, 17, 25)), (0.05, 0, ()), False),  # on an eighth of the samples
        ((0.05, 0.95, (1,)), (0.05, 0, ()), False),  # another answer on one sample
        ((0.05, 0.95, (1, 9)), (0.05, 0.25, (5, 12)), False),  # more than stock's chance
    ],
)
def test_chance_has_a_mean_and_a_fault_another(mine, stock, ok, core, monkeypatch):
    """A few samples on which ovlpt is unlucky are no fault, as long as stock is so on others; a fault remains one."""
    monkeypatch.setattr(comparison, "steadiness", lambda *given: [15.0 if given[-1] is COARSE else 150.0])  # deep
    net = pointwise([1, 16, 4, 4])
    simulate = simulator("CPU", core)
    variant = Variant(COMPILED, "f32", *(lambda net, each=each: simulate(off(net, *each)) for each in (mine, stock)))
    found = compare_numbers(net, [variant], simulate, cases_of(net, None))
    assert found.ok is ok
    first_four = cases_of(net, [np.concatenate([step[0] for step, *_ in cases_of(net, None)[0].samples])])
    assert not compare_numbers(net, [variant], simulate, first_four).ok  # given samples are all that there are


def trembling(gain: float) -> Model:
    """``pointwise`` with a sine of ``gain`` times its data before the second quantization."""
    net = pointwise([1, 16, 4, 4])
    middle = next(node for node in net.get_ops() if node.get_friendly_name() == "middle")
    waves = opset1.sin(opset1.multiply(middle.input_value(0), np.float32(gain)))
    middle.input(0).replace_source_output(waves.output(0))
    return net


@pytest.mark.parametrize(
    ("net", "share", "floats", "verdict"),
    [
        (pointwise([1, 16, 4, 4]), 1.0, "f32", Verdict.FAR),
        (pointwise([1, 16, 4, 4]), 0.1, "f32", Verdict.FAR),
        (pointwise([1, 16, 4, 4]), 0.02, "f32", Verdict.NEAR),
        (trembling(1e4), 1.0, "f32", Verdict.NEAR),
        (pointwise([1, 16, 4, 4]), np.inf, "f32", Verdict.WRONG),
        (pointwise([1, 16, 4, 4]), np.inf, "f16", Verdict.NEAR),
    ],
    ids=[
        "twice as large",
        "a tenth larger",
        "as much larger as roundings make it",
        "as the network trembles",
        "infinite",
        "overflowing in f16",
    ],
)
def test_what_stock_has_wrong_is_wrong(net, share, floats, verdict, core):
    """What was 0 dB from the simulation passed as "all as close as stock", then 10 dB; what was infinite, too."""
    simulate = simulator("CPU", core)
    wrong = lambda net: simulate(off(net, share, 0, ()))  # noqa: E731
    found = compare_numbers(net, [Variant(COMPILED, "f32", wrong, wrong, None, floats)], simulate, cases_of(net, None))
    assert [record.verdict for record in found.records] == [verdict]
    assert found.ok is (verdict is Verdict.NEAR)


def test_floats_are_as_far_as_they_make_the_simulation(core):
    """A word cutter has 23 dB in bf16, as its FakeQuantize simulation has."""
    net, simulate = pointwise([1, 16, 4, 4]), simulator("CPU", core)
    rough = lambda net: simulate(off(net, 0.1, 0, ()))  # noqa: E731
    for simulation, expected in ((None, Verdict.FAR), (rough, Verdict.NEAR)):
        variant = Variant(COMPILED, "bf16", rough, rough, None, "bf16", simulation)
        found = compare_numbers(net, [variant], simulate, cases_of(net, None))
        assert [record.verdict for record in found.records] == [expected]


def test_what_stock_has_wrong_is_wrong_on_more_samples_too(core):
    """More were compared, of which nothing was known: it threw."""
    net, simulate = pointwise([1, 16, 4, 4]), simulator("CPU", core)
    mine, stock = (lambda net, hits=hits: simulate(off(net, 0.9, 3, hits)) for hits in ((1,), (9,)))
    found = compare_numbers(net, [Variant(COMPILED, "f32", mine, stock)], simulate, cases_of(net, None))
    assert [record.verdict for record in found.records] == [Verdict.FAR]


def quantizing(net: Model, levels: float) -> Model:
    """``pointwise``, whose second layer reads that many levels."""
    net, value = net.clone(), levels * 2.0 / 255
    middle = next(node for node in net.get_ops() if node.get_friendly_name() == "middle")
    middle.input(0).replace_source_output(opset1.clamp(middle.input_value(0), value, value).output(0))
    return net


@pytest.mark.parametrize(("levels", "verdict"), [(40.5001, Verdict.NEAR), (44.0, Verdict.BELOW)])
def test_a_tie_that_every_sample_meets(levels, verdict, core):
    """A pretrained network was 3.1 dB below stock on 32 samples: so was the simulation, moved by a step of f32."""
    net, simulate = quantizing(pointwise([1, 16, 4, 4]), 40.5), simulator("CPU", core)
    variant = Variant(COMPILED, "f32", lambda net: simulate(quantizing(net, levels)), simulate)
    found = compare_numbers(net, [variant], simulate, cases_of(net, None))
    assert [record.verdict for record in found.records] == [verdict]


@pytest.mark.parametrize(("native", "ok"), [((0.02, 0, ()), True), ((0.01, 0, ()), False)])
def test_where_stock_throws_its_transformations_stand_in(native, ok, core):
    """A network that rounds a sum once, as stock does, failed for 37.6 dB where stock throws on its input of i16."""

    def throws(net):
        raise RuntimeError

    net, simulate = pointwise([1, 16, 4, 4]), simulator("CPU", core)
    mine, other = (lambda net, each=each: simulate(off(net, *each)) for each in ((0.02, 0, ()), native))
    found = compare_numbers(net, [Variant(COMPILED, "f32", mine, throws, other)], simulate, cases_of(net, None))
    assert (found.ok, found.notes) == (ok, (STAND_IN,))


def test_the_command(tmp_path, capsys, monkeypatch):
    path, result = save(pointwise([1, 16, 4, 4]), tmp_path / "net.xml"), tmp_path / "result.json"
    assert cli.main(["check", path, "--json", str(result)]) == 0
    printed = capsys.readouterr().out
    assert "numbers against the FakeQuantize simulation" in printed
    assert json.loads(result.read_text())["result"]["numbers"]["ok"] is True
    np.savez(tmp_path / "in.npz", x=np.random.default_rng(0).uniform(-1, 1.5, (3, 16, 4, 4)).astype(np.float32))
    assert cli.main(["check", path, "-i", str(tmp_path / "in.npz")]) == 0
    break_lowering(monkeypatch, anywhere)
    capsys.readouterr()
    assert cli.main(["check", path, "--json", str(result)]) == 1
    printed = capsys.readouterr().out
    assert "the first layer that goes wrong: first" in printed
    assert "every layer as expected" in printed  # of the precisions
    content = json.loads(result.read_text())["result"]
    assert content["ok"] is content["numbers"]["ok"] is False
    assert content["numbers"]["first_wrong_layer"] == "first"
    assert {"output", "form", "setting", "inputs", "ovlpt_db", "stock_db", "verdict", "text"} == set(
        content["numbers"]["records"][0]
    )
    assert cli.main(["check", path, "--no-numbers", "--json", str(result)]) == 0
    assert json.loads(result.read_text())["result"]["numbers"] is None
    assert cli.main(["check", path, "-i", str(tmp_path / "none.npz")]) == 2


def test_numbers_are_compared_with_one_thread_and_with_more():
    settings = {record.setting for record in ovlpt.check(pointwise([1, 16, 4, 4])).numbers.records}
    assert "f32" in settings
    if os.cpu_count() > 1:
        assert any("thread" in setting for setting in settings)


def test_the_devices_own_precision_where_it_is_another(monkeypatch):
    monkeypatch.setattr(variants, "default_precision", lambda core, device: "bf16")
    found = ovlpt.check(pointwise([1, 16, 4, 4]))
    assert found.ok
    assert {"f32", "bf16"} <= {record.setting for record in found.numbers.records}


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_the_type_that_is_asked_for(precision):
    """Numbers were compared in f32 and in the CPU's own type, whatever was asked for."""
    found = ovlpt.check(pointwise([1, 16, 4, 4]), against="stock", precision=precision)
    assert found.ok
    assert {record.setting.split(",")[0] for record in found.numbers.records} == {precision}


@pytest.mark.skipif(not computes_in("FP16"), reason="needs a CPU that computes in f16")
def test_wrong_numbers_in_f16(monkeypatch):
    monkeypatch.setattr("ovlpt.device.lowering.keep_types", lambda model: None)
    found = ovlpt.check(data.digits(), against="stock", precision="f16")
    assert {record.form for record in found.numbers.failures} == {COMPILED, SAVED}


def with_indices(k: int) -> Model:
    """The indices of the largest values, these values, and the sum of the indices."""
    net = pointwise([1, 16, 4, 4], bias=True)
    logits = opset1.reshape(net.get_results()[0].input_value(0), np.array([1, -1]), False)
    factory = NodeFactory("opset3")
    attributes = {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i32"}
    found = factory.create("TopK", [logits.output(0), opset1.constant(np.int64(k)).output(0)], attributes)
    total = opset1.reduce_sum(found.output(1), np.array([0, 1]), False)
    results = [opset1.result(value) for value in (found.output(1), found.output(0), total.output(0))]
    for result, name in zip(results, ("indices", "values", "sum"), strict=True):
        result.input_value(0).get_tensor().set_names({name})
    return Model(results, net.get_parameters(), "net")


def test_integers_are_compared_by_what_they_are_made_of(monkeypatch):
    found = ovlpt.check(with_indices(127))  # of nearly all values: near ones change places
    assert found.ok
    break_lowering(monkeypatch, anywhere)
    failures = ovlpt.check(with_indices(16)).numbers.failures
    assert {"indices", "values", "sum"} == {record.output for record in failures}
    assert all("computed from" in record.text for record in failures if record.output != "values")


def test_integers_that_are_made_of_no_real_numbers(monkeypatch):
    net = pointwise([-1, 16, 2, 2])
    net.add_results([opset1.result(opset1.shape_of(net.get_parameters()[0]))])
    assert ovlpt.check(net).ok

    def lowered(self, model):
        for result in model.get_results():
            if result.input_value(0).get_element_type() == Type.i64:
                result.input(0).replace_source_output(opset1.add(result.input_value(0), np.int64(1)).output(0))
        return run(self, model)

    run = PluginLowering.run_on_model
    monkeypatch.setattr(PluginLowering, "run_on_model", lowered)
    failures = ovlpt.check(net).numbers.failures
    assert failures
    assert {record.text for record in failures} == {"differs, and is not computed from real numbers"}


def test_a_state_is_carried_along_a_sequence(monkeypatch):
    """A running sum after a convolution: without the state each step would be right alone."""

    def counting() -> Model:
        net = pointwise([1, 16, 4, 4])
        layer = net.get_results()[0].input_value(0)
        zero = opset1.constant(np.zeros((1, 8, 4, 4), np.float32))
        state = opset6.read_value(zero, "sum", Type.f32, openvino.PartialShape([1, 8, 4, 4]))
        total = opset1.add(layer, state)
        return Model([opset1.result(total)], [opset6.assign(total, "sum")], net.get_parameters(), "net")

    found = ovlpt.check(counting())
    assert found.ok
    assert found.numbers.records
    break_lowering(monkeypatch, anywhere)
    assert not ovlpt.check(counting()).ok
    (case,) = cases_of(counting(), None)
    assert {len(sample) for sample in case.samples} == {STEPS}
    given = np.zeros((5, 16, 4, 4), np.float32)
    (case,) = cases_of(counting(), [given])
    assert [len(sample) for sample in case.samples] == [5]


def test_an_output_that_does_not_move_proves_little():
    net = pointwise([1, 16, 4, 4])
    still = opset1.multiply(net.get_results()[0].input_value(0), np.float32(0))
    found = ovlpt.check(Model([opset1.result(still)], net.get_parameters(), "net"))
    assert found.ok
    assert any("is 0 throughout" in note for note in found.numbers.notes)


def test_a_limited_instruction_set_is_compared_too():
    found = ovlpt.check(pointwise([1, 16, 4, 4]), isa="sse41")
    assert found.numbers.records
    assert found.numbers.ok


def test_counters_hold_no_numbers(tmp_path):
    path = save(pointwise([1, 16, 4, 4]), tmp_path / "net.xml")
    recorded = str(tmp_path / "counters.csv")
    assert cli.main(["check", path, "--no-numbers", "--save-counters", recorded]) == 0
    found = ovlpt.check(path, expect="int8:Convolution", counters=recorded)
    assert found.numbers is None
    assert "numbers are not compared: counters hold none" in found.notes


def test_a_transformed_model_has_no_simulation():
    found = ovlpt.check(ovlpt.transform(pointwise([1, 16, 4, 4])))
    assert found.numbers.records == ()
    assert "transformed already" in found.numbers.notes[0]


def test_a_model_that_runs_on_none_of_the_inputs():
    net = pointwise([-1, 16, -1, -1])
    halves = opset1.reshape(net.get_results()[0].input_value(0), np.array([4321]), False)
    unlike = Model([opset1.result(halves)], net.get_parameters(), "net")
    with pytest.raises(ovlpt.InputError, match=r"does not run on inputs.* give inputs that fit with -i"):
        ovlpt.check(unlike, expect="int8:Convolution")
    assert ovlpt.check(unlike, expect="int8:Convolution", numbers=False).ok


def test_the_bundled_network():
    found = ovlpt.check(data.digits(), inputs=[data.heldout()[0][:4]])
    assert found.ok
    assert found.numbers.worst.ovlpt > 20
    json.dumps(found.to_json())


@pytest.mark.parametrize(
    ("mine", "stock", "expected"),
    [
        (39.0, 41.0, Verdict.NEAR),
        (39.0, 42.5, Verdict.BELOW),
        (40.0, 90.0, Verdict.NEAR),
        (20.0, 10.0, Verdict.NEARER),
        (80.0, 10.0, Verdict.NEARER),
        (80.0, 60.0, Verdict.NEAR),
        (20.0, None, Verdict.BELOW),
        (60.0, None, Verdict.NEAR),
        (-math.inf, -math.inf, Verdict.NEAR),
        (-math.inf, 20.0, Verdict.BELOW),
        (math.inf, math.inf, Verdict.NEAR),
    ],
)
def test_the_rule(mine, stock, expected):
    assert verdict(mine, stock) == expected


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("reference", "value", "expected"),
    [
        ([1, 2], [1, 2], INF),
        ([3, 4], [3, 4.5], 20.0),
        ([NAN, INF, 10], [NAN, INF, 11], 20.0),
        ([NAN, INF, 10], [NAN, -INF, 10], -INF),
        ([1, 2], [1, NAN], -INF),
        ([1, NAN], [1, 2], -INF),
        ([0, 0], [0, 1e-9], INF),
        ([0, 0], [0, 1e-2], -INF),
        ([], [], INF),
        ([1, 2], [1, 2, 3], -INF),
    ],
)
def test_what_has_a_distance(reference, value, expected):
    found = Distance.of(np.array(reference, np.float32), np.array(value, np.float32)).sqnr
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("lowest", "passes"), [(30.0, True), (0.0, False)])
def test_probabilities_are_compared_as_finely_as_they_are_read(lowest, passes, monkeypatch):
    """All near 1e-13, no two networks agree on them, and nobody asks; a fault in others counts as before."""
    net = pointwise([1, 16, 4, 4])
    (result,) = net.get_results()
    shifted = opset1.subtract(result.input_value(0), np.float32(lowest))
    shape = opset1.constant(np.array([1, -1], np.int64))
    result.input(0).replace_source_output(opset1.reshape(opset1.sigmoid(shifted), shape, False).output(0))
    net.validate_nodes_and_infer_types()
    break_lowering(monkeypatch, lambda *_: True)
    assert ovlpt.check(net).numbers.ok is passes


def test_inputs_look_like_the_networks_data():
    x = networks.parameter([1, 3, 8, 8])
    net = networks.model(networks.quantized(opset1.divide(opset1.subtract(x, np.float32(10)), np.float32(5)), -1, 3), x)
    (values,) = typical_inputs(net)
    assert values.min() >= 5
    assert values.max() <= 25
    assert 1 < values.std() < 6
    table = networks.const(np.zeros((50, 4)))
    ids = networks.parameter([-1, -1], "i64", name="ids")
    embedded = opset1.gather(table, ids, opset1.constant(np.int64(0)))
    net = networks.model(embedded, ids)
    (values,) = typical_inputs(net, batch=2, length=100)
    assert values.shape == (2, 100)
    assert values.dtype == np.int64
    assert values.min() >= 0
    assert 20 < values.max() < 50
    image = networks.parameter([1, 4, 4, 3], "u8", name="image")
    (values,) = typical_inputs(networks.model(opset1.convert(image, "f32"), image))
    assert values.max() > 128


def test_open_sizes_have_1_among_them():
    assert open_sizes(pointwise([1, 16, 4, 4])) == [(1, 64)]
    assert open_sizes(pointwise([-1, 16, 4, 4])) == [(1, 64), (2, 64)]
    assert open_sizes(pointwise([-1, 16, -1, -1])) == [(1, 64), (1, 1), (2, 64), (2, 1)]


def test_inputs_that_do_not_fit():
    with pytest.raises(InputError, match="takes the shape"):
        ovlpt.check(pointwise([1, 16, 4, 4]), inputs=[np.zeros((1, 3), np.float32)])


@pytest.mark.parametrize("operation", [opset1.multiply, opset1.add, opset1.subtract, opset1.divide])
@pytest.mark.parametrize("rows", [-1, 9])
def test_what_is_quantized_after_a_constant_by_column(operation, rows, core):
    """As SmoothQuant leaves it; the plugin joins both, and took the columns of open rows for the rows."""
    factors = np.linspace(0.5, 1.5, 8, dtype=np.float32).reshape(1, 8)
    x = parameter((rows, 8))
    graph = model(opset1.relu(fake_quantize(operation(x, f32(factors)), -2.0, 2.0 * 127 / 128)))
    data = np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32)
    numpy_of = {
        opset1.multiply: np.multiply,
        opset1.add: np.add,
        opset1.subtract: np.subtract,
        opset1.divide: np.divide,
    }
    step = 2 / 128
    expected = np.maximum(np.clip(np.rint(numpy_of[operation](data, factors) / step) * step, -2, 2 - step), 0)
    found = simulate(graph, core)([data])[0]
    assert np.abs(found - expected).max() <= step * 1.01
    assert (np.abs(found - expected) > 1e-5).mean() < 0.03


_AFTER = {
    "MVN": lambda x: NodeFactory("opset6").create(
        "MVN", [x.output(0), i64(-1).output(0)],
        {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"},
    ),
    "NormalizeL2": lambda x: NodeFactory("opset1").create(
        "NormalizeL2", [x.output(0), i64(1).output(0)], {"eps": 1e-6, "eps_mode": "add"}
    ),
    "Relu": opset1.relu,
    "none": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("sizes", [(2, 5, 8), (-1, 5, 8), (-1, -1, 8)])
@pytest.mark.parametrize("interval", [(8,), (1, 1, 8), (1, 5, 8)])
@pytest.mark.parametrize("source", list(_AFTER))
def test_intervals_along_an_axis_after_the_channels(source, interval, sizes, core):
    """The plugin takes the last axis for the channels where it fuses the FakeQuantize into another layer."""
    random = np.random.default_rng(2)
    high = random.uniform(0.5, 1.5, interval).astype(np.float32)
    low, data = -high / 2, random.standard_normal((2, 5, 8)).astype(np.float32)
    if interval == (1, 5, 8) and sizes[1] == -1:
        sizes = (-1, 5, -1)
    x = parameter(sizes)
    plain = core.compile_model(model(_AFTER[source](x)), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([data])[0]
    y = opset1.fake_quantize(_AFTER[source](x), f32(low), f32(high), f32(low), f32(high), 256)
    found = simulate(model(opset1.relu(y)), core)([data])[0]
    step = (high.astype(np.float64) - low) / 255
    expected = np.maximum(np.round((np.clip(plain, low, high) - low) / step) * step + low, 0)
    difference = np.abs(found - expected) / step
    assert difference.max() <= 1.01
    assert (difference > 1e-3).mean() < 0.03  # ties

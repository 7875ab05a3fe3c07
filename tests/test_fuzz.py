"""Random graphs: no exception, the same interface, the same numbers, the native result."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from ovlpt.plugin_config.this_cpu import takes_signed_activations

from ovlpt.graph.constants import constant_above
from ovlpt.openvino_api import RELEASE, PartialShape, opset1, opset8
from tests.canonicalize.test_recurrent_grid import network as recurrent_network
from tests.device.test_lowering_of_rows import product
from tests.graphs import dequantization, f32, fake_quantize, model, parameter
from tools.fuzz import execution, native, numbers, operations, sheltered, stages, truth
from tools.fuzz.exported import EXPORTED
from tools.fuzz.forms import FORMS
from tools.fuzz.graphs import Form, Graph, NoFloatRun, Step, build, in_float, random_graph, reference
from tools.fuzz.operations import ADDED, KINDS, STATES, create
from tools.fuzz.rarer import RARER, THIN
from tools.fuzz.shard import Judged, Settings, judge
from tools.fuzz.shifts import kernel_grids, with_kernel_weights
from tools.fuzz.shrink import shrink
from tools.parity.driver import NativePassFails, run_native

# A FakeQuantize after an If of open batch in f16: the plugin gives zeros in some runs, with stock and simulation, too.
UNSTEADY = {125}


unsigned_data = pytest.mark.skipif(
    takes_signed_activations(), reason="on a CPU whose plugin reads signed data the library makes another, right graph"
)


def graphs(count: int):
    """The first seeds of random graphs, each a test of its own. In a few graphs nothing is quantized."""
    return pytest.mark.parametrize("seed", sorted(set(range(count)) - UNSTEADY))


def ours(check, graph: Graph) -> list[numbers.Failure]:
    return [failure for failure in check.failures(graph) if failure.way != numbers.STOCK]


def told(monkeypatch, name: str) -> list:
    """The models that a function of `numbers` will have made by then."""
    make, made = getattr(numbers, name), []
    monkeypatch.setattr(numbers, name, lambda model: made.append(make(model)) or made[-1])
    return made


def test_a_seed_means_one_graph():
    assert random_graph(3) == random_graph(3)
    assert len({str(random_graph(seed)) for seed in range(20)}) == 20


def test_the_second_factor_of_two_tensors_is_within_half_of_its_range():
    """Sums of two whole ranges are cut off without VNNI, by stock and ovlpt alike: 14 % off."""
    sample = [random_graph(seed) for seed in range(100)]
    pairs = [(graph, step) for graph in sample for step in graph.steps if step.kind in ("MatMulOfTwo", "Attention")]
    assert {step.kind for _, step in pairs} == {"MatMulOfTwo", "Attention"}
    assert {graph.steps[step.sources[1][0]].kind for graph, step in pairs} == {"FakeQuantizeHalf"}


def is_dynamic(graph: Graph) -> bool:
    try:
        return build(graph).is_dynamic()
    except NoFloatRun:
        return False


def test_graphs_are_quantized_and_varied():
    sample = [random_graph(seed) for seed in range(60)]
    kinds = {step.kind for graph in sample for step in graph.steps}
    assert sum(graph.is_quantized for graph in sample) > 45
    assert len(kinds) > 30
    assert {graph.form.precision for graph in sample} == {"f32", "f16 constants", "f16"}
    assert sum(is_dynamic(graph) for graph in sample[:25]) > 5


def test_the_truth_of_what_the_plugin_cannot_compile():
    """A quantization to 65536 levels that is an output: operation by operation."""
    x = parameter((2, 4, 6))
    wide = fake_quantize(x, -1.0, 1.0, 65536)
    first, second = opset1.split(fake_quantize(x, -1.27, 1.27, 255), opset1.constant(np.array(2)), 2).outputs()
    net = model(wide, opset1.matmul(first, second, True, False))
    data = np.random.default_rng(0).uniform(-2, 2, (2, 4, 6)).astype(np.float32)
    clipped, product = truth._in_steps(net, [data], RuntimeError("?"))
    np.testing.assert_allclose(clipped, np.clip(data, -1, 1), atol=2e-5)
    rounded = np.clip(np.round(data * 100), -127, 127) / 100
    np.testing.assert_allclose(product, rounded[..., :3].swapaxes(1, 2) @ rounded[..., 3:], atol=1e-5)
    for one, other in zip(truth.simulate(net, [data]), (clipped, product), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_truth_of_scales_by_rows():
    """After the activation of a product of rank 3: the plugin fuses them into the product as scales by column."""
    net, inputs, expected = product("scale after an activation", "rows")
    assert np.abs(truth.simulate(net, inputs)[0] - expected).max() <= 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("kind", sorted(STATES))
def test_a_state_is_compared_in_the_second_inference(kind, monkeypatch):
    steps = (
        Step("Parameter", (), 1, (1, 4, 6)),
        Step("FakeQuantize", ((0, 0),), 2, (1, 4, 6)),
        Step(kind, ((1, 0),), 3, (1, 4, 8)),
        Step("Relu", ((2, 0),), 4, (1, 4, 8)),
    )
    graph = Graph(steps, ((3, 0),), 3)
    net = build(graph)
    assert not list(numbers.failures(graph))
    once, twice = (numbers.run(net, graph.inputs(), "NO", times)[0] for times in (1, 2))
    assert twice.size > once.size if kind == "Cache" else not np.array_equal(once, twice)
    run, of_ours = numbers.run, [told(monkeypatch, name) for name in ("transformed", "compiled_as_it_stands")]

    def wrong(model, *given, **more):
        is_wrong = 2 in given and any(model is each for models in of_ours for each in models)
        return [value + is_wrong for value in run(model, *given, **more)]

    monkeypatch.setattr(numbers, "run", wrong)
    assert {failure.way for failure in numbers.failures(graph)} == {numbers.AGAIN}


@pytest.mark.parametrize("precision", ["f16 beside pairs", "bf16 constants"])
@pytest.mark.parametrize("kind", ["FakeQuantize", "QuantizeDequantize"])
def test_more_forms_of_storage(kind, precision):
    steps = (
        Step("Parameter", (), 1, (1, 8, 6, 6)),
        Step(kind, ((0, 0),), 2, (1, 8, 6, 6)),
        Step("Convolution", ((1, 0),), 3, (1, 8, 6, 6)),
    )
    graph = Graph(steps, ((2, 0),), 3, Form(precision))
    found = {value.get_element_type().get_type_name() for node in build(graph).get_ops() for value in node.outputs()}
    assert found >= ({"f16", "f32"} if precision == "f16 beside pairs" else {"bf16", "f32"})
    assert not list(numbers.failures(graph))


@pytest.mark.parametrize(("natively_off", "expected"), [(0.04, True), (0.0, False)])
def test_the_native_numbers_answer_where_stock_is_absent(monkeypatch, natively_off, expected):
    right = np.linspace(-1, 1, 9, dtype=np.float32)
    monkeypatch.setattr(numbers, "_native_numbers", lambda model, graph: [right + np.float32(natively_off)])
    found = [right + np.float32(0.06)]
    assert numbers.is_as_far_natively(None, None, found, [right], lambda: [[right]]) is expected


@pytest.mark.parametrize("stock_off", [0.5, 0.0])
def test_stock_that_throws_on_the_whole_graph_is_asked_about_its_parts(monkeypatch, stock_off):
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    graph = Graph((*steps, Step("Relu", ((1, 0),), 3, shape)), ((1, 0), (2, 0)), 0)
    right, honest = numbers.simulate(numbers.reference(graph), graph.inputs()), numbers.run

    def throws_on_all(model, inputs, lpt, **more):
        if len(model.outputs) == len(right):
            raise RuntimeError("on the whole")
        return [value + np.float32(stock_off) for value in honest(model, inputs, lpt, **more)]

    monkeypatch.setattr(numbers, "run", throws_on_all)
    found = [right[0], right[1] + np.float32(0.5)]
    answer = numbers.is_as_stock_apart(graph, build(graph), found, right, lambda: [right])
    assert answer is bool(stock_off)


def test_graphs_of_more_forms_hold_them_all():
    sample = [random_graph(seed, KINDS | FORMS) for seed in range(150)]
    assert {step.kind for graph in sample for step in graph.steps} >= FORMS.keys()
    assert "all" in {graph.form.dynamic for graph in sample}
    assert not {step.kind for seed in range(60) for step in random_graph(seed).steps} & FORMS.keys()


def test_graphs_of_exported_files_hold_what_front_ends_give():
    sample = [random_graph(seed, KINDS | EXPORTED) for seed in range(250)]
    assert {step.kind for graph in sample for step in graph.steps} >= EXPORTED.keys()
    assert sum(graph.is_quantized for graph in sample) > 200


def test_graphs_of_what_is_rarer_hold_it_all():
    sample = [random_graph(seed, KINDS | RARER) for seed in range(100)]
    assert {step.kind for graph in sample for step in graph.steps} >= RARER.keys()
    assert {step.shape for graph in sample for step in graph.parameters} & {*THIN}
    assert not {step.kind for seed in range(60) for step in random_graph(seed).steps} & RARER.keys()


def test_a_reversed_sequence_is_no_recurrent_layer():
    steps = (
        Step("Parameter", (), 1, (1, 4, 6)),
        Step("FakeQuantize", ((0, 0),), 2, (1, 4, 6)),
        *(Step("InOrder", ((1, 0),), seed, ()) for seed in range(8)),
    )
    graph = Graph(steps, tuple((place, 0) for place in range(2, 10)), 0)
    assert "ReverseSequence" in {node.get_type_name() for node in build(graph).get_ops()}
    assert not list(numbers.failures(graph, "transform"))


def test_open_ranks_are_those_of_the_inputs_when_executed(monkeypatch):
    steps = (
        Step("Parameter", (), 1, (1, 8, 6)),
        Step("FakeQuantize", ((0, 0),), 2, (1, 8, 6)),
        Step("MatMul", ((1, 0),), 3, ()),
    )
    graph = Graph(steps, ((2, 0),), 0, Form(dynamic="rank"))
    assert numbers.transformed(build(graph)).inputs[0].get_partial_shape().rank.is_dynamic
    assert list(numbers.failures(graph)) == []
    monkeypatch.setattr(numbers, "with_ranks", lambda model, inputs: model.clone())
    assert {failure.way for failure in numbers.failures(graph)} <= {numbers.STOCK}  # the plugin runs no open rank


def test_what_reshapes_its_weights_keeps_its_sizes():
    """OpenVINO makes the number of rows of blocked weights the open one of the data."""
    steps = (
        Step("Parameter", (), 1684433975, (1, 4, 5, 7)),
        Step("QuantizeDequantize", ((0, 0),), 756802765, (1, 4, 5, 7)),
        Step("MatMulOfBlockedRows", ((1, 0),), 1001170873, (1, 4, 5, 4)),
    )
    assert not build(Graph(steps, ((2, 0),), 0, Form(dynamic="space"))).is_dynamic()


@pytest.mark.parametrize("seed", range(940000, 940012))
def test_graphs_of_more_forms_keep_the_numbers(seed):
    """In a process of their own: the simulation of some ends it."""
    (judged,) = judge(Settings("numbers", added=False, shrinks=False, forms=True), seed, seed + 1)
    assert not Judged.from_plain(judged).ours


@graphs(200)
def test_each_quantization_keeps_the_numbers(seed):
    assert not ours(stages, random_graph(seed))


@graphs(8)
def test_whole_graphs_keep_the_numbers(seed):
    assert not ours(numbers, random_graph(seed))


def against_native(test):
    """A test that runs the native pass."""
    test = pytest.mark.skipif(RELEASE < (2025, 0), reason="the native pass of 2024.6 is an older one")(test)
    return pytest.mark.skipif(shutil.which("g++") is None, reason="the native pass is driven by a C++ program")(test)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the native pass is driven by a C++ program")
def test_the_native_library_is_asked_on_every_release():
    assert not numbers.fails_natively(model(opset1.relu(fake_quantize(parameter((1, 3, 8, 8)), 0.0, 2.55))))


@against_native
def test_the_native_result_of_half_floats_in_reals():
    """Bounds of stored integers beside a zero point: the native pass leaves operations of f16 and of f32 behind."""
    steps = (Step("Parameter", (), 1, (1, 8, 1, 4)), Step("QuantizeClip", ((0, 0),), 1817555953, (1, 8, 1, 4)))
    assert numbers.native_result(build(Graph(steps, ((1, 0),), 0, Form("f16 beside pairs")))) is not None


def test_a_tie_in_a_body_is_no_failure():
    """Of a step that is rounded to f16, zero lies beside the levels: what follows of them is on the other side of a tie."""
    steps = (
        Step("Parameter", (), 2030338583, (1, 4, 5, 7)),
        Step("Mask", ((0, 0),), 1991347673, (1, 4, 5, 7)),
        Step("Hide", ((1, 0),), 919727867, (1, 4, 5, 7)),
        Step("AddConstant", ((2, 0),), 1604924356, (1, 4, 5, 7)),
        Step("GridSample", ((3, 0),), 716468295, (1, 4, 3, 4)),
        Step("Loop", ((4, 0),), 544658518, (1, 4, 3, 4)),
        Step("FakeQuantize", ((5, 0),), 866735239, (1, 4, 3, 4)),
    )
    assert not [*numbers.failures(Graph(steps, ((2, 0), (6, 0)), 0, Form("f16", "all")), numbers.ONE_PIXEL)]


def test_the_places_of_equal_values_are_no_failure():
    """Of x - x, all of whose values are 0, a TopK of open rows gives 1, 2, 3, 4, 5, 0, and one of known rows 0 to 5."""
    steps = (
        Step("Parameter", (), 1407330395, (2, 12)),
        Step("Parameter", (), 84299290, (2, 12)),
        Step("Subtract", ((0, 0), (0, 0)), 416974431, (2, 12)),
        Step("FakeQuantize", ((1, 0),), 1586074482, (2, 12)),
        Step("PartsAlike", ((2, 0),), 1675768220, (2, 6)),
    )
    graph = Graph(steps, ((3, 0), (4, 0)), 1, Form("f16", "both"))
    assert not [*numbers.failures(graph, numbers.ONE_PIXEL)]


@against_native
@pytest.mark.parametrize(("asked", "expected"), [(True, numbers.STOCK), (False, numbers.NATIVE_ONLY)])
def test_a_scale_of_f8_is_the_native_librarys_fault(monkeypatch, asked, expected):
    """Its pass leaves the scale before a Relu of open rank, and drops the Convert between f8 and the scale. The plugin, which
    compiles no open rank, has the scale after the Relu.
    """
    if not asked:
        monkeypatch.setattr(numbers, "computes_in_float8_natively", lambda model: False)
    shape = (1, 1, 8, 8)
    steps = (
        Step("Parameter", (), 2005144758, shape),
        Step("ThroughFloat8", ((0, 0),), 1978580699, shape),
        Step("Relu", ((1, 0),), 1787641723, shape),
        Step("FakeQuantize", ((0, 0),), 671607804, shape),
    )
    graph = Graph(steps, ((3, 0), (2, 0)), 0, Form(dynamic="rank"))
    assert {each.way for each in numbers.failures(graph, numbers.NATIVE_ONLY)} == {expected}


@against_native
@graphs(60)
def test_the_native_result(seed):
    assert not ours(native, random_graph(seed, native.KINDS))


@against_native
@graphs(10)
def test_the_native_result_beside_operations_without_a_native_rule(seed):
    assert not ours(native, random_graph(seed, native.KINDS | ADDED))


@cache
def a_graph(kind: str) -> Graph:
    """A quantized one with an operation of this kind, and operations on both sides of it."""
    for graph in map(random_graph, range(400)):
        at = {index for index, step in enumerate(graph.steps) if step.kind == kind and not graph.form.dynamic}
        above = {source for index in at for source, _ in graph.steps[index].sources}
        read = {source for step in graph.steps for source, _ in step.sources}
        if at & read and any(graph.steps[index].quantizes for index in above) and not list(native.failures(graph)):
            return graph
    raise LookupError(kind)


def native_without_relu(model, *settings):
    if any(node.get_type_name() == "Relu" for node in model.get_ops()):
        raise NativePassFails("the native pass fails: 77 times")
    return run_native(model, *settings)


def unchanged(model, settings):
    return model.clone()


def failing(model, settings):
    raise IndexError("7")


@against_native
@pytest.mark.parametrize("broken", [unchanged, failing])
def test_a_fault_of_the_native_pass_hides_nothing(broken, monkeypatch):
    """The parts of the graph that have no share in it are compared."""
    graph = a_graph("Relu")
    monkeypatch.setattr(native, "run_native", native_without_relu)
    assert [(each.way, each.cause) for each in native.failures(graph)] == [
        (numbers.STOCK, "the native pass fails: # times")
    ]
    monkeypatch.setattr(native, "ours", broken)
    assert {"native", numbers.STOCK} == {failure.way for failure in native.failures(graph)}


@against_native
def test_a_float_graph_that_cannot_be_run_hides_nothing(monkeypatch):
    graph = a_graph("Relu")

    def build_without_relu(graph: Graph):
        if any(step.kind == "Relu" for step in graph.steps):
            raise NoFloatRun("[ThisTransformation] END: node: Relu")
        return build(graph)

    monkeypatch.setattr(native, "build", build_without_relu)
    assert [(each.way, each.cause) for each in native.failures(graph)] == [
        (numbers.STOCK, "the plugin cannot run the float graph: ThisTransformation")
    ]
    monkeypatch.setattr(native, "ours", unchanged)
    assert {"native", numbers.STOCK} == {failure.way for failure in native.failures(graph)}


@pytest.mark.parametrize("form", ["f16 constants", "bf16 constants"])
def test_constants_of_16_bits_are_real_numbers_before_the_native_pass(form):
    stored = Form(form).apply(model(opset1.multiply(parameter((1, 4)), f32(np.linspace(0.5, 1, 4)))))
    assert "Convert" in {node.get_type_name() for node in stored.get_ops()}
    assert "Convert" not in {node.get_type_name() for node in native.prepared(stored).get_ops()}


def test_whether_the_plugin_alone_ends_the_process(monkeypatch):
    """Then the float graph is all that is run."""
    monkeypatch.setattr(native, "run_native", failing)
    monkeypatch.setattr(native, "ours", failing)
    assert list(native.failures(random_graph(3), numbers.STOCK)) == []


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        ("FakeQuantize below: levels is 256, not 16", True),
        ("FakeQuantize below_2: levels is 256, not 16", True),  # the part of it before the second input of a Concat
        ("FakeQuantize above_2: levels is 16, not 256", False),
        ("FakeQuantize below: levels is 77, not 16", False),  # ours has not kept them
        ("FakeQuantize below: levels is 256, not 77", False),  # none above has them
        ("FakeQuantize above: levels is 16, not 256", False),
        ("FakeQuantize other: levels is 256, not 16", False),
        ("FakeQuantize below: it gives u8, not f32", False),
    ],
)
def test_only_levels_from_above_are_a_fault_of_the_native_pass(difference, expected):
    above = fake_quantize(parameter((1, 4)), -1.0, 1.0, 16, "above")
    graph = model(opset1.relu(fake_quantize(opset1.sigmoid(above), 0.0, 1.0, 256, "below")))
    assert native.is_level_from_above(graph, difference) is expected


def test_the_stock_plugin_is_at_fault_on_few_graphs():
    found = [failure.way for seed in range(100, 108) for failure in stages.failures(random_graph(seed))]
    assert found.count(numbers.STOCK) < 3


def test_a_stage_that_is_off_is_found(monkeypatch):
    graph = next(graph for graph in map(random_graph, range(50)) if stages.staged(graph).is_quantized)
    moves = itertools.chain(
        [lambda value: 9 + 2 * value], itertools.repeat(lambda value: value)
    )  # ovlpt's, the plugin's
    monkeypatch.setattr(stages, "run", lambda *given: list(map(next(moves), numbers.run(*given))))
    assert [(failure.way, failure.cause) for failure in stages.failures(graph)] == [(stages.WAY, "numbers")]


def test_what_is_wrong_at_one_pixel_only_is_found(monkeypatch):
    graph = Graph(
        (
            Step("Parameter", (), 1, (1, 8, 6, 6)),
            Step("FakeQuantize", ((0, 0),), 2, (1, 8, 6, 6)),
            Step("Relu", ((1, 0),), 3, (1, 8, 6, 6)),
        ),
        ((2, 0),),
        0,
        Form("f32", "space"),
    )
    assert not ours(numbers, graph)
    honest, lowered = numbers.run, told(monkeypatch, "compiled_as_it_stands")

    def wrong(model, inputs, lpt, **more):
        found = honest(model, inputs, lpt, **more)
        return [9 + value for value in found] if any(model is each for each in lowered) else found

    monkeypatch.setattr(numbers, "run", wrong)
    assert [(failure.way, failure.cause) for failure in numbers.failures(graph)] == [(numbers.ONE_PIXEL, "numbers")]


@pytest.mark.parametrize("way", ["transform", numbers.NATIVE_ONLY])
@pytest.mark.parametrize("excuse", ["none", "with LPT", "without LPT"])
def test_only_what_the_plugin_gets_wrong_without_lpt_is_its_own(monkeypatch, excuse, way):
    """Or, as natively, with its own."""
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    graph = Graph((*steps, Step("Relu", ((1, 0),), 3, shape)), ((2, 0),), 0)
    honest, (change, told), changed = numbers.run, numbers.WAYS[way], []
    monkeypatch.setitem(numbers.WAYS, way, (lambda model: changed.append(change(model)) or changed[-1], told))

    def wrong(model, inputs, lpt, *times, **more):
        is_wrong = any(model is each for each in changed) or lpt == {"with LPT": "YES", "without LPT": "NO"}.get(excuse)
        return [9 * is_wrong + each for each in honest(model, inputs, lpt, *times, **more)]

    monkeypatch.setattr(numbers, "run", wrong)
    (failure,) = numbers.failures(graph, way)
    excused = {"none": False, "with LPT": way == numbers.NATIVE_ONLY, "without LPT": way != numbers.NATIVE_ONLY}[excuse]
    assert failure.way == (numbers.STOCK if excused else way)


def test_what_reads_past_its_data_at_one_pixel_is_not_run():
    """The kernels do not look; the process may end."""

    def fits(node) -> bool:
        return numbers.reads_within(node)

    data = parameter((1, 4, 1, 2))
    index = opset1.constant(np.array([1]))
    assert fits(opset8.gather(data, index, opset1.constant(3)))
    assert not fits(opset8.gather(data, index, opset1.constant(2)))
    none, one, value = (opset1.constant(np.array(each)) for each in ([0, 0, 0, 0], [0, 0, 0, 1], np.float32(0)))
    assert fits(opset1.pad(data, none, one, "reflect", value))
    narrow = parameter((1, 4, 2, 1))
    assert fits(opset1.pad(narrow, none, one, "symmetric", value))
    first, second, stride = (opset1.constant(np.array(each)) for each in ([0, 0, 0], [0, 0, 1], [1, 1, 1]))
    assert fits(fake_quantize(data, np.zeros((4, 1, 1)), np.ones((1, 4, 1, 2))))
    assert not fits(fake_quantize(data, np.zeros((1, 1, 6, 1)), np.ones((1, 1, 6, 1))))
    how = {"axis": 3, "mode": "max", "sort": "value"}
    assert fits(create("opset11", "TopK", [data, opset1.constant(np.array(2))], **how))
    assert not fits(create("opset11", "TopK", [data, opset1.constant(np.array(3))], **how))
    masks = {"begin_mask": [1, 1, 0], "end_mask": [1, 1, 0], "shrink_axis_mask": [0, 0, 1]}
    assert fits(opset1.strided_slice(narrow, second, stride, stride, **masks))
    assert fits(opset1.strided_slice(data, first, stride, stride, **masks))
    assert not fits(opset1.strided_slice(data, second, stride, stride, **masks))
    assert not fits(opset1.relu(parameter((1, 4, 0, 1))))
    assert fits(opset1.prelu(data, f32(np.zeros(4))))
    assert fits(opset1.prelu(data, f32(np.zeros(1))))
    assert not fits(opset1.prelu(data, f32(np.zeros(6))))
    state, steps = f32(np.zeros((1, 1, 4))), opset1.constant(np.array([4]))
    for columns in (2, 3):
        weights = [f32(np.zeros(shape)) for shape in ((1, 16, columns), (1, 16, 4), (1, 16))]
        layer = [parameter((1, 4, 2)), state, state, steps, *weights]
        assert fits(create("opset5", "LSTMSequence", layer, hidden_size=4, direction="forward")) == (columns == 2)


@against_native
def test_a_shift_in_f32_amid_f16_is_the_native_librarys():
    """Of what was an Add of a constant, before OpenVINO 2026.0."""
    sizes = (2, 6, 4, 4)
    steps = (Step("Parameter", (), 1, sizes), Step("Hide", ((0, 0),), 2, sizes), Step("Transpose", ((1, 0),), 3, sizes))
    assert not ours(native, Graph(steps, ((2, 0),), 1210004, Form("f16")))


@against_native
def test_scales_are_rounded_before_their_product_in_f16():
    steps = (
        Step("Parameter", (), 1757617917, (2,)),
        Step("FakeQuantize", ((0, 0),), 630545458, (2,)),
        Step("Multiply", ((1, 0), (1, 0)), 3, (2,)),
    )
    assert not ours(native, Graph(steps, ((2, 0),), 338280, Form("f16")))


def test_what_quantizations_to_16_bits_clip_is_clipped_in_truth():
    """The plugin drops them in the simulation, too, where it can."""
    steps = [("Parameter", 777605967), ("FakeQuantize", 1467412406), ("Pointwise", 2131216597),
             ("AddConstant", 2089590443), ("FakeQuantize", 1960660357)]  # fmt: skip
    steps = [Step(kind, ((at - 1, 0),) * (at > 0), seed, (1, 16, 1, 1)) for at, (kind, seed) in enumerate(steps)]
    graph = Graph(tuple(steps), ((4, 0),), 1900081, Form("f16"))
    (right,) = numbers.simulate(reference(graph), graph.inputs())[:1]
    last = next(node for node in build(graph).get_ops() if node.get_friendly_name() == "FakeQuantize4")
    low, high = (1.001 * constant_above(last.input_value(port)) for port in (1, 2))
    assert ((low <= right) & (right <= high)).all()
    assert {failure.way for failure in numbers.failures(graph)} <= {numbers.STOCK}


def a_recurrent_graph() -> Graph:
    steps = [
        ("Parameter", (), 860176395),
        ("Relu", (0,), 1),
        ("FakeQuantize", (1,), 679744880),
        ("LSTM", (2,), 688600661),
    ]
    return Graph(tuple(Step(kind, tuple((each, 0) for each in sources), seed, (2, 5, 8)) for kind, sources, seed in steps),
                 ((3, 0),), 921061)  # fmt: skip


def test_recurrent_layers_round_their_weights():
    """To the one scale of their kernels: more than the roundings of states explain."""
    graph = a_recurrent_graph()
    assert kernel_grids(build(graph))
    assert not list(numbers.failures(graph))


def test_recurrent_layers_of_what_is_pooled_round_their_weights():
    """The greatest of numbers on a grid lie on it, too, and so does what is copied."""
    steps = [("Parameter", (1, 6, 12), 1286642895), ("Relu", (1, 6, 12), 677130033),
             ("FakeQuantize", (1, 6, 12), 760866212), ("Pad", (1, 8, 12), 1539390853),
             ("MaxPool", (1, 8, 10), 1889895763), ("GRU", (1, 1, 8, 4), 508721270)]  # fmt: skip
    steps = [Step(kind, ((index - 1, 0),) * (index > 0), *more[::-1]) for index, (kind, *more) in enumerate(steps)]
    graph = Graph(tuple(steps), ((5, 1),), 1810082)
    assert kernel_grids(build(graph))
    assert not list(numbers.failures(graph))


@against_native
@pytest.mark.parametrize("spoilt", [False, True])
def test_sizes_that_the_native_library_forgets_are_its_own(spoilt, monkeypatch):
    """It makes a constant by channel of one by column that a layer is subtracted from."""
    steps = (
        Step("Parameter", (), 2084153027, (1, 3, 8, 8)),
        Step("QuantizeDequantize", ((0, 0),), 40375280, (1, 3, 8, 8)),
        Step("Convolution", ((1, 0),), 1100487878, (1, 8, 7, 8)),
        Step("ConstantMinus", ((2, 0),), 969768490, (1, 8, 7, 8)),
    )
    if spoilt:
        monkeypatch.setattr(numbers, "native_result", lambda model: model)
    found = list(numbers.failures(Graph(steps, ((3, 0),), 1920116, Form(dynamic="both"))))
    assert [(each.way == numbers.STOCK, each.cause) for each in found] == [(not spoilt, "interface")]


@against_native
@pytest.mark.parametrize("high", [0.5, 2.55])
def test_a_point_that_the_native_pass_rounds_is_its_own_fault(high):
    graph = model(opset1.relu(fake_quantize(parameter((-1, 3, 8, 8)), 0.5, high)))
    settings = native.settings_of(1)
    assert settings.params.update_precisions
    if high == 0.5:
        with pytest.raises(NativePassFails, match="points"):
            native._native(graph, settings)
    else:
        native._native(graph, settings)


@against_native
@pytest.mark.parametrize("count", [1, 2])
def test_what_the_native_pass_quantizes_twice_is_its_own_fault(count):
    """Beside it one dequantization of what a Concat joins is moved before it in both."""
    joined = opset1.concat([parameter((1, 3, 8, 8)), parameter((1, 3, 8, 8), "x2")], 1)
    integers = opset1.convert(opset1.fake_quantize(joined, *map(f32, (-1, 1.55, 0, 255)), 256), "u8")
    results = (opset1.exp(dequantization(integers, scale, 100.0)) for scale in (0.01, 0.02)[:count])
    with pytest.raises(NativePassFails, match="dequantizations") if count > 1 else nullcontext():
        native._native(model(*results), native.settings_of(1))


@against_native
def test_open_sizes_whose_bounds_a_layer_narrows_keep_a_scale_natively():
    """A FakeQuantize that takes a zero point has the bounds of a GroupConvolution above it, its scale those from before."""
    shape = (1, 3, 8, 8)
    steps = (
        Step("Parameter", (), 1752553529, shape),
        Step("ConstantMinus", ((0, 0),), 1786577211, shape),
        Step("FakeQuantize", ((1, 0),), 2035993698, shape),
    )
    graph = Graph(steps, ((2, 0),), 1940577, Form(dynamic="both"))
    assert not native.settings_of(graph.seed).params.update_precisions
    assert list(native.failures(graph)) == []


@against_native
@pytest.mark.parametrize("spoilt", [False, True])
def test_a_scale_that_a_reduction_changes_for_others_is_the_native_librarys_fault(spoilt, monkeypatch):
    """It makes [1, 4] of the constant that two scales of [1, 4, 1, 1, 1] are, and the other one has it, too."""
    shape = (1, 4, 3, 4, 4)
    steps = (
        Step("Parameter", (), 1954848428, shape),
        Step("FakeQuantize", ((0, 0),), 1595949263, shape),
        Step("GroupConvolution", ((1, 0),), 2056419268, (1, 4, 3, 4, 3)),
        Step("Add", ((1, 0), (1, 0)), 238078544, shape),
        Step("Reduce", ((3, 0),), 2123931731, (1, 4)),
    )
    if spoilt:
        monkeypatch.setattr(native, "ours", unchanged)
    found = list(native.failures(Graph(steps, ((2, 0), (4, 0)), 1840880)))
    assert "gives one constant to scales of several ranks" in found[0].cause
    assert {each.way for each in found} == ({numbers.STOCK, "native"} if spoilt else {numbers.STOCK})


@against_native
def test_a_rounding_to_f8_that_one_reader_loses_is_the_native_librarys_fault():
    shape = (1, 4, 5, 7)
    steps = (
        Step("Parameter", (), 429293548, shape),
        Step("ThroughFloat8", ((0, 0),), 1108294252, shape),
        Step("FakeQuantize", ((1, 0),), 1483450070, shape),
    )
    found = list(native.failures(Graph(steps, ((1, 0), (2, 0)), 7400833)))
    assert [each.cause for each in found] == ["the native pass drops a rounding to f#"]


@against_native
def test_shapes_of_open_ranks_are_compared():
    shape = (1, 3, 4, 8)
    steps = (
        Step("Parameter", (), 1, shape),
        Step("FakeQuantize", ((0, 0),), 2, shape),
        Step("MaxPool", ((1, 0),), 3, shape),
    )
    assert list(native.failures(Graph(steps, ((1, 0), (2, 0)), 7400829, Form(dynamic="rank")))) == []


@against_native
def test_clipped_weights_are_stored_before_either_pass():
    steps = (
        Step("Parameter", (), 1260381336, (1, 10)),
        Step("QuantizeDequantize", ((0, 0),), 1485197059, (1, 10)),
        Step("MatMulOfTransposed", ((1, 0),), 1793682014, (1, 12)),
    )
    assert list(native.failures(Graph(steps, ((2, 0),), 7400301))) == []


@against_native
def test_known_sizes_beside_open_ones_are_constants():
    steps = (Step("Parameter", (), 53849038, (2, 10, 8)), Step("RNN", ((0, 0),), 909571163, (2, 1, 10, 4)))
    assert list(native.failures(Graph(steps, ((1, 0),), 7200214, Form(dynamic="space")))) == []


@against_native
@pytest.mark.parametrize("spoilt", [False, True])
def test_what_kernels_make_of_native_recurrent_layers_is_the_native_librarys(spoilt):
    """Where stock throws; and other numbers are not."""
    net = recurrent_network("lstm", (0.0, 0.7), quantized=True)
    inputs = [np.random.default_rng(0).uniform(0, 0.7, net.inputs[0].get_shape()).astype(np.float32)]
    changed = numbers.as_natively(net)
    found = numbers.run(changed, inputs, numbers.as_told(changed))
    right = numbers.simulate(recurrent_network("lstm", (0.0, 0.7), form="real", which=""), inputs)
    if spoilt:
        found = [value + 0.1 for value in found]
    assert numbers.is_as_native_layers(net, inputs, found, right, lambda: [right]) != spoilt


@against_native
def test_native_recurrent_layers_are_asked_as_they_are_lowered():
    """The kernel has one grid for data and states, of which real numbers that throw in stock show nothing."""
    steps = (
        Step("Parameter", (), 459611114, (2, 5, 8)),
        Step("FakeQuantize", ((0, 0),), 317206441, (2, 5, 8)),
        Step("LSTM", ((1, 0),), 172006818, (2, 1, 5, 4)),
    )
    found = list(numbers.failures(Graph(steps, ((2, 1),), 0), numbers.NATIVE_ONLY))
    assert {failure.way for failure in found} == {numbers.STOCK}


@against_native
@pytest.mark.parametrize("spoilt", [False, True])
def test_native_recurrent_layers_may_differ_by_a_step_of_their_grid(spoilt):
    """Which is more than a level of a state that their kernels clip; what is farther is a finding."""
    steps = [("Parameter", (2, 5, 4), 2131427596), ("QuantizeDequantize", (2, 5, 4), 1067022820),
             ("LSTM", (2, 1, 5, 8), 944309316), ("QuantizeDequantize", (2, 1, 5, 8), 896730632)]  # fmt: skip
    steps = [Step(kind, ((index - 1, 0),) * (index > 0), *more[::-1]) for index, (kind, *more) in enumerate(steps)]
    graph = Graph(tuple(steps), ((3, 0),), 986548)
    net, inputs, right = build(graph), graph.inputs(), numbers.simulate(reference(graph), graph.inputs())[:1]
    near = numbers.nearby(reference(graph), inputs, 1, kernel_grids(net))
    changed = numbers.as_natively(net)
    found = numbers.run(changed, inputs, numbers.as_told(changed))
    if spoilt:
        found = [value + 0.1 * np.abs(right[0]).max() for value in found]
    assert numbers.is_as_native_layers(net, inputs, found, right, lambda: near) != spoilt


@pytest.mark.parametrize("coarser", [1, 100])
def test_weights_that_lose_much_are_no_excuse(coarser):
    graph = a_recurrent_graph()
    exact, grids = reference(graph), kernel_grids(build(graph))
    (name,) = grids
    weights = [
        next(node for node in each.get_ops() if node.get_friendly_name() == name).input_value(4).get_node().data
        for each in (exact, with_kernel_weights(exact, {name: tuple(coarser * step for step in grids[name])}))
    ]
    assert np.array_equal(*weights) == (coarser > 1)


class Ending:
    """A pool whose process ends in one of ``ways`` alone, and where all are run one after the other."""

    def __init__(self, ways):
        self.ways = ways

    def submit(self, function, *arguments):
        ends = function is sheltered.checked or arguments[-1] in self.ways or function in self.ways
        return SimpleNamespace(result=failing_pool if ends else list)

    def shutdown(self):
        pass


def failing_pool():
    raise BrokenProcessPool


@pytest.mark.parametrize(
    ("ways", "expected"),
    [
        ({"transform"}, "transform"),
        ({numbers.NO_LPT, "transform"}, numbers.STOCK),
        ({numbers.STOCK, "transform"}, "transform"),
        ({numbers.STOCK, numbers.NATIVE_ONLY}, numbers.STOCK),
        ({numbers.NATIVE_ONLY}, numbers.NATIVE_ONLY),
        ({numbers.NATIVE_LIBRARY, numbers.NATIVE_ONLY}, numbers.STOCK),
        ({numbers.NATIVE_LIBRARY, "transform"}, "transform"),
        ({numbers.ONE_PIXEL}, numbers.ONE_PIXEL),
        ({numbers.measure, "transform"}, numbers.STOCK),
        ((), "numbers"),
    ],
)
def test_who_ends_the_process_alone(monkeypatch, ways, expected):
    """What wrote elsewhere is seldom what falls over it: the plugin before, for instance."""
    monkeypatch.setattr(sheltered.Sheltered, "_new_pool", staticmethod(lambda: Ending(ways)))
    (found,) = sheltered.Sheltered("numbers")(random_graph(3))
    assert found.way == expected
    assert (found.hides == numbers.EVERY) == (numbers.measure in ways)


def test_the_simulation_of_a_verdict_ends_the_process(monkeypatch):
    """Also that of inputs next to the graph's, for which it is changed: nothing of ovlpt is to run then."""
    done = []
    monkeypatch.setattr(numbers, "nearby", lambda *_: done.append("nearby"))
    monkeypatch.setattr(numbers, "run", lambda *_, **__: pytest.fail("it is not the simulation"))
    numbers.measure(a_graph("Relu"))
    assert "nearby" in done


@pytest.mark.parametrize("spoilt", [False, True])
def test_what_a_quantization_to_16_bits_would_clip_is_the_plugins(spoilt, monkeypatch):
    """It drops that before its LPT; where it throws, nothing else says so."""
    monkeypatch.setattr(numbers.plugin_config, "dropped_levels", lambda _: frozenset({65536}))
    x = parameter((1, 4))
    net = model(opset1.multiply(fake_quantize(opset1.multiply(x, f32(2.0)), -1.0, 1.0, 65536), f32(3.0)))
    monkeypatch.setattr(numbers, "build", lambda _: net.clone())
    data = np.array([[-0.9, -0.2, 0.4, 0.8]], np.float32)
    graph = SimpleNamespace(form=Form(), inputs=lambda: [data])
    monkeypatch.setattr(numbers, "replace", lambda given, **_: given)
    found = 6 * data + (0.3 if spoilt else 0)
    right = np.clip(2 * data, -1, 1) * 3
    assert numbers.is_without_16_bits(graph, [found], [right]) != spoilt


def test_a_graph_that_has_no_truth_without_16_bits_excuses_nothing(monkeypatch):
    """The error ended the whole run."""
    graph = a_graph("Relu")

    def no_truth(*_):
        raise numbers.NoTruth("no kernel")

    monkeypatch.setattr(numbers, "simulate", no_truth)
    assert not numbers.is_without_16_bits(graph, [np.ones(1)], [np.zeros(1)])


@pytest.mark.parametrize("kept", [5, 10], ids=["axis dropped", "axis kept"])
def test_a_reduction_that_the_plugin_computes_wrongly_is_no_excuse(kept):
    """It takes the scales after it for those of another axis: the simulation of a graph in which nothing is to be dropped
    had the same wrong numbers, so that they counted as the plugin's.
    """
    sizes = (2, 6, 4)
    steps = (
        Step("Parameter", (), 1, sizes),
        Step("FakeQuantize", ((0, 0),), 2, sizes),
        Step("Reduce", ((1, 0),), kept, sizes[:2]),
        Step("MultiplyConstant", ((2, 0),), 0, sizes[:2]),
    )
    graph = Graph(steps, ((3, 0),), 0)
    right = numbers.simulate(reference(graph), graph.inputs())[:1]
    wrong = numbers.run(build(graph), graph.inputs(), "NO")
    assert numbers.is_wrong(wrong[0], right[0])
    assert not numbers.is_without_16_bits(graph, wrong, right)


def test_a_native_result_that_is_no_model_is_asked_of_the_output_alone(monkeypatch):
    """As where it subtracts from booleans: the MVN beside that is compared nevertheless."""
    graph = a_graph("Relu")
    right = [np.zeros((2, 12), np.float32) for _ in graph.results]
    wrong = [value + 1 for value in right]
    calls = []

    def native_numbers(_, part):
        calls.append(part)
        if len(calls) == 1:
            raise RuntimeError("Arguments do not have the same element type")
        return wrong[:1]

    monkeypatch.setattr(numbers, "_native_numbers", native_numbers)
    assert numbers.is_wrong_natively(graph, build(graph), wrong, right, lambda: [right])
    assert [len(part.results) for part in calls] == [len(graph.results), 1]


@against_native
def test_a_graph_is_run_in_one_way_alone(monkeypatch):
    done = []
    monkeypatch.setattr(numbers, "run", lambda model, inputs, lpt, **more: done.append((inputs[0].shape[2:], lpt)))
    graph = Graph(a_graph("Relu").steps, a_graph("Relu").results, 0, Form("f32", "space"))
    whole = graph.inputs()[0].shape[2:]
    for way, lpt in ((numbers.STOCK, "YES"), (numbers.NO_LPT, "NO")):
        numbers.execute(graph, way)
        assert set(done) == {(whole, lpt), ((1,) * len(whole), lpt)}
        done.clear()
    numbers.execute(graph, "compile")
    assert set(done) == {(whole, "NO")}


@against_native
def test_the_native_librarys_own_result_is_run(monkeypatch):
    """Of open ranks, which no stock plugin compiles, it may end the process, as `native_only` does."""
    done = []
    monkeypatch.setattr(numbers, "run", lambda model, inputs, lpt, **more: done.append((model, lpt)))
    graph = Graph(a_graph("Relu").steps, a_graph("Relu").results, 0, Form("f32", "rank"))
    numbers.execute(graph, numbers.NATIVE_LIBRARY)
    (made, lpt), *_ = done
    assert lpt == "NO"
    assert made.input(0).get_partial_shape().rank.is_dynamic


def no_native_result(model):
    raise NativePassFails("it throws")


@pytest.mark.parametrize("made", [no_native_result, lambda model: None], ids=["throws", "cannot be given it"])
def test_a_graph_without_a_native_result_ends_no_process(monkeypatch, made):
    monkeypatch.setattr(numbers, "run", lambda *_, **__: pytest.fail("there is nothing to run"))
    monkeypatch.setattr(numbers, "_NATIVE", {numbers.NATIVE_LIBRARY: (made, numbers.as_told)})
    numbers.execute(a_graph("Relu"), numbers.NATIVE_LIBRARY)


def test_stock_that_throws_is_run_with_what_it_takes(monkeypatch):
    """A product of f8 ends the process in stock, which throws on a convolution beside it."""
    shape = (1, 8, 6, 6)
    kinds = (("FakeQuantize", 0), ("Relu", 1), ("Tanh", 1), ("Sigmoid", 1))
    steps = (Step(kind, ((source, 0),), 1, shape) for kind, source in kinds)
    graph = Graph((Step("Parameter", (), 1, shape), *steps), ((2, 0), (3, 0), (4, 0)), 0)
    done = []

    def run(model, *_, **__):
        kinds = {node.get_type_name() for node in model.get_ops()}
        done.append(kinds & {"Relu", "Tanh", "Sigmoid"})
        if "Tanh" in kinds:
            raise RuntimeError("not taken")

    monkeypatch.setattr(numbers, "run", run)
    numbers.execute(graph, numbers.STOCK)
    assert done[-1] == {"Relu", "Sigmoid"}


def test_what_the_stock_plugin_makes_anew_each_time_is_its_own(monkeypatch):
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    graph = Graph((*steps, Step("Relu", ((1, 0),), 3, shape)), ((2, 0),), 0)
    honest, count = numbers.run, itertools.count()

    def unsteady(model, inputs, lpt, **more):
        found = honest(model, inputs, lpt, **more)
        return [9 + value for value in found] if next(count) % 8 == 1 else found

    monkeypatch.setattr(numbers, "run", unsteady)
    monkeypatch.setattr(numbers, "computes_in", lambda precision: False)  # how often it is run depends on the CPU
    found = list(numbers.failures(graph))
    assert {failure.way for failure in found} == {numbers.STOCK}


@pytest.mark.parametrize(("unsteady", "expected"), [(True, numbers.STOCK), (False, "transform")])
def test_memory_that_the_plugin_reads_without_lpt_is_its_own(monkeypatch, unsteady, expected):
    """As it may after an If in f16, where its own LPT happens to be right; what is steady and right without any is not its own."""
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    graph = Graph((*steps, Step("Relu", ((1, 0),), 3, shape)), ((2, 0),), 0)
    honest, count = numbers.run, itertools.count()

    def spoilt(model, inputs, lpt, **more):
        found = honest(model, inputs, "YES", **more)
        is_right = lpt == "YES" or (lpt == "NO" and not unsteady)
        return found if is_right else [9 + unsteady * next(count) + value for value in found]

    monkeypatch.setattr(numbers, "run", spoilt)
    monkeypatch.setattr(numbers, "WAYS", {"transform": (numbers.transformed, lambda model: "ours")})
    assert {failure.way for failure in numbers.failures(graph, "transform")} == {expected}


@pytest.mark.parametrize("theirs", [0, 1])
def test_an_output_that_stock_has_wrong_hides_no_other(theirs):
    """In either order."""
    right = [np.arange(12, dtype=np.float32) for _ in range(2)]
    wrong = [values + 9 for values in right]
    stock = [values + 9 * (port == theirs) for port, values in enumerate(right)]
    failure = numbers.of_numbers("transform", wrong, right, stock, lambda: [right])
    assert (failure.way, failure.details[:2]) == ("transform", f"y{1 - theirs}")
    assert numbers.of_numbers("transform", wrong, right, wrong, lambda: [right]).way == numbers.STOCK


@pytest.mark.parametrize(
    ("off", "expected"),
    [((0, 1), "transform"), ((1, 1), numbers.STOCK), ((9, 1), numbers.STOCK), ((9, 0), "transform")],
    ids=["one steady", "none steady", "one as wrong", "steady beside one as wrong"],
)
def test_an_output_that_is_made_anew_each_time_hides_no_steady_one(monkeypatch, off, expected):
    """A minimum of an open rank was zero beside sums that the plugin reads from other memory. ``off``: what the plugin adds to
    each output without LPT, in every run once more where it is 1.
    """
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    steps += tuple(Step(kind, ((1, 0),), 3, shape) for kind in ("Relu", "Tanh"))
    graph = Graph(steps, ((2, 0), (3, 0)), 0)
    honest, count = numbers.run, itertools.count()

    def spoilt(model, inputs, lpt, **more):
        found, runs = honest(model, inputs, "YES", **more), next(count)
        if lpt == "YES":
            return found
        added = [9, 9] if lpt == "ours" else [each * (1 if each == 9 else 9 * (runs % 2)) for each in off]
        return [value + more for value, more in zip(found, added, strict=True)]

    monkeypatch.setattr(numbers, "run", spoilt)
    monkeypatch.setattr(numbers, "WAYS", {"transform": (numbers.transformed, lambda model: "ours")})
    assert {failure.way for failure in numbers.failures(graph, "transform")} == {expected}


def test_the_plugin_answers_where_what_it_fuses_throws():
    """A shift of rows after a MatMul of dynamic sizes throws as a post-operation."""
    x = parameter((1, 3, 8, 2))
    weights, shift = (opset1.constant(np.ones(shape, np.float32)) for shape in ((12, 2), (1, 3, 1, 1)))
    shifted = opset1.add(opset1.matmul(fake_quantize(x, 0.0, 1.0), weights, False, True), shift)
    net, values = model(shifted, x), [np.random.default_rng(0).random((1, 3, 8, 2), np.float32)]
    expected = numbers.run(net, values, "NO")
    net.reshape([1, 3, -1, 2])
    for found, right in zip(numbers._without_lpt(net, values), expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-5)


@pytest.mark.skipif(not numbers.computes_in("FP16"), reason="needs a CPU that computes in f16")
def test_floats_that_are_asked_for_in_f16(monkeypatch):
    steps = (
        Step("Parameter", (), 1, (1, 8, 6, 6)),
        Step("FakeQuantize", ((0, 0),), 2, (1, 8, 6, 6)),
        Step("Convolution", ((1, 0),), 3, (1, 8, 4, 4)),
        Step("PRelu", ((2, 0),), 4, (1, 8, 4, 4)),
    )
    graph = Graph(steps, ((3, 0),), 0)
    assert not list(numbers.failures(graph))
    monkeypatch.setattr("ovlpt.device.lowering.keep_types", lambda model: None)
    assert {failure.way for failure in numbers.failures(graph)} == {numbers.IN_F16}


@pytest.mark.parametrize("unsteady", ["f32", "f16", ""])
@pytest.mark.parametrize("wrong", [1, 99])
def test_memory_that_the_plugin_reads_is_its_own_where_floats_are_asked_for_in_f16(monkeypatch, unsteady, wrong):
    """As it may with tiny weights in blocks and several streams, in one compilation of three; what the transformed model has
    wrong each time is not the plugin's. ``wrong``: how many times it is.
    """
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    graph = Graph((*steps, Step("Relu", ((1, 0),), 3, shape)), ((2, 0),), 0)
    honest, count, mine = numbers.run, itertools.count(), itertools.count()

    def spoilt(model, inputs, lpt, INFERENCE_PRECISION_HINT, **more):
        found = honest(model, inputs, "NO", **more)
        if lpt == "ours":
            off = 9 if INFERENCE_PRECISION_HINT == "f16" and next(mine) < wrong else 0
        else:
            off = next(count) if unsteady == INFERENCE_PRECISION_HINT else 0
        return [off + value for value in found]

    monkeypatch.setattr(numbers, "run", spoilt)
    monkeypatch.setattr(numbers, "as_told", lambda model: "ours")
    monkeypatch.setattr(numbers, "computes_in", lambda precision: precision == "FP16")
    expected = numbers.STOCK if unsteady and wrong == 1 else numbers.IN_F16
    assert [failure.way for failure in numbers.in_f16(graph, build(graph), {})] == [expected]


def spoilt_in_bf16(monkeypatch, lost) -> Callable[[str], list[str]]:
    """How a graph of open or known sizes fails where a run loses so many percents of the largest: ``lost(model, lpt)``."""
    shape, honest = (1, 8, 6, 6), numbers.run
    steps = (
        Step("Parameter", (), 1, shape),
        Step("FakeQuantize", ((0, 0),), 2, shape),
        Step("Relu", ((1, 0),), 3, shape),
    )

    def spoilt(model, inputs, lpt, INFERENCE_PRECISION_HINT, **more):
        found = honest(model, inputs, "NO", **more)
        off = 0.01 * lost(model, lpt) if INFERENCE_PRECISION_HINT == "bf16" else 0
        return [value + off * value.max() for value in found]

    def failures(dynamic: str) -> list[str]:
        graph = Graph(steps, ((2, 0),), 0, Form(dynamic=dynamic))
        return [failure.way for failure in numbers.in_bf16(graph, build(graph), {})]

    monkeypatch.setattr(numbers, "run", spoilt)
    monkeypatch.setattr(numbers, "as_told", lambda model: "ours")
    monkeypatch.setattr(numbers, "computes_in", lambda precision: precision == "BF16")
    return failures


@pytest.mark.parametrize(
    ("of_ours", "of_stock", "expected"),
    [(1, 1, []), (9, 1, [numbers.IN_BF16]), (9, 9, []), (40, 40, [numbers.STOCK])],
    ids=["rounded", "wrong", "as far as stock", "farther than rounding"],
)
def test_floats_in_bf16(monkeypatch, of_ours, of_stock, expected):
    """Never asked for, so that products that sums for zero points cancel were wrong unseen."""
    failures = spoilt_in_bf16(monkeypatch, lambda model, lpt: of_ours if lpt == "ours" else of_stock)
    assert failures("") == expected


@pytest.mark.parametrize(("of_sized", "expected"), [(9, []), (1, [numbers.IN_BF16])])
def test_what_stock_loses_with_known_sizes_is_rounding_in_bf16(monkeypatch, of_sized, expected):
    """Of open ones the plugin keeps in f32 whatever the shape of another layer is read from."""

    def lost(model, lpt) -> int:
        return 9 if lpt == "ours" else 0 if model.is_dynamic() else of_sized

    assert spoilt_in_bf16(monkeypatch, lost)("space") == expected


def test_what_throws_in_bf16_is_measured_without_post_operations(monkeypatch):
    """As a row that is hidden whole, by -100: the simulation keeps that in f32, since it is one of its outputs."""
    steps = (Step("Parameter", (), 1, (4, 8)), Step("FakeQuantize", ((0, 0),), 2, (4, 8)))
    graph = Graph((*steps, Step("MatMul", ((1, 0),), 3, (4, 12))), ((2, 0),), 0)
    honest, plain = numbers.run, len(build(graph).get_ops())

    def spoilt(model, inputs, lpt, INFERENCE_PRECISION_HINT, **more):
        if lpt != "ours" and len(model.get_ops()) == plain:
            raise RuntimeError("a post-operation")
        found = honest(model, inputs, "NO", **more)
        is_far = INFERENCE_PRECISION_HINT == "bf16" and (lpt == "ours" or len(model.get_results()) == 1)
        return [value + is_far * value.max() for value in found]

    monkeypatch.setattr(numbers, "run", spoilt)
    monkeypatch.setattr(numbers, "as_told", lambda model: "ours")
    monkeypatch.setattr(numbers, "computes_in", lambda precision: precision == "BF16")
    assert [failure.way for failure in numbers.in_bf16(graph, build(graph), {})] == [numbers.STOCK]


def test_what_cancels_has_no_measure_in_bf16(monkeypatch):
    """Of x - x the rounding of x was left, more than all of the result, which is zero."""
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    graph = Graph((*steps, Step("Subtract", ((1, 0), (1, 0)), 3, shape)), ((2, 0), (1, 0)), 0)
    honest = numbers.run

    def rounded(model, inputs, lpt, INFERENCE_PRECISION_HINT, **more):
        first, second = honest(model, inputs, "NO", **more)
        return [first + 0.01 * (lpt == "ours" and INFERENCE_PRECISION_HINT == "bf16"), second]

    monkeypatch.setattr(numbers, "run", rounded)
    monkeypatch.setattr(numbers, "as_told", lambda model: "ours")
    monkeypatch.setattr(numbers, "computes_in", lambda precision: precision == "BF16")
    assert not list(numbers.in_bf16(graph, build(graph), {}))


@pytest.mark.parametrize("of_ours", ["now and then", "always"])
@pytest.mark.parametrize("unsteady", ["YES", "NO", None])
def test_what_is_wrong_in_bf16_now_and_then_is_the_plugins(monkeypatch, unsteady, of_ours):
    """In streams with AMX: stock of one compilation in sixty, without LPT of one in ten; not what is wrong each time."""
    shape = (1, 8, 6, 6)
    steps = (Step("Parameter", (), 1, shape), Step("FakeQuantize", ((0, 0),), 2, shape))
    graph = Graph((*steps, Step("Relu", ((1, 0),), 3, shape)), ((2, 0),), 0)
    honest, runs = numbers.run, Counter()

    def spoilt(model, inputs, lpt, INFERENCE_PRECISION_HINT, **more):
        found = honest(model, inputs, "NO", **more)
        if INFERENCE_PRECISION_HINT != "bf16":
            return found
        runs[lpt] += 1
        if lpt == "ours":
            off = 9 if of_ours == "always" or runs[lpt] == 1 else 0
        else:
            off = 9 if lpt == unsteady and runs[lpt] == 30 else 0
        return [off + value for value in found]

    monkeypatch.setattr(numbers, "run", spoilt)
    monkeypatch.setattr(numbers, "as_told", lambda model: "ours")
    monkeypatch.setattr(numbers, "computes_in", lambda precision: precision == "BF16")
    expected = numbers.STOCK if unsteady and of_ours == "now and then" else numbers.IN_BF16
    assert [failure.way for failure in numbers.in_bf16(graph, build(graph), {})] == [expected]


@pytest.mark.parametrize(("opened", "expected"), [("[1,8,?,?]", numbers.STOCK), ("[?,?,?,?]", "transform")])
def test_sizes_that_stock_opens_are_its_own(monkeypatch, opened, expected):
    """And no others."""
    steps = (Step("Parameter", (), 1, (1, 8, 6, 6)), Step("FakeQuantize", ((0, 0),), 2, (1, 8, 6, 6)))
    graph = Graph((*steps, Step("Relu", ((1, 0),), 3, (1, 8, 6, 6))), ((2, 0),), 0)

    def open_sizes(model, sizes):
        model = model.clone()
        model.reshape(PartialShape(sizes))
        return model

    stock = SimpleNamespace(compile_model=lambda model, *_: open_sizes(model, "[1,8,?,?]"))
    monkeypatch.setattr(numbers, "simulate", lambda model, inputs: [np.zeros(1)] * len(model.outputs))
    monkeypatch.setattr(numbers, "run", lambda model, inputs, lpt, **more: [np.zeros(1)] * len(model.outputs))
    monkeypatch.setattr(numbers, "core", lambda: stock)
    ways = {"transform": (lambda model: open_sizes(model, opened), lambda model: "NO")}
    monkeypatch.setattr(numbers, "WAYS", ways)
    assert [(failure.way, failure.cause) for failure in numbers.failures(graph)] == [(expected, "interface")]


@pytest.mark.parametrize("opened", [False, True])
def test_sizes_of_an_open_rank_that_openvino_opens_are_its_own(monkeypatch, opened):
    """It moves a Transpose after a reduction, which of an open rank has no sizes; and no others."""
    steps = (
        Step("Parameter", (), 450899786, (1, 2, 6, 8)),
        Step("Transpose", ((0, 0),), 1873287659, (1, 2, 8, 6)),
        Step("Reduce", ((1, 0),), 870142080, (1, 2, 1, 1)),
        Step("FakeQuantize", ((2, 0),), 210983590, (1, 2, 1, 1)),
    )
    graph = Graph(steps, ((3, 0),), 0, Form(dynamic="rank"))
    if opened:
        monkeypatch.setattr(numbers, "apply_moc_transformations", lambda model, cf: None)
    found = list(numbers.failures(graph, "transform"))
    assert {(failure.way, failure.cause) for failure in found} == {
        ("transform" if opened else numbers.STOCK, "interface")
    }


@against_native
@unsigned_data
@pytest.mark.parametrize(("honest", "expected"), [(True, numbers.STOCK), (False, numbers.NATIVE_ONLY)])
def test_what_the_native_library_gets_wrong_alone_is_its_own(monkeypatch, honest, expected):
    """A zero point by column before a mean over the columns, where the plugin's pass comes to another graph; and no other."""
    steps = (
        Step("Parameter", (), 1124644835, (1, 4, 5, 7)),
        Step("FakeQuantize", ((0, 0),), 289583179, (1, 4, 5, 7)),
        Step("Convolution", ((1, 0),), 1976538201, (1, 4, 3, 7)),
        Step("MatMul", ((1, 0),), 1555258947, (1, 4, 5, 8)),
        Step("AvgPool", ((3, 0),), 366636259, (1, 4, 2, 8)),
    )
    graph = Graph(steps, ((2, 0), (4, 0)), 0)
    if not honest:
        monkeypatch.setattr(numbers, "native_result", lambda model, without="": model)
    found = list(numbers.failures(graph, numbers.NATIVE_ONLY))
    assert {(failure.way, failure.cause) for failure in found} == {(expected, "numbers")}


@against_native
@pytest.mark.parametrize(("honest", "expected"), [(True, numbers.STOCK), (False, numbers.NATIVE_ONLY)])
def test_what_the_native_library_gets_wrong_beside_what_it_fails_on(monkeypatch, honest, expected):
    """A shift by column after a per-channel scale is divided by the scales one by one, as if they were by column, too; the
    scales of a convolution of two groups throw.
    """
    shape, volumes = (1, 4, 3, 4, 4), (1, 4, 3, 3, 4)
    steps = (
        Step("Parameter", (), 1458137179, shape),
        Step("ConstantTimes", ((0, 0),), 1542280278, shape),
        Step("AddBiasLast", ((1, 0),), 25561450, shape),
        Step("QuantizeDequantize", ((2, 0),), 1486645590, shape),
        Step("Convolution", ((3, 0),), 450997807, (1, 6, 2, 2, 3)),
        Step("GroupConvolution", ((2, 0),), 1291360911, volumes),
        Step("MatMul", ((5, 0),), 1107258488, (1, 4, 3, 3, 8)),
        Step("FakeQuantize", ((6, 0),), 1734521571, (1, 4, 3, 3, 8)),
        Step("GroupConvolution", ((7, 0),), 1449913800, (1, 4, 4, 1, 4)),
    )
    graph, library = Graph(steps, ((4, 0), (8, 0)), 700166), numbers.native_result
    if not honest:
        monkeypatch.setattr(numbers, "spelled_out", lambda model: None)
        monkeypatch.setattr(
            numbers, "native_result", lambda model, without="": library(model) if len(model.outputs) > 1 else model
        )
    found = list(numbers.failures(graph, numbers.NATIVE_ONLY))
    assert {(failure.way, failure.cause) for failure in found} == {(expected, "numbers")}


@against_native
@unsigned_data
@pytest.mark.parametrize(("honest", "expected"), [(True, numbers.STOCK), (False, numbers.NATIVE_ONLY)])
def test_what_the_native_library_gets_wrong_of_data_that_it_fails_on(monkeypatch, honest, expected):
    """A zero point before a padded mean: alone the mean is not quantized, and beside it the scales of a convolution of two
    groups throw.
    """
    steps = (
        Step("Parameter", (), 237011429, (1, 8, 4)),
        Step("FakeQuantize", ((0, 0),), 206833028, (1, 8, 4)),
        Step("GroupConvolution", ((1, 0),), 1846333417, (1, 8, 2)),
        Step("AvgPool", ((1, 0),), 430356894, (1, 8, 3)),
    )
    graph, library = Graph(steps, ((2, 0), (3, 0)), 0), numbers.native_result
    if not honest:
        monkeypatch.setattr(numbers, "spelled_out", lambda model: None)
        monkeypatch.setattr(numbers, "native_result", lambda model, without="": model if without else library(model))
    found = list(numbers.failures(graph, numbers.NATIVE_ONLY))
    assert {(failure.way, failure.cause) for failure in found} == {(expected, "numbers")}


@against_native
@pytest.mark.parametrize(("honest", "expected"), [(True, numbers.STOCK), (False, numbers.NATIVE_ONLY)])
@pytest.mark.parametrize("form", ["groups", "zero points", "float 8"])
def test_what_the_native_library_gets_wrong_in_a_form_that_it_takes(monkeypatch, form, honest, expected):
    """A shift before a padded mean, after a layer whose scales are those of its groups, or whose weights have a zero point, too;
    and integers of 255 levels over 256 before 8 bits of floating point. Without the layer that it fails on nothing is quantized.
    """
    groups, zero_points = (
        (
            Step("Parameter", (), 521606291, (1, 6, 2, 4)),
            Step("FakeQuantize", ((0, 0),), 72939366, (1, 6, 2, 4)),
            Step("GroupConvolution", ((1, 0),), drawn, (1, 6, 1, 4)),
            Step("AvgPool", ((2, 0),), 1504304633, (1, 6, 1, 2)),
            Step("ConstantPlus", ((3, 0),), 506759407, (1, 6, 1, 2)),
            Step("AvgPool", ((4, 0),), 40504590, (1, 6, 1, 3)),
        )
        for drawn in (1012573519, 1095513148)
    )
    float_8 = (
        Step("Parameter", (), 1271904234, (2, 6, 4, 4)),
        Step("FakeQuantize", ((0, 0),), 1488322428, (2, 6, 4, 4)),
        Step("Pointwise", ((1, 0),), 1420904993, (2, 4, 2, 2)),
        Step("AddConstant", ((2, 0),), 811117034, (2, 4, 2, 2)),
        Step("ThroughFloat8", ((3, 0),), 1274198486, (2, 4, 2, 2)),
        Step("ConstantMinus", ((4, 0),), 1854564907, (2, 4, 2, 2)),
        Step("RootMeanSquare", ((5, 0),), 79030233, (2, 4, 2, 2)),
    )
    steps = {"groups": groups, "zero points": zero_points, "float 8": float_8}[form]
    if not honest:
        monkeypatch.setattr(numbers, "spelled_out", lambda model: None)
    graph = Graph(steps, ((len(steps) - 1, 0),), 0)
    found = list(numbers.failures(graph, numbers.NATIVE_ONLY))
    assert {(failure.way, failure.cause) for failure in found} == {(expected, "numbers")}


@against_native
@pytest.mark.parametrize("case", ["beside integers", "after a body"])
def test_the_native_result_in_reals_is_a_model(case):
    """Where the value of a Pad is stored as integers, and where a body has layers of integers: it pads with zero in place of 0.5,
    and the kernel of the LSTM has the grid of its data for its states.
    """
    pad = (
        Step("Parameter", (), 1005171144, (1, 4, 1, 4)),
        Step("MatMul", ((0, 0),), 1775539085, (1, 4, 1, 8)),
        Step("FakeQuantize", ((1, 0),), 1015991604, (1, 4, 1, 8)),
        Step("Pad", ((2, 0),), 1439442784, (1, 4, 1, 10)),
    )
    lstm = (
        Step("Parameter", (), 459564118, (2, 5, 8)),
        Step("If", ((0, 0),), 638661371, (2, 5, 8)),
        Step("AvgPool", ((1, 0),), 519720711, (2, 5, 4)),
        Step("FakeQuantize", ((2, 0),), 1567294665, (2, 5, 4)),
        Step("LSTM", ((3, 0),), 502184387, (2, 1, 5, 8)),
    )
    steps = pad if case == "beside integers" else lstm
    found = numbers.failures(Graph(steps, ((len(steps) - 1, 0),), 0), numbers.NATIVE_ONLY)
    assert [(failure.way, failure.cause) for failure in found] == [(numbers.STOCK, "numbers")]


@pytest.mark.parametrize("wide", [True, False])
def test_what_constants_of_f16_round_is_no_fault(monkeypatch, wide):
    """The interval of weights then has no level that is zero: its integers stand for the grid that was rounded."""
    steps = (
        Step("Parameter", (), 566862797, (1, 2, 6, 4)),
        Step("Mask", ((0, 0),), 355852103, (1, 2, 6, 4)),
        Step("Hide", ((1, 0),), 1596388986, (1, 2, 6, 4)),
        Step("Transpose", ((2, 0),), 183697192, (1, 6, 4, 2)),
        Step("FakeQuantize", ((3, 0),), 66232568, (1, 6, 4, 2)),
        Step("Convolution", ((4, 0),), 863375147, (1, 4, 2, 3)),
        Step("Sigmoid", ((5, 0),), 658951079, (1, 4, 2, 3)),
    )
    if not wide:
        monkeypatch.setattr(numbers, "before_f16", lambda graph: [])
    found = numbers.failures(Graph(steps, ((6, 0),), 0, Form("f16")), "transform")
    assert {failure.way for failure in found} == (set() if wide else {"transform"})


@against_native
def test_states_that_are_read_are_rounded():
    """To the grid that the kernel keeps them in, the sum of which is more than they move it by themselves."""
    steps = (
        Step("Parameter", (), 177911448, (12, 1, 1)),
        Step("Relu", ((0, 0),), 569048866, (12, 1, 1)),
        Step("QuantizeDequantize", ((1, 0),), 1312556515, (12, 1, 1)),
        Step("LSTM", ((2, 0),), 804708736, (12, 1, 1, 4)),
        Step("MatMul", ((3, 0),), 1092367966, (12, 1, 1, 8)),
    )
    found = list(numbers.failures(Graph(steps, ((4, 0),), 0), numbers.NATIVE_ONLY))
    assert {failure.way for failure in found} == {numbers.STOCK}


@pytest.mark.parametrize("value", [-1e6, -100.0, 0.0, 0.5, 3e6])
def test_data_of_one_value_gets_an_interval(value):
    """One whose ends decrease the plugin computes otherwise than OpenVINO defines it, in each of its layers otherwise."""
    for seed in range(50):
        data = parameter((1, 4, 3)).output(0)
        drawn = operations.fake_quantize(np.random.default_rng(seed), data, np.full((1, 4, 3), value, np.float32))
        low, high = (constant_above(drawn.input_value(port)) for port in (1, 2))
        assert (low < high).all()


def test_a_failing_graph_is_made_smaller():
    def has_relu(graph: Graph) -> bool:
        return any(step.kind == "Relu" for step in graph.steps)

    candidates = map(random_graph, range(50))
    small = shrink(next(graph for graph in candidates if has_relu(graph) and len(graph.steps) > 8), has_relu)
    assert has_relu(small)
    assert len(small.steps) <= 3


def test_what_is_executed_is_compared(monkeypatch):
    """A layer in int8 has what it has in stock; one that ovlpt left in float would be told."""
    steps = (
        Step("Parameter", (), 1, (1, 8, 6, 6)),
        Step("FakeQuantize", ((0, 0),), 2, (1, 8, 6, 6)),
        Step("Convolution", ((1, 0),), 3, (1, 8, 6, 6)),
    )
    graph, execute = Graph(steps, ((2, 0),), 0), execution.execute
    assert not list(execution.failures(graph))

    def in_float_with_ovlpt(model, device, variants, **more):
        is_stock = variants == [execution.STOCK_VARIANT]
        return execute(model if is_stock else in_float(graph), device, variants, **more)

    monkeypatch.setattr(execution, "execute", in_float_with_ovlpt)
    assert [failure.way for failure in execution.failures(graph)] == [execution.WAY]


INTENDED = {
    "clipped to 16 bits": (
        (1, 1, 3, 3), "", ("StridedSlice", 2060296303, (1, 1, 3, 2)), ("QuantizeDequantizeWide", 1007192007, (1, 1, 3, 2))
    ),
    "weights first": (
        (1, 7, 7, 8), "", ("FakeQuantize", 532953212, (1, 7, 7, 8)), ("MatMul", 1459929691, (1, 7, 4, 7))
    ),
    "a scale that stock gives to other readers": (
        (1, 16, 3, 3), "space", ("QuantizeDequantize", 227115346, (1, 16, 3, 3)), ("GroupConvolution", 330937183, (1, 16, 2, 1)),
        ("Relu", 2099596498, (1, 16, 2, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INTENDED)
def test_what_is_meant_to_be_executed_otherwise_is_not_told(name, monkeypatch):
    shape, dynamic, *operations = INTENDED[name]
    steps = (
        Step("Parameter", (), 1, shape),
        *(Step(kind, ((i, 0),), *rest) for i, (kind, *rest) in enumerate(operations)),
    )
    ends = tuple((index, 0) for index in range(2, len(steps)))
    graph = Graph(steps, ends, 0, Form(dynamic=dynamic))
    assert not [failure for failure in execution.failures(graph) if failure.way == execution.WAY]
    monkeypatch.setattr(execution, "_is_wrong_in_stock", lambda graph, model: False)
    assert name != "a scale that stock gives to other readers" or list(execution.failures(graph))


MORE = {
    "levels that int8 has not": (
        (1, 3, 8, 4), "", ("FakeQuantize", 567190364, (1, 3, 8, 4)), ("Pointwise", 1720360477, (1, 8, 8, 4))
    ),
    "several outputs of each channel": (
        (1, 8, 5, 5), "", ("FakeQuantize", 398315349, (1, 8, 5, 5)), ("GroupConvolution", 6, (1, 16, 4, 3))
    ),
    "Reshapes": (
        (1, 1, 8, 8), "batch", ("FakeQuantize", 398315349, (1, 1, 8, 8)), ("MatMul", 1687377904, (1, 1, 8, 4)),
        ("AddBiasLast", 491799360, (1, 1, 8, 4)),
    ),
    "a Reorder to int8": (
        (1, 8), "", ("Softmax", 1165408647, (1, 8)), ("FakeQuantize", 1521079488, (1, 8)), ("MatMul", 1125769108, (1, 4)),
        ("AddBiasLast", 1698409305, (1, 4)), ("Relu", 1652418277, (1, 4)), ("FakeQuantize", 1067476396, (1, 4)),
        ("MatMul", 1165815350, (1, 4)), ("AddBiasLast", 1361362613, (1, 4)),
    ),
    "what waits for an If": (
        (1, 4, 5, 7), "space", ("QuantizeDequantize", 1258545922, (1, 4, 5, 7)), ("If", 2020373644, (1, 4, 5, 7)),
        ("ConstantPlus", 687440134, (1, 4, 5, 7)),
    ),
    "a slice after whole strides": (
        (1, 16, 7, 7), "", ("FakeQuantize", 524478078, (1, 16, 7, 7)), ("ConvolutionBackpropData", 1517006152, (1, 8, 15, 15))
    ),
    "a Pad before a zero point": (
        (1, 4, 3, 4, 4), "", ("FakeQuantize", 1082047356, (1, 4, 3, 4, 4)), ("GroupConvolution", 1433992462, (1, 4, 4, 4, 4))
    ),
    "Reorders around repeated channels": (
        (1, 3, 8, 8), "", ("DilatedConvolution", 527616252, (1, 4, 8, 8)), ("QuantizeDequantize", 922370356, (1, 4, 8, 8)),
        ("GroupConvolution", 1448047215, (1, 8, 4, 8)),
    ),
    "equal layers": (
        (2, 8, 1, 1), "", ("FakeQuantize", 1819308020, (2, 8, 1, 1)), ("MatMul", 1452886221, (2, 8, 1, 8)),
        ("MatMul", 1768482812, (2, 8, 1)), ("DequantizedTwice", 551683808, (2, 8, 1)),
    ),
    "an interval by rows": (
        (1, 8, 6, 6), "both", ("Mask", 1127885072, (1, 8, 6, 6)), ("Transpose", 1909198496, (1, 6, 6, 8)),
        ("FakeQuantize", 1184361238, (1, 6, 6, 8)),
    ),
    "a vector that is converted for int8": (
        (12,), "", ("MatMulOfBlockedRows", 256009158, (4,)), ("FakeQuantize", 2026410582, (4,)),
        ("MatMulOfTransposed", 1183814723, (4,)),
    ),
    "a pool that AVX2 needs": ((1, 6, 12), "", ("QuantizeDequantize", 1912286032, (1, 6, 12)), ("Pointwise", 1652587874, (1, 8, 6))),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_what_is_meant_is_not_told_where_stock_has_the_numbers(name, monkeypatch):
    shape, dynamic, *operations = MORE[name]
    steps = (Step(kind, ((i, 0),), *rest) for i, (kind, *rest) in enumerate(operations))
    ends = ((len(operations), 0), *[(1, 0)] * (name == "a pool that AVX2 needs"))
    graph = Graph((Step("Parameter", (), 1, shape), *steps), ends, 0, Form(dynamic=dynamic))
    monkeypatch.setattr(execution, "_is_wrong_in_stock", lambda graph, model: False)
    assert not [failure for failure in execution.failures(graph) if failure.way == execution.WAY]


OF_F16 = {
    "an input before a sum": (
        Step("Parameter", (), 333743466, (1, 8, 1)), Step("Parameter", (), 2120822951, (1, 8, 3)),
        Step("FakeQuantize", ((1, 0),), 37588381, (1, 8, 3)), Step("AddBiasLast", ((0, 0),), 1794022866, (1, 8, 1)),
    ),
    "integer weights of floats after a product": (
        Step("Parameter", (), 199719704, (12,)), Step("FakeQuantize", ((0, 0),), 1887927691, (12,)),
        Step("MatMul", ((1, 0),), 587100090, (4,)), Step("FakeQuantize", ((2, 0),), 174906904, (4,)),
        Step("MatMul", ((3, 0),), 2036393223, (12,)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_F16)
def test_what_stock_alone_reads_in_f16_or_calls_otherwise_is_not_told(name):
    steps, dynamic = OF_F16[name], "space" if name == "an input before a sum" else ""
    ends = tuple((index, 0) for index in range(len(steps) - 1, 1 if dynamic else len(steps) - 2, -1))
    graph = Graph(steps, ends, 0, Form("f16", dynamic))
    assert not [failure for failure in execution.failures(graph) if failure.way == execution.WAY]


def test_what_stock_has_wrong_beside_a_tie_is_its_own_fault():
    """An interval by rows that it takes for one by columns: what is next to a comparison is as far off."""
    kinds = ("Softmax", "GroupConvolution", "FakeQuantizeHalf", "Mask", "FakeQuantize", "MatMul")
    seeds = (558141135, 1953640173, 1474874353, 1308249007, 1642099748, 1916967584)
    shapes = ((1, 6, 12), *[(1, 12, 12)] * 4, (1, 12, 8))
    steps = (Step(kind, ((i, 0),), *rest) for i, (kind, *rest) in enumerate(zip(kinds, seeds, shapes, strict=True)))
    graph = Graph((Step("Parameter", (), 1423345771, (1, 6, 12)), *steps), ((6, 0),), 7500034, Form(dynamic="both"))
    assert not [failure for failure in execution.failures(graph) if failure.way == execution.WAY]

"""Transformations of a caller's own: in markup, main, settings and answers as those of the package, in int8, right numbers."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
from openvino import Op
from ovlpt.plugin_config import cpu

import ovlpt
from ovlpt import cli, own_transformations
from ovlpt.config_file import load_config
from ovlpt.device.properties import EXACT, simulation
from ovlpt.main.max_pool import MaxPoolTransformation
from ovlpt.openvino_api import Core, Manager, Model, Node, NodeFactory, PartialShape, Type, openvino_module, opset1
from ovlpt.operations import OPERATIONS, NodeFacts, all_of, along_channels, scalar_like, static_rank
from ovlpt.trace import InputError, Reason, reject_unless
from tests.networks import const, convolution, depthwise, int8_weights, model, one_convolution, parameter, quantized

opset3 = openvino_module("opset3")
NAME = "ExtractImagePatches"  # no rule is likely to come for it
ROW = ovlpt.Operation(NAME, "passes", ("opset3",), check=all_of(along_channels, scalar_like), precision_preserved=True)


class FlipChannels(Op):
    """An operation of a caller's own, in Python."""

    def __init__(self, inputs=None):
        super().__init__(self)
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, new_inputs):
        return FlipChannels(new_inputs)

    def has_evaluate(self):
        return True

    def evaluate(self, outputs, inputs):
        outputs[0].shape = inputs[0].shape
        np.copyto(outputs[0].data, inputs[0].data[:, ::-1])
        return True

    def visit_attributes(self, visitor):
        return True


class AcmeLinear(FlipChannels):
    """With weights: ``x @ w.T`` of whatever types, in f32."""

    read: ClassVar[set[tuple[str, ...]]] = set()

    def validate_and_infer_types(self):
        rows, columns = self.get_input_shape(0)[0], self.get_input_shape(1)[0]
        self.set_output_type(0, Type.f32, PartialShape([rows, columns]))

    def clone_with_new_inputs(self, new_inputs):
        return AcmeLinear(new_inputs)

    def evaluate(self, outputs, inputs):
        self.read.add(tuple(each.element_type.get_type_name() for each in inputs))
        data, weights = (each.data.astype(np.float32) for each in inputs)
        outputs[0].data[:] = data @ weights.T
        return True


def tiles_of_2x2(data: Node) -> Node:
    """Each pixel of a tile becomes channels: none is read twice, and nothing is padded."""
    return opset3.extract_image_patches(data, [2, 2], [2, 2], [1, 1], "valid")


def patches(zero_point: bool = False) -> Model:
    x = parameter([1, 8, 6, 6])
    data = quantized(x, -0.55 if zero_point else 0.0, 2.0 if zero_point else 2.55, name="quantize")
    moved = tiles_of_2x2(data)
    moved.set_friendly_name("moved")
    return model(convolution(convolution(moved, 16, name="conv"), 4, name="last"), x)


def flipped() -> Model:
    """The channels of a network whose first layer is depthwise, turned round."""
    x = parameter([1, 8, 6, 6])
    channels = np.linspace(1, 3, 8, dtype=np.float32).reshape(1, 8, 1, 1)
    ends = [opset1.constant(np.zeros_like(channels)), opset1.constant(channels)] * 2
    flip = FlipChannels([opset1.fake_quantize(x, *ends, 256).output(0)])
    flip.set_friendly_name("flip")
    return model(depthwise(flip), x)


def type_of(network: Model, name: str) -> tuple[str, str]:
    """Opset and name of an operation, as its type says. Before 2025 all of those in Python had one name."""
    node = next(each for each in network.get_ops() if each.get_friendly_name() == name)
    return node.get_type_info().version_id, node.get_type_name()


def flip_row() -> ovlpt.Operation:
    opset, name = type_of(flipped(), "flip")
    return ovlpt.Operation(
        name, "passes", (opset,), move=lambda values, facts: values[:, ::-1], precision_preserved=True
    )


def plugin(*transformations, **more) -> ovlpt.PluginConfig:
    return dataclasses.replace(cpu.config(True), transformations=transformations, **more)


def types_read(transformed: Model) -> dict[str, str]:
    """What each operation reads at its first input."""
    return {
        node.get_friendly_name(): node.get_input_element_type(0).get_type_name()
        for node in transformed.get_ops()
        if node.get_input_size()
    }


def assert_right_in_int8(network: Model, settings: ovlpt.PluginConfig, layers: int) -> None:
    """As many layers in int8 as said, and the numbers of the FakeQuantize simulation."""
    core = Core()
    compiled = ovlpt.compile_model(network, "CPU", EXACT, plugin=settings, core=core)
    x = np.random.default_rng(0).uniform(-1, 3, list(network.inputs[0].shape)).astype(np.float32)
    expected = core.compile_model(network, "CPU", simulation())([x])[0]
    assert np.abs(compiled([x])[0] - expected).max() <= 1e-4 * np.abs(expected).max()
    low = [layer for layer in ovlpt.execution_types(compiled).executed if layer.is_int8]
    assert sum(layer.layer_type == "Convolution" for layer in low) == layers


@pytest.mark.parametrize("zero_point", [False, True])
def test_a_row_alone(zero_point):
    network = patches(zero_point)
    assert types_read(ovlpt.transform(network, lowered=False))["moved"] == "f32"
    assert types_read(ovlpt.transform(network, plugin=plugin(ROW), lowered=False))["moved"] in ("u8", "i8")
    assert_right_in_int8(network, plugin(ROW), layers=1)
    assert OPERATIONS["ExtractImagePatches"].kind == "absent"  # for a call without it


def test_a_move_of_the_constants():
    """Per-channel scales go where the row says that the channels go."""

    def copied(values: np.ndarray, facts: NodeFacts) -> np.ndarray:
        block = int(np.prod(facts.attributes["sizes"]))
        return values if values.size == 1 else np.tile(values, (1, block, *[1] * (values.ndim - 2)))

    x = parameter([1, 4, 6, 6])
    channels = np.linspace(1, 3, 4, dtype=np.float32).reshape(1, 4, 1, 1)
    ends = [opset1.constant(np.zeros_like(channels)), opset1.constant(channels)] * 2
    moved = tiles_of_2x2(opset1.fake_quantize(x, *ends, 256))
    row = dataclasses.replace(ROW, check=along_channels, move=copied)
    assert_right_in_int8(model(depthwise(moved), x), plugin(row), layers=1)


def test_an_operation_in_python():
    network = flipped()
    before, after = (ovlpt.transform(network, plugin=each, lowered=False) for each in (plugin(), plugin(flip_row())))
    assert (types_read(before)["flip"], types_read(after)["flip"]) == ("f32", "u8")
    assert_right_in_int8(network, plugin(flip_row()), layers=1)


class AcmeLinearTransformation(ovlpt.LayerTransformation):
    """As the documents have it."""

    operation: ClassVar[ovlpt.Operation]

    def can_be_transformed(self, node: Node) -> None:
        data = self.require_dequantization(node)
        self.check_row(node, data)
        reject_unless(data.scale.size == 1, "per_channel_activations", "its columns have scales of their own")
        zero_point = self.weights(node).zero_point
        reject_unless(zero_point is None, "weights_zero_point", "its kernel takes no zero point of the weights")

    def transform(self, node: Node) -> None:
        data, weights = self.dequantization(node), self.weights(node)
        integers = weights.integers()
        node.input(1).replace_source_output(integers)
        zero_point = data.zero_point
        if zero_point is not None:
            zero_point = zero_point.reshape(-1) * integers.get_node().data.sum(axis=1, dtype=np.float32)
        self.move_dequantization_after(node, data, data.scale.reshape(-1) * weights.scale.reshape(-1), zero_point)


def linear(weights: str, low: float) -> Model:
    """The operation between quantized data and a MatMul. ``weights``: how they are quantized."""
    x, generator = parameter([4, 32]), np.random.default_rng(0)
    if weights == "FakeQuantize":
        ends = [const(sign * np.linspace(1.2, 2.4, 16).reshape(16, 1)) for sign in (-1, 1)]
        stored = opset1.fake_quantize(const(generator.uniform(-0.5, 0.5, (16, 32))), *ends, *ends, 255)
    else:
        stored = int8_weights([16, 32]) if weights == "integers" else const(generator.uniform(-0.5, 0.5, (16, 32)))
    layer = AcmeLinear([quantized(x, low, 2.55 + low).output(0), stored.output(0)])
    layer.set_friendly_name("acme")
    after = quantized(opset1.relu(layer), 0.0, 5.0)
    return model(opset1.matmul(after, int8_weights([8, 16], seed=1), False, True), x)


def with_weights() -> ovlpt.PluginConfig:
    opset, name = type_of(linear("integers", 0.0), "acme")
    row = ovlpt.Operation(name, "weighted", (opset,), weights_axes=(0,))
    return plugin(type("AcmeLinearTransformation", (AcmeLinearTransformation,), {"operation": row}))


@pytest.mark.parametrize("low", [0.0, -0.5])
@pytest.mark.parametrize("weights", ["FakeQuantize", "integers"])
def test_an_operation_with_weights(weights, low):
    network, core = linear(weights, low), Core()
    compiled = ovlpt.compile_model(network, "CPU", EXACT, plugin=with_weights(), core=core)
    x = np.random.default_rng(0).uniform(-1, 3, (4, 32)).astype(np.float32)
    AcmeLinear.read.clear()
    found = compiled([x])[0]
    assert AcmeLinear.read == {("u8", "i8")}
    expected = core.compile_model(network, "CPU", simulation())([x])[0]
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
    assert not ovlpt.explain(network, plugin=with_weights(), graph_only=True)


def test_an_operation_whose_weights_are_not_quantized():
    found = {each.name: each.why for each in ovlpt.explain(linear("real", 0.0), plugin=with_weights(), graph_only=True)}
    assert "weights" in found["acme"]


def blocks(strides: int) -> Model:
    """Of a newer opset, with attributes and another rank: columns of 2x2 become pixels."""
    x = parameter([1, 32, 9 if strides == 2 else 25])
    places = [opset1.constant(np.array(each, np.int64)).output(0) for each in ((6, 6), (2, 2))]
    attributes = {"strides": [strides] * 2, "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    moved = NodeFactory("opset15").create("Col2Im", [quantized(x, -0.55, 2.0).output(0), *places], attributes)
    moved.set_friendly_name("moved")
    return model(convolution(moved, 16, name="conv"), x)


def apart(facts: NodeFacts) -> Reason | None:
    if np.array_equal(facts.constants[2], facts.attributes["strides"]):
        return None
    return Reason("attributes", "its blocks overlap, and several values are added")


@pytest.mark.parametrize("strides, layers", [(2, 1), (1, 0)])
def test_a_row_that_asks_for_attributes(strides, layers):
    checks = all_of(along_channels, scalar_like, apart)
    settings = plugin(ovlpt.Operation("Col2Im", "passes", ("opset15",), check=checks, precision_preserved=True))
    assert_right_in_int8(blocks(strides), settings, layers)
    why = {each.name: each.why for each in ovlpt.explain(blocks(strides), plugin=settings, graph_only=True)}
    assert ("blocks overlap" in why.get("moved", "")) == (not layers)


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_row_whose_operation_drops_an_axis(per_channel):
    """Pixels of an image that lies channels last, as rows."""
    x = parameter([2, 6, 6, 8])
    high = np.linspace(1, 2.55, 8).reshape(1, 1, 1, 8) if per_channel else 2.55
    ends = [const(np.zeros_like(high)), const(high)] * 2
    pixels = opset1.constant(np.array([[[0, 1], [2, 3], [5, 5]], [[1, 1], [0, 0], [4, 2]]], np.int64))
    data = opset1.fake_quantize(x, *ends, 256)
    rows = NodeFactory("opset8").create("GatherND", [data.output(0), pixels.output(0)], {"batch_dims": 1})
    rows.set_friendly_name("rows")
    network = model(opset1.matmul(rows, int8_weights([5, 8]), False, True), x)
    move = lambda values, facts: values if values.size == 1 else values.reshape(1, 1, -1)  # noqa: E731
    row = ovlpt.Operation(
        "GatherND", "passes", ("opset8",), check=static_rank, move=move, precision_preserved=True, copies=True
    )
    before, after = (ovlpt.transform(network, plugin=each, lowered=False) for each in (plugin(), plugin(row)))
    assert (types_read(before)["rows"], types_read(after)["rows"]) == ("f32", "u8")
    assert_right_in_int8(network, plugin(row), layers=0)


class OnlySmallWindows(MaxPoolTransformation):
    """In place of the package's rule: windows of more than 2x2 stay in float."""

    def can_be_transformed(self, node: Node) -> None:
        reject_unless(max(node.get_attributes()["kernel"]) <= 2, "attributes", "its window is too large for the device")
        super().can_be_transformed(node)


def pooled(window: int) -> Model:
    x = parameter([1, 16, 8, 8])
    pool = opset1.max_pool(quantized(x, 0.0, 2.55), [1, 1], [0, 0], [0, 0], [window] * 2)
    pool.set_friendly_name("pool")
    return model(convolution(pool, 8, name="conv"), x)


def pooled_2() -> Model:
    return pooled(2)


def pooled_3() -> Model:
    return pooled(3)


@pytest.mark.parametrize("window, read", [(2, "u8"), (3, "f32")])
def test_a_rule_that_replaces_one_of_the_package(window, read):
    network, settings = pooled(window), plugin(OnlySmallWindows)
    assert types_read(ovlpt.transform(network, plugin=plugin(), lowered=False))["pool"] == "u8"
    assert types_read(ovlpt.transform(network, plugin=settings, lowered=False))["pool"] == read
    assert_right_in_int8(network, settings, layers=int(read == "u8"))
    said = {answer.name: answer.reason.text for answer in ovlpt.explain(network, config=settings, graph_only=True)}
    assert ("too large for the device" in said.get("pool", "")) == (read == "f32")


def test_explain_gives_its_reasons():
    def why(*own, **more) -> dict[str, str]:
        return {each.name: each.why for each in ovlpt.explain(patches(), plugin=plugin(*own, **more))}

    assert "there is no rule" in why()["moved"]
    assert "moved" not in why(ROW)
    assert "callback" in why(ROW, callbacks={"ExtractImagePatchesTransformation": lambda node: True})["moved"]
    found = {each.name: each.why for each in ovlpt.explain(pooled(3), plugin=plugin(OnlySmallWindows))}
    assert "too large for the device" in found["conv"]


def test_in_a_manager():
    manager, trace, network = Manager(), ovlpt.Trace(), patches()
    manager.register_pass(ovlpt.LowPrecision(main=[ROW], trace=trace))
    manager.run_passes(network)
    assert types_read(network)["conv"] == "u8"
    assert [event.transformation for event in trace.of("moved")] == ["ExtractImagePatchesTransformation"]


@pytest.mark.parametrize("wanted", ["u8", "i8"])
def test_a_restriction_reaches_the_quantization_through_it(wanted):
    settings = ovlpt.PluginConfig(
        "mine",
        (ovlpt.PrecisionsRestriction.create("Convolution", {0: [wanted]}),),
        (ovlpt.QuantizationGranularityRestriction.create("Convolution", [0]),),
        transformations=(ROW,),
    )
    read = types_read(ovlpt.transform(patches(True), plugin=settings, lowered=False))
    assert read["moved"] == wanted


def test_a_restriction_of_its_own():
    forbidden = ovlpt.PrecisionsRestriction.create(ROW)
    settings = ovlpt.PluginConfig("mine", (forbidden,), transformations=(ROW,))
    trace = ovlpt.Trace()
    read = types_read(ovlpt.transform(patches(), plugin=settings, lowered=False, trace=trace))
    assert read["moved"] == "f32"
    assert "restricted" in [event.outcome for event in trace.of("moved")]
    with pytest.raises(InputError, match="ExtractImagePatches has input 0, not 1"):
        ovlpt.PrecisionsRestriction.create(ROW, {1: ["u8"]})


@pytest.mark.parametrize("name", ["ExtractImagePatchesTransformation", "Typo"])
def test_its_name_in_settings(name, tmp_path):
    """Disabled, in a callback, in a file."""
    disabled = plugin(ROW, disabled=(name,))
    called = plugin(ROW, callbacks={name: lambda node: True})
    file = tmp_path / "mine.toml"
    file.write_text(f'disabled = ["{name}"]\n[precisions.ExtractImagePatches]\n0 = ["u8"]\n')
    for settings in (lambda: disabled, lambda: called, lambda: load_config(file, [ROW])):
        if name == "Typo":
            with pytest.raises(InputError, match="no pass"):
                ovlpt.transform(patches(), plugin=settings())
        else:
            trace = ovlpt.Trace()
            read = types_read(ovlpt.transform(patches(), plugin=settings(), lowered=False, trace=trace))
            assert read["conv"] == "f32"
            assert [event.outcome for event in trace.of("moved")] == ["disabled"]


def test_what_examines_a_model_takes_them():
    """Exact integers after an operation of one's own; and one that gives real numbers leaves the layer after it in float."""
    found = {record.name: record.status for record in ovlpt.verify(patches(), plugin=plugin(ROW))}
    assert found["conv"] == "equal"
    real = dataclasses.replace(flip_row(), precision_preserved=False)
    assert_right_in_int8(flipped(), plugin(real), layers=0)


OFFERED = (ROW, OnlySmallWindows, flip_row())


@pytest.fixture
def offered(monkeypatch, tmp_path):
    """A package, as pip would install it, that offers its transformations as "acme", and some that cannot be loaded."""
    installed = tmp_path / "site" / "acme_rules-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        f"[{own_transformations.GROUP}]\nacme = {__name__}:OFFERED\nbroken = {__name__}:NOT_THERE\n"
    )
    monkeypatch.syspath_prepend(installed.parent)


def test_a_package_offers_them(offered, tmp_path, capsys):
    """Off unless named; in a file for every command."""
    path, file = tmp_path / "net.xml", tmp_path / "acme.toml"
    ovlpt.save_model(patches(), path)
    file.write_text('transformations = ["acme"]\n')
    assert cli.main(["explain", str(path), "--graph-only", "--strict"]) == 1
    assert cli.main(["explain", str(path), "--graph-only", "--config", str(file), "--layer", "conv"]) == 0
    assert "is in low precision" in capsys.readouterr().out
    assert cli.main(["explain", str(path), "--graph-only", "--transformations", "acme", "--layer", "conv"]) == 0
    assert "is in low precision" in capsys.readouterr().out
    assert cli.main(["explain", str(path), "--transformations", "acne"]) == 2
    assert 'did you mean "acme"?' in capsys.readouterr().err


@pytest.mark.parametrize("network, layers", [(patches, 1), (flipped, 1), (pooled_2, 1), (pooled_3, 0)])
def test_what_a_package_offers_runs_in_int8(network, layers, offered):
    assert_right_in_int8(network(), ovlpt.PluginConfig("acme", transformations=("acme",), extends_device=True), layers)


def test_settings_on_top_of_the_devices(offered, tmp_path):
    """Its restrictions hold, and callbacks of both; a section of one's own ends that."""
    file = tmp_path / "acme.toml"
    file.write_text(
        'transformations = ["acme"]\ndisabled = ["OnlySmallWindows"]\n[callbacks]\nAddTransformation = "marked_as_bias"\n'
    )
    added, device = load_config(file), cpu.config(True)
    whole = added.on_top_of(device)
    assert whole.precision_restrictions == device.precision_restrictions
    assert whole.params == device.params
    assert {*device.disabled, "OnlySmallWindows"} == set(whole.disabled)
    assert set(whole.callbacks) == set(device.callbacks)
    transformed = ovlpt.transform(pooled(2), plugin=added, lowered=False)
    assert types_read(transformed)["pool"] == "f32"  # disabled
    file.write_text('transformations = ["acme"]\n[precisions]\n')
    assert load_config(file).on_top_of(device).precision_restrictions == ()
    with pytest.raises(InputError, match="extend those of a device"):
        ovlpt.PluginConfig("mine", params=ovlpt.Params(update_precisions=False), extends_device=True)


def test_one_may_stand_for_a_tuple():
    settings = ovlpt.PluginConfig("mine", disabled="ExtractImagePatchesTransformation", transformations=ROW)
    assert types_read(ovlpt.transform(patches(), plugin=settings, lowered=False))["conv"] == "f32"


def test_one_pass_config_serves_both_steps():
    passes = ovlpt.PassConfig({"ExtractImagePatchesTransformation"})
    ovlpt.CommonOptimizations(main=[ROW], pass_config=passes)
    ovlpt.LowPrecision(main=[ROW], pass_config=passes)
    with pytest.raises(InputError, match='no pass "ExtractImagePatchesTransformation"'):
        ovlpt.CommonOptimizations(pass_config=passes)


def test_either_callback_leaves_a_node_alone():
    def leaves(*kinds):
        return lambda node: node in kinds

    device = ovlpt.PluginConfig("device", callbacks={"A": leaves(1), "B": leaves(2)})
    added = ovlpt.PluginConfig("mine", callbacks={"A": leaves(3), "C": leaves(4)}, extends_device=True)
    found = added.on_top_of(device).callbacks
    assert {name: [node for node in range(5) if asked(node)] for name, asked in found.items()} == {
        "A": [1, 3], "B": [2], "C": [4],
    }  # fmt: skip


@pytest.mark.parametrize(
    "given, sentence",
    [
        (["acne"], 'no installed package offers transformations "acne" (did you mean "acme"?)'),
        (["broken"], 'the transformations "broken" (tests.test_own_transformations:NOT_THERE) cannot be loaded'),
        ([ROW, ROW], "2 transformations have the name ExtractImagePatchesTransformation"),
        ([OPERATIONS["Convolution"]], "the row of Convolution is weighted"),
        ([ovlpt.LayerTransformation], "LayerTransformation has no row"),
        ([3], "3 is not a transformation"),
        (
            [ovlpt.Operation("ReverseSequnce", "passes")],
            "the row of ReverseSequnce names opset1.ReverseSequnce, which this OpenVINO does not have "
            '(did you mean "ReverseSequence"?); an operation of your own has opsets=("extension",)',
        ),
        (
            [ovlpt.Operation("GridSample", "passes")],
            "the row of GridSample names opset1.GridSample, which this OpenVINO does not have; opset9 has it",
        ),
        (
            [ovlpt.Operation("FlipsRowsOfAcme", "passes")],
            "the row of FlipsRowsOfAcme names opset1.FlipsRowsOfAcme, which this OpenVINO does not have; an operation of "
            'your own has opsets=("extension",)',
        ),
        (
            [ovlpt.Operation("Reverse", "pases")],
            'the row of Reverse has no kind "pases" (did you mean "passes"?)',
        ),
    ],
)
def test_what_cannot_be_one(given, sentence, offered):
    with pytest.raises(InputError) as error:
        ovlpt.LowPrecision(main=given)
    assert str(error.value).startswith(sentence)


def test_the_sentence_names_the_line(offered, tmp_path):
    file = tmp_path / "acme.toml"
    file.write_text('name = "x"\ntransformations = ["acne"]\n')
    with pytest.raises(InputError, match="line 2: no installed package"):
        load_config(file)


def test_models_with_them_are_not_cached(tmp_path):
    """Another version of the code would make another model."""
    ovlpt.compile_model(one_convolution(), plugin=plugin(ROW), cache_dir=tmp_path)
    assert not list(tmp_path.glob("ovlpt-*"))


def test_reasons_of_ones_own():
    from ovlpt import reasons

    reasons.add(reasons.Row("window_of_acme", reasons.Cause.HARDWARE))
    try:
        assert Reason("window_of_acme", "its window is too large").code == "window_of_acme"
    finally:
        del reasons.ROWS["window_of_acme"]

"""Settings from a TOML file, and the line of what is wrong."""

from __future__ import annotations

import pytest

import ovlpt
from ovlpt import cli
from ovlpt.config import Params
from ovlpt.config_file import CALLBACKS
from ovlpt.openvino_api import opset1
from tests.conftest import run_pass
from tests.graphs import f32, parameter
from tests.restricted_networks import one_convolution

FULL = """
name = "my plugin"
per_tensor = { Convolution = [0], MatMul = [] }
disabled = ["ClampTransformation", "PropagatePrecisions"]

[params]
update_precisions = false
deq_precision = "f16"
default_precisions = ["i8", "u8"]

[precisions.Convolution]
0 = ["u8", "i8"]
1 = ["i8"]

[precisions]
MatMul = {}
GroupConvolution = { "0,1" = ["i8"] }
MVN = { 0 = ["u8"], opset = "opset6" }

[callbacks]
ConvolutionBackpropDataTransformation = ["is_asymmetric_quantization", "is_asymmetric_on_weights"]
MultiplyToGroupConvolutionTransformation = "not can_be_transformed_to_group_convolution"
"""


@pytest.fixture
def load(tmp_path):
    def read(text: str) -> ovlpt.PluginConfig:
        (tmp_path / "my.toml").write_text(text)
        return ovlpt.load_config(tmp_path / "my.toml")

    return read


def test_everything(load):
    config = load(FULL)
    assert config.name == "my plugin"
    assert config.params == Params(update_precisions=False, deq_precision="f16", default_precisions=("i8", "u8"))
    assert config.precision_restrictions == (
        ovlpt.PrecisionsRestriction.create("Convolution", {0: ["u8", "i8"], 1: ["i8"]}),
        ovlpt.PrecisionsRestriction.create("MatMul", {}),
        ovlpt.PrecisionsRestriction.create("GroupConvolution", {(0, 1): ["i8"]}),
        ovlpt.PrecisionsRestriction.create("MVN", {0: ["u8"]}, "opset6"),
    )
    assert config.quantization_restrictions == (
        ovlpt.QuantizationGranularityRestriction.create("Convolution", [0]),
        ovlpt.QuantizationGranularityRestriction.create("MatMul"),
    )
    assert config.disabled == ("ClampTransformation", "PropagatePrecisions")
    leave_alone = config.pass_config().callbacks["MultiplyToGroupConvolutionTransformation"]
    assert leave_alone(opset1.multiply(parameter((1, 3)), f32(2)))
    assert not leave_alone(opset1.multiply(parameter((1, 3, 2, 2)), f32(2)))


def test_inline_tables_say_the_same(load):
    text = 'precisions = { MatMul = {}, GroupConvolution = { "0,1" = ["i8"] } }'
    assert (
        load(text).precision_restrictions
        == load('[precisions.MatMul]\n[precisions.GroupConvolution]\n"0,1" = ["i8"]').precision_restrictions
    )


def test_an_empty_file_restricts_nothing(load):
    config = load("")
    assert config.name == "my"
    assert not config.precision_restrictions
    assert config.params == Params()


def test_it_steers_the_pass(load):
    config = load('[precisions.Convolution]\n0 = ["i8"]\n1 = ["i8"]')
    graph = run_pass(one_convolution(), ovlpt.LowPrecision.from_config(config))
    quantize = next(node for node in graph.get_ops() if node.get_type_name() == "FakeQuantize")
    assert quantize.get_output_element_type(0).get_type_name() == "i8"


WRONG = [
    ("[precisions.Convolutoin]\n", 1, 'no row for operation "Convolutoin" (did you mean "Convolution"?)'),
    ('[precisions.MatMul]\n0 = ["u8"]\n2 = ["i8"]\n', 3, "MatMul has inputs 0 and 1, not 2"),
    ('[precisions.MatMul]\n\n0 = ["int8"]\n', 3, 'no element type "int8"'),
    ('[precisions.MatMul]\n0 = "u8"\n', 2, 'element types must be a list such as ["u8", "i8"]'),
    ('[precisions.MatMul]\nfirst = ["u8"]\n', 2, '"first" is not a port'),
    ('[precisions.MatMul]\n0 = ["u8"]\nopset = "opset3"\n', 3, 'MatMul has no rule in "opset3"'),
    ("[precisions]\nMatMul = 1\n", 2, "it must be a table of ports"),
    ('name = "x"\n[presicions.MatMul]\n', 2, 'no section "presicions" (did you mean "precisions"?)'),
    ("[params]\nupdate_precision = true\n", 2, '(did you mean "update_precisions"?)'),
    ("[params]\nupdate_precisions = 1\n", 2, "it must be true or false"),
    ('[params]\n\n# why not\ndeq_precision = "f64"\n', 4, 'deq_precision is "f64"'),
    ('[params]\ndefault_precisions = ["u9"]\n', 2, 'no element type "u9"'),
    ("[per_tensor]\nConvolution = 0\n", 2, "ports must be a list such as [0]"),
    ("[per_tensor]\nConvolution = [7]\n", 2, "Convolution has inputs 0 and 1, not 7"),
    (
        'disabled = [\n  "ClampTransformation",\n  "ReluTransformaton",\n]\n',
        3,
        'no pass "ReluTransformaton" (did you mean "ReluTransformation"?)',
    ),
    (
        '[callbacks]\nAddTransformation = "marked_as_bais"\n',
        2,
        'no predicate "marked_as_bais" (did you mean "marked_as_bias"?)',
    ),
    ('[callbacks]\nAdd = "marked_as_bias"\n', 2, 'no pass "Add"'),
    ("[callbacks]\nAddTransformation = []\n", 2, "AddTransformation has no predicate"),
    ("[precisions.MatMul]\n0 = []\n", 2, '"0" lists no element type'),
    ('[precisions.MatMul]\n0 = ["u8",\n  "u16"]\n', 3, 'no kernel reads "u16" as low precision'),
    ("[params]\ndefault_precisions = []\n", 2, '"default_precisions" lists no element type'),
]


@pytest.mark.parametrize(("text", "line", "sentence"), WRONG)
def test_what_is_wrong_and_where(load, text, line, sentence):
    with pytest.raises(ovlpt.trace.InputError) as error:
        load(text)
    assert f"my.toml, line {line}: " in str(error.value)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_toml(load, tmp_path):
    with pytest.raises(ovlpt.trace.InputError, match=r"is not a TOML file: .*line 2"):
        load("[params]\nupdate_precisions = maybe\n")
    with pytest.raises(ovlpt.trace.InputError, match=r"cannot read .*nowhere\.toml"):
        ovlpt.load_config(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("command", ["run", "explain", "transform", "verify"])
def test_commands_take_it(command, tmp_path, capsys):
    (tmp_path / "my.toml").write_text("[precisions.MaxPol]\n")
    output = ["-o", str(tmp_path / "out.xml")] if command == "transform" else []
    assert cli.main([command, "model.xml", "--config", str(tmp_path / "my.toml"), *output]) == 2
    assert "my.toml, line 1: no row for operation" in capsys.readouterr().err


def test_every_predicate_can_be_named():
    assert len(CALLBACKS) >= 8

"""What commands write for programs: one envelope, described by the schema in the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ovlpt import cli
from ovlpt.inspect import shard_errors
from ovlpt.inspect.float_model import without_fake_quantize
from ovlpt.openvino_api import opset1
from ovlpt.version import VERSION
from tests.conftest import OUTPUT_SCHEMA, assert_documented
from tests.networks import convolution, model, parameter, quantized
from tests.test_cli import save


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """Two layers in int8, one that reads what is not quantized, and weights that can saturate."""
    x = parameter([1, 4, 8, 8])
    value = convolution(quantized(x, 0, 2.55), 4, kernel=3)
    value = convolution(opset1.sigmoid(convolution(quantized(value, -1.28, 1.27), 4, kernel=3, seed=1)), 4, kernel=1)
    made, folder = model(value, x), tmp_path_factory.mktemp("json")
    save(without_fake_quantize(made), folder / "float.xml")
    return save(made, folder / "net.xml")


CASES = {  # arguments after the model, and the status
    "explain": [([], 0), (["--layer", "{lost}"], 0)],
    "report": [([], 0)],
    "check": [([], 0), (["--no-numbers", "--expect", "f32:Convolution"], 1)],
    "compare": [(["-f", "{float}"], 0)],
    "verify": [([], 0)],
    "fuse": [(["-o", "{folder}/out.xml"], 0)],
    "transform": [(["-o", "{folder}/out.xml"], 0)],
}
ELSEWHERE = {  # what takes seconds, or has another result: tests of their own, which ask the same
    "run": "test_cli.py",
    "complete": "inspect/test_complete.py",
    "bench": "inspect/test_bench.py",
    "explain --post-ops": "inspect/test_post_ops.py",
    "report of several": "inspect/test_report_several.py",
    "check of a fleet": "fleet/test_check_fleet.py",
    "transform --tune": "inspect/test_tune.py",
}


def test_every_command_has_its_cases_and_its_result():
    commands = set(CASES) | {name.split()[0] for name in ELSEWHERE}
    assert commands == set(cli.COMMANDS) == set(OUTPUT_SCHEMA["properties"]["command"]["enum"])
    for file in ELSEWHERE.values():
        assert "    assert_documented(" in Path(__file__).parent.joinpath(file).read_text("utf-8"), file
    assert [each["then"]["properties"]["result"]["$ref"] for each in OUTPUT_SCHEMA["allOf"]] == [
        f"#/$defs/{each['if']['properties']['command']['const']}" for each in OUTPUT_SCHEMA["allOf"]
    ]
    assert len(OUTPUT_SCHEMA["allOf"]) == len(cli.COMMANDS)
    Draft202012Validator.check_schema(OUTPUT_SCHEMA)


def lost_layer(net: str) -> str:
    from ovlpt import explain

    return explain(net).groups()[0][0].name


@pytest.mark.parametrize(
    ("command", "arguments", "status"),
    [(command, *case) for command, cases in CASES.items() for case in cases],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_the_schema_describes_what_is_written(command, arguments, status, net, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        shard_errors, "interleaved_latencies", lambda runs, *_: {name: [1.0] for name in runs}
    )  # seconds
    places = {
        "float": net.replace("net.xml", "float.xml"),
        "folder": tmp_path,
        "lost": lost_layer(net) if "{lost}" in arguments else "",
    }
    assert cli.main([command, net, *(each.format(**places) for each in arguments), "--json", "-"]) == status
    content = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert_documented(content)
    assert {key: content[key] for key in ("version", "command", "model")} == {
        "version": VERSION,
        "command": command,
        "model": net,
    }


def test_a_baseline_is_in_the_envelope_and_is_read_without_it_too(net, tmp_path, capsys):
    written, older = tmp_path / "new.json", tmp_path / "old.json"
    assert cli.main(["check", net, "--no-numbers", "--save-baseline", str(written)]) == 0
    content = json.loads(written.read_text())
    assert_documented(content)
    older.write_text(json.dumps(content["result"]))
    for path in (written, older):
        assert cli.main(["check", net, "--no-numbers", "--baseline", str(path)]) == 0
    assert cli.main(["check", net, "--json", str(written)]) == 0
    capsys.readouterr()
    assert cli.main(["check", net, "--baseline", str(written)]) == 2
    assert "is not a baseline" in capsys.readouterr().err

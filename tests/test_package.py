"""What a user meets first: the names of the package, the command line without a command, the sources uninstalled."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import ovlpt
from ovlpt import cli, data
from ovlpt.commands import compare
from ovlpt.commands.printing import console
from ovlpt.version import VERSION

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there():
    assert (
        {"InputError", "report", "run", "verify", "compile_model", "predicates"}
        <= set(ovlpt.__all__)
        <= set(dir(ovlpt))
    )
    for name in ovlpt.__all__:
        assert getattr(ovlpt, name) is not None
    assert ovlpt.inspect.numbers.__name__ == "ovlpt.inspect.numbers"
    with pytest.raises(AttributeError, match="no attribute 'compile_modle'"):
        _ = ovlpt.compile_modle


LIGHT = """
import sys, ovlpt
from ovlpt import cli
try:
    cli.main(["--help"])
except SystemExit:
    pass
assert not {"openvino", "numpy", "rich"} & set(sys.modules), sys.modules
"""


def test_the_import_and_the_help_load_nothing_heavy():
    subprocess.run([sys.executable, "-c", LIGHT], check=True, capture_output=True)


COMPILES = """
import sys, numpy, openvino
loaded = set(sys.modules)
import ovlpt
ovlpt.LowPrecision, ovlpt.compile_model, ovlpt.report
more = set(sys.modules) - loaded
algebra = {f"ovlpt.fake_quantize.{each}" for each in ("chain", "composer", "forms", "simplify", "hazards")}
assert not {"difflib", "html", "xml", "fractions", "decimal", "rich"} & more, more
assert not algebra & more, more
from ovlpt.fake_quantize import Chain, FakeQuantize, adjust, decompose, predict, quantize_only
"""


def test_what_compiles_loads_nothing_for_other_commands():
    subprocess.run([sys.executable, "-c", COMPILES], check=True)


CLONE = """
import importlib.metadata, runpy, sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in repr(each).lower()]
installed = importlib.metadata.version

def absent(name):
    if name == "ovlpt":
        raise importlib.metadata.PackageNotFoundError(name)
    return installed(name)

importlib.metadata.version = absent
sys.path.insert(0, "")
sys.argv = ["ovlpt", *sys.argv[1:]]
runpy.run_module("ovlpt", run_name="__main__")
"""


def test_a_clone_runs_without_installation(tmp_path):
    for folder in ("ovlpt", "plugin_config"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [sys.executable, "-c", CLONE, "transform", str(data.digits()), "-o", str(tmp_path / "out.xml")]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert VERSION in (tmp_path / "out.xml").read_text()


def test_the_version_has_one_place():
    assert ovlpt.__version__ == VERSION
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_type_checkers_know_every_public_name():
    """What they read is beside what is imported at run time."""
    block = next(each for each in ast.parse(Path(ovlpt.__file__).read_text()).body if isinstance(each, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    ours = [each for each in block.body if each.module.startswith("ovlpt")]
    found = {each.names[0].asname: f"{each.module}.{each.names[0].name}" for each in ours}
    assert found == {
        **{name: f"{home}.{name}" for name, home in ovlpt._HOME.items()},
        **{name: f"ovlpt.{name}" for name in ovlpt._MODULES},
    }


def test_without_a_command_there_is_help(capsys):
    assert cli.main([]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in cli.COMMANDS)


def test_the_versions(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"ovlpt {VERSION}, OpenVINO 202")


def test_the_log(tmp_path, capsys):
    command = ["transform", str(data.digits()), "-o", str(tmp_path / "out.xml")]
    assert cli.main([*command, "-v"]) == 0
    steps = capsys.readouterr().err.splitlines()
    assert len(steps) == 1
    assert "transformed" in steps[0]
    assert cli.main([*command, "-vv"]) == 0
    assert len(capsys.readouterr().err.splitlines()) > 10
    assert cli.main(command) == 0
    assert capsys.readouterr().err == ""


def test_names_of_layers_are_whole_in_80_columns(monkeypatch, capsys):
    name = "/backbone/layers.11/blocks.3/attention/self/query/MatMul/WithoutBiases"
    both = {"quantization": 12.34, "transformation": -45.6, "float precision": 78.9}
    layer = SimpleNamespace(name=name, type="ConvolutionBackpropData", local=both, cumulative=both)
    found = SimpleNamespace(layers=[layer], first="quantization", layer_samples=1, float_precision="bf16")
    monkeypatch.setenv("COLUMNS", "80")
    compare._print_layers(console(), found, 1)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    first = next(at for at, line in enumerate(lines) if "12.3" in line)
    shown = "".join(line.split()[-1] for line in lines[first:] if line.strip())
    assert name in shown

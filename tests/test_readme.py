"""What the README says is so."""

from __future__ import annotations

import re
from pathlib import Path

import openvino
import pytest

import ovlpt
from ovlpt.config_file import load_config
from ovlpt.trace import InputError
from tests.networks import encoder, one_convolution, residual, shared_zero_point
from tools.operations_table import table
from tools.quantized_operators.__main__ import markdown_table

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_table_of_operations_is_the_tables():
    assert table() in README


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_the_examples_run(code, tmp_path, monkeypatch):
    """Each example stands alone but for the model at ``path``, which the text introduces."""
    monkeypatch.chdir(tmp_path)
    from ovlpt import data

    exec(compile(code, "README.md", "exec"), {"path": str(data.digits()), "__name__": "example"})


@pytest.mark.parametrize("network", [one_convolution, residual, shared_zero_point, encoder])
def test_the_pipeline_gives_the_layers_of_compile_model(network, tmp_path):
    """What the README registers in a Manager is all that compile_model does."""
    path = tmp_path / "net.xml"
    openvino.save_model(network(), path, compress_to_fp16=False)
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "PluginLowering(" in block)
    made = {"path": str(path), "__name__": "example"}
    exec(compile(code, "README.md", "exec"), made)
    compiled = ovlpt.compile_model(path, "CPU", core=made["core"])
    ours, theirs = (
        [(layer.layer_type, layer.exec_type, layer.precision) for layer in ovlpt.execution_types(each).executed]
        for each in (compiled, made["compiled"])
    )
    assert ours == theirs
    assert any(kernel.lower().endswith("i8") for _, kernel, _ in ours)


@pytest.mark.parametrize("settings", re.findall(r"```toml\n(.*?)```", README, re.DOTALL))
def test_the_settings_load_and_run(settings, tmp_path):
    from ovlpt import cli, data

    file = tmp_path / "my.toml"
    file.write_text(settings)
    config = load_config(file)
    assert config.name == "my plugin"
    assert len(config.precision_restrictions) == 5
    assert [len(restriction.by_port) for restriction in config.quantization_restrictions] == [1, 0]
    assert set(config.callbacks) == {"AddTransformation", "ConvolutionBackpropDataTransformation"}
    assert cli.main(["explain", str(data.digits()), "--config", str(file), "--strict"]) == 0


def test_the_sentence_about_a_wrong_file(tmp_path):
    (sentence,) = re.findall(r"`(my\.toml, line 5: .*?)`", README)
    (tmp_path / "my.toml").write_text('name = "x"\n\n[precisions.MatMul]\n0 = ["u8"]\n2 = ["i8"]\n')
    with pytest.raises(InputError, match=re.escape(sentence)):
        load_config(tmp_path / "my.toml")


def test_the_table_of_quantized_operators_is_the_packages():
    """But for the figures, which are measured with all runtimes."""
    assert markdown_table({}) in re.sub(r"\d+ of [\d,]+", "not measured", README)

"""What the README says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ovlpt.config_file import load_config
from ovlpt.trace import InputError
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

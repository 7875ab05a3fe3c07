"""What the README and the documents say is so: their examples run, their tables and sentences are the package's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import data
from ovlpt.cli import COMMANDS
from ovlpt.config_file import load_config
from ovlpt.trace import InputError
from tests.canonicalize import test_dequantization_before_moves as moves
from tests.graphs import model, parameter
from tests.lowered import recurrent
from tests.networks import encoder, residual, shared_zero_point
from tools import lowering_table
from tools.operations_table import table
from tools.quantized_operators.__main__ import markdown_table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", document.read_text(), re.DOTALL)


EXAMPLES = [
    pytest.param(code, id=f"{document.relative_to(ROOT)}-{number}")
    for document in DOCUMENTS
    if document.parent.name != "recipes"  # tests/test_recipes.py
    for number, code in enumerate(blocks(document, "python"))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_examples_run(code, tmp_path, monkeypatch):
    """Each example stands alone but for the model at ``path``, which the text introduces."""
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "example", "exec"), {"path": str(data.digits()), "__name__": "example"})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_to_files(document):
    """Those to other documents and pictures; a part of a page, after #, is not looked up."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        if ":" not in target:
            assert (document.parent / target).exists(), target


def test_what_a_package_index_shows_needs_no_repository():
    text = (DOCS / "package.md").read_text()
    assert not re.findall(r"\]\(", text)
    assert "docs/package.md" in (ROOT / "pyproject.toml").read_text()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_each_command_has_its_page():
    assert {page.stem for page in (DOCS / "commands").glob("*.md")} == {"index", *COMMANDS}


def test_each_public_name_is_in_the_reference():
    named = set(
        re.findall(r"^::: (?:ovlpt\.)?(\w+)$", "".join(page.read_text() for page in (DOCS / "api").glob("*.md")), re.M)
    )
    assert set(ovlpt.__all__) <= named


def test_the_table_of_operations_is_the_tables():
    assert table() in (DOCS / "operations.md").read_text()


def test_the_table_of_lowering_rules_is_the_tables():
    assert lowering_table.table() in (DOCS / "lowering.md").read_text()


def bundled():
    return openvino.Core().read_model(data.digits())


def recurrent_layer():
    return recurrent()[0]


def moved_integers():
    """Between their quantization and a layer, as ONNX Runtime's quantizer moves them."""
    return model(
        moves.convolution(moves.restored(moves.turned(moves.stored(parameter((2, 8, 6, 6)), np.uint8, 0)), np.uint8, 0))
    )


@pytest.mark.parametrize("network", [bundled, residual, shared_zero_point, encoder, recurrent_layer, moved_integers])
def test_the_pipeline_gives_the_layers_of_compile_model(network, tmp_path):
    """What the document registers in a Manager is all that compile_model does."""
    path = tmp_path / "net.xml"
    openvino.save_model(network(), path, compress_to_fp16=False)
    (code,) = (block for block in blocks(DOCS / "compile.md", "python") if "PluginLowering(" in block)
    made = {"path": str(path), "__name__": "example"}
    exec(compile(code, "compile.md", "exec"), made)
    compiled = ovlpt.compile_model(path, "CPU", core=made["core"])
    ours, theirs = (
        [(layer.layer_type, layer.exec_type, layer.precision) for layer in ovlpt.execution_types(each).executed]
        for each in (compiled, made["compiled"])
    )
    assert ours == theirs
    assert any(kernel.lower().endswith("i8") for _, kernel, _ in ours)


def test_the_settings_load_and_run(tmp_path):
    from ovlpt import cli

    file = tmp_path / "my.toml"
    (settings,) = blocks(DOCS / "configuration.md", "toml")
    file.write_text(settings)
    config = load_config(file)
    assert config.name == "my plugin"
    assert len(config.precision_restrictions) == 5
    assert [len(restriction.by_port) for restriction in config.quantization_restrictions] == [1, 0]
    assert set(config.callbacks) == {"AddTransformation", "ConvolutionBackpropDataTransformation"}
    assert cli.main(["explain", str(data.digits()), "--config", str(file), "--strict"]) == 0


def test_the_sentence_about_a_wrong_file(tmp_path):
    (sentence,) = re.findall(r"`(my\.toml, line 5: .*?)`", (DOCS / "configuration.md").read_text())
    (tmp_path / "my.toml").write_text('name = "x"\n\n[precisions.MatMul]\n0 = ["u8"]\n2 = ["i8"]\n')
    with pytest.raises(InputError, match=re.escape(sentence)):
        load_config(tmp_path / "my.toml")


def test_the_table_of_quantized_operators_is_the_packages():
    """But for the figures, which are measured with all runtimes."""
    document = (DOCS / "fake_quantize.md").read_text()
    assert markdown_table({}) in re.sub(r"\d+ of [\d,]+", "not measured", document)

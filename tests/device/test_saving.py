"""A saved model is whole or not there, and what was there before it stays until then."""

from __future__ import annotations

import resource
import shutil

import numpy as np
import openvino
import pytest

import ovlpt
from ovlpt import cli, data
from ovlpt.trace import InputError
from tests.conftest import EXACT


@pytest.fixture
def network(tmp_path):
    """A copy of the bundled network, and its bytes."""
    path = tmp_path / "network.xml"
    shutil.copy(data.digits(), path)
    shutil.copy(data.digits().with_suffix(".bin"), path.with_suffix(".bin"))
    return path, contents(tmp_path)


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(make, network):
    """An output that is the network: by its own name, through links, and by its weights."""
    link = network.parent / ("link.xml" if make != "weights" else "other.xml")
    if make == "same":
        return network
    if make == "symbolic link":
        link.symlink_to(network)
    elif make == "hard link":
        link.hardlink_to(network)
    elif make == "folder":
        (network.parent / "folder").symlink_to(network.parent, target_is_directory=True)
        return network.parent / "folder" / network.name
    else:
        link.with_suffix(".bin").symlink_to(network.with_suffix(".bin"))
    return link


@pytest.mark.parametrize("make", ["same", "symbolic link", "hard link", "folder", "weights"])
def test_an_output_that_is_the_input_is_refused(network, tmp_path, capsys, make):
    path, before = network
    output = names(make, path)
    assert cli.main(["transform", str(path), "-o", str(output)]) == 2
    assert "is a file of the input; give another output" in capsys.readouterr().err
    assert {name: bytes_ for name, bytes_ in contents(tmp_path).items() if name in before} == before


def test_external_weights_of_an_onnx_file_are_its_input(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 64])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 64])
    weights = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "weights")
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "weights"], ["y"])], "g", [x], [y], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, tmp_path / "net.onnx", save_as_external_data=True, location="net.bin", size_threshold=0)
    before = contents(tmp_path)
    assert cli.main(["transform", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "net.xml")]) == 2
    assert 'net.bin" is a file of the input' in capsys.readouterr().err
    assert contents(tmp_path) == before
    (tmp_path / "other.bin").write_bytes(b"")  # a file that the model does not name
    assert cli.main(["transform", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "other.xml")]) == 2
    assert "is not quantized" in capsys.readouterr().err


def test_a_model_whose_weights_are_mapped_is_saved_over_itself(core, network, tmp_path):
    path, _ = network
    image = data.heldout()[0][:1]
    model = ovlpt.transform(path, core=core)
    expected = core.compile_model(model, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})([image])[0]
    ovlpt.save_model(model, path)
    saved = core.compile_model(str(path), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    assert np.array_equal(saved([image])[0], expected)
    assert {each.name for each in tmp_path.iterdir()} == {"network.xml", "network.bin"}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_full_disk_leaves_what_was_there(core, network, tmp_path, share):
    """Files are cut off at a size: 2024.6 says nothing of it."""
    path, before = network
    model = ovlpt.transform(path, core=core)
    ovlpt.save_model(model, tmp_path / "whole.xml")
    before |= contents(tmp_path)
    size = max((tmp_path / name).stat().st_size for name in ("whole.xml", "whole.bin"))
    own = resource.getrlimit(resource.RLIMIT_FSIZE)
    for output in ("whole.xml", "new.xml"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size * share), own[1]))
        try:
            with pytest.raises(InputError, match=f'cannot write ".*{output}": File too large$'):
                ovlpt.save_model(model, tmp_path / output)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, own)
        assert contents(tmp_path) == before


def test_a_folder_that_is_not_there(core, tmp_path, capsys):
    model = ovlpt.transform(data.digits(), core=core)
    with pytest.raises(InputError, match="there is no such folder"):
        ovlpt.save_model(model, tmp_path / "none" / "out.xml")
    with pytest.raises(InputError, match=r"give the path of an \.xml"):
        ovlpt.save_model(model, tmp_path / "out.onnx")
    (tmp_path / "folder.xml").mkdir()
    with pytest.raises(InputError, match=r'cannot write ".*folder\.xml": '):
        ovlpt.save_model(model, tmp_path / "folder.xml")
    assert not contents(tmp_path)
    assert cli.main(["transform", str(data.digits()), "-o", str(tmp_path / "none" / "out.xml")]) == 2
    assert "there is no such folder" in capsys.readouterr().err


def test_constants_are_saved_as_they_are(core, tmp_path):
    model = ovlpt.transform(data.digits(), core=core)
    ovlpt.save_model(model, tmp_path / "out.xml")
    openvino.save_model(model, tmp_path / "plain.xml", compress_to_fp16=False)
    assert (tmp_path / "out.bin").read_bytes() == (tmp_path / "plain.bin").read_bytes()

"""Who can load a saved model: ``python -m tools.loaders MODEL.xml|DIR …`` prints the table of docs/saved_models.md.

Each quantized network is transformed and saved, and the file is loaded in each way there is, in f32. A cell says "same"
where as many layers with weights run in int8 as `ovlpt.compile_model` has, and the numbers are the same. The C program
tells numbers only, benchmark_app layers only. Exit status 1 where a cell is not "same".
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import openvino
from openvino.preprocess import PrePostProcessor

import ovlpt
from ovlpt.device.layer_types import WEIGHTED_LAYERS
from ovlpt.device.properties import F32, UNCACHED
from ovlpt.inspect.inputs import random_inputs
from ovlpt.openvino_api import CompiledModel, ConstantFolding, Core, Manager, Model, Type
from tools.ir import networks

EXACT = {**F32, **UNCACHED}
TOLERANCE = 1e-5  # of the largest number of an output: what another order of sums makes


@dataclass(frozen=True)
class Saved:
    """A transformed model in a file, what is put into it, and what `ovlpt.compile_model` makes of it."""

    path: Path
    inputs: list[np.ndarray]
    layers: int  # with weights, in int8
    outputs: list[np.ndarray]


@dataclass(frozen=True)
class Loaded:
    """What a loader makes of it; None: it does not tell."""

    layers: int | None = None
    outputs: Sequence[np.ndarray] = ()


Loader = Callable[[Saved, Path], Loaded]  # the second is a folder to write into


def save(core: Core, path: Path, folder: Path) -> Saved:
    """The network transformed, saved in ``folder``, and run: integers, so that a picture in u8 holds them, too."""
    target = folder / "saved.xml"
    ovlpt.save_model(ovlpt.transform(path, core=core), target)
    compiled, generator = ovlpt.compile_model(path, "CPU", EXACT, core=core), np.random.default_rng(0)
    shapes = [each.shape for each in random_inputs(core.read_model(path))]
    inputs = [
        generator.integers(0, 4 if port.element_type.is_real() else 2, shape).astype(port.element_type.to_dtype())
        for port, shape in zip(compiled.inputs, shapes, strict=True)
    ]
    loaded = _run(compiled, inputs)
    return Saved(target, inputs, loaded.layers or 0, list(loaded.outputs))


def int8_layers(compiled: CompiledModel) -> int:
    """Of those with weights; what lies between them depends on the types of floats."""
    return sum(
        layer.is_int8 for layer in ovlpt.execution_types(compiled).executed if layer.layer_type in WEIGHTED_LAYERS
    )


def _run(compiled: CompiledModel, inputs: Sequence[np.ndarray]) -> Loaded:
    given = [each.astype(port.element_type.to_dtype()) for each, port in zip(inputs, compiled.inputs, strict=True)]
    return Loaded(int8_layers(compiled), [np.array(value) for value in compiled(given).values()])


def from_path(saved: Saved, folder: Path) -> Loaded:
    return _run(Core().compile_model(str(saved.path), "CPU", EXACT), saved.inputs)


def _read(path: Path) -> tuple[Core, Model]:
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # its plugin brings operations
    return core, core.read_model(path)


def on_device(saved: Saved, folder: Path, device: str) -> Loaded:
    core, model = _read(saved.path)
    return _run(core.compile_model(model, device, EXACT), saved.inputs)


def folded(saved: Saved, folder: Path) -> Loaded:
    """After what a tool may run by hand."""
    core, model = _read(saved.path)
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    return _run(core.compile_model(model, "CPU", EXACT), saved.inputs)


def cached(saved: Saved, folder: Path) -> Loaded:
    """From the plugin's own cache, which the first call fills; it keeps no model with quantized recurrent layers."""
    properties = {**F32, "CACHE_DIR": str(folder)}
    for _ in range(2):
        compiled = Core().compile_model(str(saved.path), "CPU", properties)
    return _run(compiled, saved.inputs)


def images(model: Model) -> Model:
    """As a tool that reads pictures sets inputs: a PrePostProcessor takes u8."""
    processor = PrePostProcessor(model)
    for index, port in enumerate(model.inputs):
        if len(port.partial_shape) > 1:
            processor.input(index).tensor().set_element_type(Type.u8)
    return processor.build()


def of_images(saved: Saved, folder: Path) -> Loaded:
    core, model = _read(saved.path)
    return _run(core.compile_model(images(model), "CPU", EXACT), saved.inputs)


def benchmark_app(saved: Saved, folder: Path) -> Loaded:
    """It puts a PrePostProcessor before the model, sets no property of the plugin's, and keeps the outputs to itself."""
    code = "from openvino.tools.benchmark.main import main; main()"
    options = ["-m", saved.path, "-d", "CPU", "-niter", "2", "-hint", "none", "-infer_precision", "f32"]
    ports = _read(saved.path)[1].inputs
    if any(port.partial_shape.is_dynamic for port in ports):
        shapes = (f"{port.any_name}{list(each.shape)}" for port, each in zip(ports, saved.inputs, strict=True))
        options += ["-data_shape", ",".join(shapes).replace(" ", "")]
    _call([sys.executable, "-c", code, *options, "-exec_graph_path", "graph.xml"], folder)
    layers = ElementTree.parse(folder / "graph.xml").findall("layers/layer")
    kernels = [each.find("data") for each in layers if each.get("type") in WEIGHTED_LAYERS]
    return Loaded(sum("_i8" in data.get("primitiveType", "").lower() for data in kernels if data is not None))


PROGRAM = """
#include <stdio.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
typedef struct { int64_t rank; int64_t* sizes; } shape_t;
typedef struct ov_core core_t; typedef struct ov_compiled_model model_t;
typedef struct ov_infer_request request_t; typedef struct ov_tensor tensor_t;
int ov_core_create(core_t**);
int ov_core_compile_model_from_file(const core_t*, const char*, const char*, size_t, model_t**, ...);
int ov_compiled_model_create_infer_request(const model_t*, request_t**);
int ov_infer_request_get_input_tensor_by_index(const request_t*, size_t, tensor_t**);
int ov_infer_request_get_output_tensor_by_index(const request_t*, size_t, tensor_t**);
int ov_infer_request_infer(request_t*);
int ov_tensor_set_shape(tensor_t*, shape_t);
int ov_tensor_data(const tensor_t*, void**);
int ov_tensor_get_byte_size(const tensor_t*, size_t*);
#define CALL(call) do { int status = call; if (status) { fprintf(stderr, "%s: %d", #call, status); return 1; } } while (0)
int main(int count, char** names) {
    core_t* core; model_t* model; request_t* request; tensor_t* tensor; void* data; size_t size;
    CALL(ov_core_create(&core));
    CALL(ov_core_compile_model_from_file(core, names[1], "CPU", 2, &model, "INFERENCE_PRECISION_HINT", "f32"));
    CALL(ov_compiled_model_create_infer_request(model, &request));
    for (int at = 3; at < count; at += 2) {
        int64_t sizes[16], rank = 0;
        for (char* text = names[at + 1]; *text && rank < 16; text += *text == ',') sizes[rank++] = strtoll(text, &text, 10);
        CALL(ov_infer_request_get_input_tensor_by_index(request, (at - 3) / 2, &tensor));
        CALL(ov_tensor_set_shape(tensor, (shape_t){rank, sizes}));
        CALL(ov_tensor_data(tensor, &data));
        CALL(ov_tensor_get_byte_size(tensor, &size));
        FILE* file = fopen(names[at], "rb");
        if (!file || fread(data, 1, size, file) != size) return 2;
    }
    CALL(ov_infer_request_infer(request));
    CALL(ov_infer_request_get_output_tensor_by_index(request, 0, &tensor));
    CALL(ov_tensor_data(tensor, &data));
    CALL(ov_tensor_get_byte_size(tensor, &size));
    FILE* file = fopen(names[2], "wb");
    return fwrite(data, 1, size, file) != size || fclose(file);
}
"""


def c_program(saved: Saved, folder: Path) -> Loaded:
    """The C library of the wheel, with default properties but for the floats' type; the first output."""
    libraries = Path(openvino.__file__).parent / "libs"
    (folder / "load.c").write_text(PROGRAM)
    library = next(libraries.glob("libopenvino_c.so*"))
    places = [f"-Wl,-rpath,{libraries}", f"-Wl,-rpath-link,{libraries}"]
    _call([shutil.which("cc") or "cc", "load.c", library, *places, "-o", "load"], folder)
    arguments = []
    for index, each in enumerate(saved.inputs):
        each.tofile(folder / f"{index}.bin")
        arguments += [f"{index}.bin", ",".join(map(str, each.shape))]
    _call(["./load", saved.path, "out.bin", *arguments], folder)
    first = saved.outputs[0]
    return Loaded(outputs=[np.fromfile(folder / "out.bin", first.dtype).reshape(first.shape)])


def server(saved: Saved, folder: Path) -> Loaded:
    """As OpenVINO Model Server does with its configuration: a numbered version, ``plugin_config`` as properties.

    Like it, this lists the devices first, and hands properties on as the text of the file has them.
    """
    version = folder / "network" / "1"
    version.mkdir(parents=True)
    for file in (saved.path, saved.path.with_suffix(".bin")):
        shutil.copy(file, version)
    plugin = {"PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": "2", "ENABLE_CPU_PINNING": "NO", **F32}
    own = {"name": "network", "base_path": str(version.parent), "target_device": "CPU", "plugin_config": plugin}
    (folder / "config.json").write_text(json.dumps({"model_config_list": [{"config": own}]}))

    read = json.loads((folder / "config.json").read_text())["model_config_list"][0]["config"]
    core, versions = Core(), sorted(Path(read["base_path"]).iterdir(), key=lambda path: int(path.name))
    assert core.available_devices
    model = core.read_model(next(versions[-1].glob("*.xml")))
    return _run(core.compile_model(model, read["target_device"], read["plugin_config"]), saved.inputs)


def _call(command: Sequence[object], folder: Path) -> str:
    """Raises `RuntimeError` with what the program wrote."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr)[-2000:])
    return done.stdout


LOADERS: Mapping[str, Loader] = {
    "`core.compile_model(path)`": from_path,
    "`read_model`, `compile_model`": partial(on_device, device="CPU"),
    "PrePostProcessor, u8": of_images,
    "`ConstantFolding`, `compile_model`": folded,
    "`CACHE_DIR`, the second time": cached,
    "`benchmark_app`": benchmark_app,
    "AUTO": partial(on_device, device="AUTO:CPU"),
    "HETERO": partial(on_device, device="HETERO:CPU"),
    "MULTI": partial(on_device, device="MULTI:CPU"),
    "BATCH": partial(on_device, device="BATCH:CPU(1)"),
    "C program": c_program,
    "server, `plugin_config`": server,
}


def verdict(saved: Saved, loaded: Loaded) -> str:
    """What the table says: "same", or what differs."""
    if loaded.layers is not None and loaded.layers != saved.layers:
        return f"{loaded.layers} of {saved.layers} layers"
    for found, expected in zip(loaded.outputs, saved.outputs, strict=False):
        off = np.abs(found.astype(np.float64) - expected).max() / max(float(np.abs(expected).max()), 1e-30)
        if not off <= TOLERANCE:
            return f"numbers off by {off:.1g}"
    return "same"


def row(saved: Saved, loaders: Mapping[str, Loader]) -> dict[str, str]:
    """The verdict of each loader."""
    found = {}
    for name, loader in loaders.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[name] = verdict(saved, loader(saved, Path(folder)))
            except (RuntimeError, OSError) as error:
                print(f"{saved.path}, {name}: {error}", file=sys.stderr)
                found[name] = "fails"
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.loaders", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.xml|DIR")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    core, rows = Core(), {}
    for path in networks(options.models):
        with tempfile.TemporaryDirectory() as folder:
            saved = save(core, path, Path(folder))
            rows[f"{path.stem} ({saved.layers})"] = row(saved, LOADERS)
    print("| loader |", " | ".join(rows), "|")
    print("| ---" * (len(rows) + 1), "|")
    for name in LOADERS:
        print(f"| {name} |", " | ".join(found[name] for found in rows.values()), "|")
    return int(any(cell != "same" for found in rows.values() for cell in found.values()))


if __name__ == "__main__":
    sys.exit(main())

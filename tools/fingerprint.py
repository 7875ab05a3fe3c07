"""What the transformation makes of many networks, as text: ``python -m tools.fingerprint FOLDER [--against OTHER]``.

A change that is meant to leave the results as they are leaves the text as it is. For each network there is one file: the
trace of the pass, and the nodes after it and after the lowering, with types, attributes, hashes of the constants and
names, under the settings of CPUs and GPUs and as the native library does it. The networks are those of the tests, random
graphs and the bundled digits, to which ``--zoo`` adds a folder of models. Nothing is compiled but what random graphs need
to be built. With ``--against`` the status is 1 where a text differs from that of another folder, and differences are shown.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ovlpt import InputError, PluginConfig, Trace, plugin_config, transform
from ovlpt.data import digits
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import precision_of, values_of
from ovlpt.openvino_api import Constant, Core, Model, Node, Output
from tests import graphs, networks, restricted_networks
from tests.gpu_networks import NETWORKS as GPU_NETWORKS
from tests.test_operations_on_graphs import quantized, variants
from tools.fuzz.graphs import NoFloatRun, build, random_graph
from tools.fuzz.operations import ADDED, KINDS
from tools.ir import networks as models_in

LINES = 40  # of differences are shown for a network


@dataclass(frozen=True)
class Setting:
    """One way to transform a network."""

    config: PluginConfig
    device: str
    native_only: bool = False
    precision: str = "f32"
    serializable: bool = True
    lowered: bool = True


SETTINGS = {
    "AVX2": Setting(plugin_config.cpu.config(slow_mat_mul=True), "CPU"),
    "VNNI": Setting(plugin_config.cpu.config(), "CPU", serializable=False),
    "AMX": Setting(plugin_config.cpu.config(signed_activations=True), "CPU"),
    "CPU native_only": Setting(plugin_config.cpu.config(), "CPU", native_only=True),
    "GPU f32": Setting(plugin_config.gpu.config(), "GPU"),
    "GPU f16": Setting(plugin_config.gpu.config(), "GPU", precision="f16"),
    "GPU systolic f16": Setting(plugin_config.gpu.config(systolic=True), "GPU", precision="f16"),
    "GPU native_only": Setting(plugin_config.gpu.config(), "GPU", native_only=True),
    "ARM": Setting(plugin_config.arm.config(), "CPU", lowered=False),
    "ARM native_only": Setting(plugin_config.arm.config(), "CPU", native_only=True, lowered=False),
}


def models(random: int, zoo: Path | None, core: Core) -> Iterator[tuple[str, Callable[[], Model]]]:
    """Each network's name, and what builds it."""
    yield "digits", lambda: core.read_model(digits())
    for name in ("one_convolution", "residual", "shared_zero_point", "encoder"):
        yield f"networks.{name}", getattr(networks, name)
    for family, table in (("gpu", GPU_NETWORKS), ("restricted", restricted_networks.NETWORKS)):
        for name, network in table.items():
            yield f"{family}.{name}", network
    for case in graphs.CASES:
        for dynamic in (False, True):
            ways = variants(case, dynamic)
            yield f"case.{case.name}{'.open' * dynamic}", lambda c=case, w=ways, d=dynamic: quantized(c, w, d)
    for seed in range(random):
        yield f"random.{seed}", lambda s=seed: build(random_graph(s, KINDS | ADDED if s % 2 else KINDS))
    for path in models_in([zoo]) if zoo else ():
        yield f"zoo.{path.relative_to(zoo)}", lambda p=path: core.read_model(p)


def describe(model: Model, core: Core) -> str:
    """What each setting makes of the model."""
    parts: dict[str, list[str]] = {}  # equal texts stand once, after the names of all their settings
    for name, setting in SETTINGS.items():
        for stage, text in zip(("pass", "lowered"), _made(model, setting, core), strict=False):
            parts.setdefault(text, []).append(f"{name}, {stage}")
    return "\n".join(f"== {'; '.join(names)}\n{text}" for text, names in parts.items())


def _made(model: Model, setting: Setting, core: Core) -> Iterator[str]:
    """The texts of the stages."""
    trace, how = Trace(), {"serializable": setting.serializable, "precision": setting.precision}
    try:
        made = transform(model, setting.device, setting.config, False, setting.native_only, core, trace, **how)
        yield "\n".join([*map(_event, trace), *_nodes(made)])
        if setting.lowered:
            yield "\n".join(_nodes(transform(made, setting.device, setting.config, core=core, **how)))
    except (InputError, RuntimeError) as error:
        yield _without_numbers(f"{type(error).__name__}: {error}")


def _event(event) -> str:
    why = f": {event.reason.code}: {event.reason.text}" if event.reason else ""
    return _without_numbers(f"! {event.node} {event.outcome} by {event.transformation}{why}")


def _without_numbers(text: str) -> str:
    """OpenVINO numbers the nodes that have no name, of all models of a process."""
    return re.sub(r"\b([A-Z][A-Za-z0-9]+)_\d+", r"\1_N", text)


def _nodes(model: Model) -> Iterator[str]:
    numbers: dict[int, int] = {}
    for number, node in enumerate(all_nodes(model)):
        numbers[node.get_instance_id()] = number
        outputs = ", ".join(map(_output, node.outputs()))
        inputs = ", ".join(
            f"{numbers.get(value.get_node().get_instance_id())}.{value.get_index()}" for value in node.input_values()
        )
        yield f"{number} {_without_numbers(node.get_friendly_name())}: {outputs} = {_kind(node)}({inputs}) {_about(node)}"


def _kind(node: Node) -> str:
    about = node.get_type_info()
    return f"{about.version_id}.{about.name}"


def _output(output: Output) -> str:
    names = sorted(map(_without_numbers, output.get_names()))
    return f"{precision_of(output)}{output.get_partial_shape()}{names or ''}"


def _about(node: Node) -> str:
    info = sorted(map(str, node.get_rt_info()))
    if isinstance(node, Constant):
        values = np.ascontiguousarray(values_of(node))
        return f"{hashlib.sha256(values.tobytes()).hexdigest()[:16]} {info or ''}"
    attributes = {name: value for name, value in sorted(node.get_attributes().items()) if "body" not in name}
    return f"{attributes} {info or ''}"


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name) + ".txt"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fingerprint", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the texts are written")
    parser.add_argument("--against", type=Path, help="a folder that was written before")
    parser.add_argument("--random", type=int, default=60, help="how many random graphs (default 60)")
    parser.add_argument("--zoo", type=Path, help="a folder of models, those of python -m tools.zoo for instance")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    core, differing, count = Core(), 0, 0
    core.get_property("CPU", "FULL_DEVICE_NAME")  # its plugin brings operations
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, network in models(options.random, options.zoo, core):
        try:
            text, count = describe(network(), core), count + 1
        except NoFloatRun:  # the plugin cannot run the random graph, to which intervals are fitted
            continue
        (options.folder / _file_name(name)).write_text(text)
        if options.against:
            before = options.against / _file_name(name)
            changes = _changes(before.read_text() if before.exists() else "", text)
            differing += bool(changes)
            if changes:
                print(name, *changes[:LINES], sep="\n", flush=True)
    print(f"{count} networks, {len(SETTINGS)} settings" + (f", {differing} differ" if options.against else ""))
    return 1 if differing else 0


def _changes(before: str, after: str) -> list[str]:
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))


if __name__ == "__main__":
    sys.exit(main())

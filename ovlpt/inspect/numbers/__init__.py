"""Are the numbers right: outputs of ovlpt and of the plugin's own LPT against the FakeQuantize simulation.

Every network is run on the same inputs in f32 with each FakeQuantize computed as such: the simulation. With r its
output and v that of the network that is examined,

    SQNR = 10 log10( Σ r² / Σ (r - v)² ) dB,   over all elements of an output and all samples of one size

ovlpt fails where it is more than `BELOW` dB below the plugin's own LPT and below `ENOUGH` dB. A stricter rule is not
possible: a value at a tie falls to another level, and deep networks amplify that, so much that of two networks equally
near to the simulation either may by chance be 3 dB farther on a few samples. What fails on generated samples is
therefore judged by many more, those included: the mean of chance goes to 0, that of a fault stays. So does that of a tie
that every sample meets, as at the least value of a HSwish: nothing fails that is as near, to `BELOW` dB, as the simulation
itself is where all that it quantizes differs by two steps of f32 (`steadiness`). Where the plugin's own LPT throws on the
model, the same transformations done by ovlpt stand in for it.

**What is far as the plugin's own LPT is.** That is no excuse below `ENOUGH` - `CHANCE` dB, unless the simulation with the
same floats moves as far, to `CHANCE` dB, where all that it quantizes differs by half a step of bf16, as in a deep network;
nor is it one for numbers that are not finite, but in f16, which overflows. Where kernels cut sums to 16 bits, as on a CPU
without VNNI, an error of a third of the signal (`POOR`) is needed: stock and ovlpt share theirs.

**What is run.** Both forms of a transformed model: the one that `compile_model` compiles as it stands, and the one that
`transform` saves, from its file. Each with one thread and with more, on a CPU, where the plugin fuses other things, and
in the device's default precision as well where that is not f32. Dynamic sizes are run at several sizes.

**What has no SQNR.** An element that is not a finite number in the simulation has to be the same; where only the network
that is examined has one, or an output has another shape, it is wrong. Integers (the index of the largest value) have no
distance: where they differ, the numbers that they are made of are compared, by further outputs. So it is with outputs
whose size depends on data.

**Which layer.** `first_wrong_layer` reads the network after each FakeQuantize, as `compare` does, and names the first
layer after which the same rule fails. What goes wrong only while it is not read is looked for in networks that end
after fewer and fewer layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device import compile_quantized, this_cpu
from ovlpt.device.compile import inference_precision
from ovlpt.device.properties import UNCACHED
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import precision_of
from ovlpt.graph.stamp import is_transformed
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.numbers.cases import cases_of
from ovlpt.inspect.numbers.comparison import compare_numbers
from ovlpt.inspect.numbers.distance import Numbers
from ovlpt.inspect.numbers.runs import Compile
from ovlpt.inspect.numbers.variants import COMPILED, Variant, Variants, simulation_with
from ovlpt.openvino_api import CompiledModel, Core, Model
from ovlpt.own_transformations import knows_own_operations

UNKNOWN = "numbers are not compared"


@knows_own_operations
def numbers(
    source: Model,
    device: str,
    core: Core,
    config: PluginConfig | None = None,
    inputs: str | Path | Sequence[np.ndarray] | None = None,
    properties: Mapping[str, object] | None = None,
    progress: Callable[[float], object] = lambda part: None,
) -> Numbers:
    """Run ``source`` in every form and setting, and compare.

    ``inputs``: a file or arrays (see `load_samples`); generated without. ``properties``: of both sides' compilation.
    Raises `InputError` for unusable inputs, and where none can be generated. A model that has no numbers to compare has
    notes that say why.
    """
    if why := _without_numbers(source):
        return Numbers((), "", (f"{UNKNOWN}: {why}",), unknown=is_transformed(source))
    cases = cases_of(source, inputs)
    with TemporaryDirectory() as folder:
        ways = Variants(device, core, config, properties or {}, Path(folder))
        return compare_numbers(source, ways, simulator(device, core), cases, progress)


def _without_numbers(source: Model) -> str:
    """Why a model has no numbers to compare, "" where it has."""
    if is_transformed(source):
        return "the model is transformed already, and has no simulation; give the quantized model"
    if not any(node.get_type_name() == "FakeQuantize" for node in all_nodes(source)):
        return "it has no FakeQuantize, and passes unchanged"
    if any(precision_of(port) == "string" for port in source.outputs):
        return "an output is text"
    return ""


@knows_own_operations
def numbers_of(
    compiled: CompiledModel,
    source: Model,
    device: str,
    core: Core,
    config: PluginConfig | None,
    native_only: bool,
    inputs: Sequence[np.ndarray],
    properties: Mapping[str, object] | None,
) -> Numbers:
    """The same of what `compile_quantized` made of ``source`` with these settings, as it stands."""
    properties = {**(properties or {}), **UNCACHED}

    def run(model: Model) -> CompiledModel:
        if model is source:
            return compiled
        return compile_quantized(model, device, properties, config, native_only, core)

    def stock(model: Model) -> CompiledModel:
        return core.compile_model(model, device, properties)

    def native(model: Model) -> CompiledModel:
        return compile_quantized(model, device, properties, config, True, core)

    physical = plugin_config.physical_devices(core, device)[0]
    floats = inference_precision(core, physical, properties)
    simulation = simulation_with(properties, physical, core)
    saturates = this_cpu.saturates(core, physical)
    variant = Variant(COMPILED, "as compiled", run, stock, native, floats, simulation, saturates)
    return compare_numbers(source, [variant], simulator(device, core), cases_of(source, inputs))


def simulator(device: str, core: Core) -> Compile:
    """Compiles the simulation of a model."""
    physical = plugin_config.physical_devices(core, device)[0]
    return lambda model: simulate(model, core, physical)

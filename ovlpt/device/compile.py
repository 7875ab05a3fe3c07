"""From a quantized model to a compiled one, with the plugin's own LPT off."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

from ovlpt import plugin_config
from ovlpt.config import PluginConfig
from ovlpt.device.execution_types import last_line
from ovlpt.device.lowering import PluginLowering, has_quantized_recurrence
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import precision_of
from ovlpt.low_precision import MARKER, LowPrecision
from ovlpt.openvino_api import CompiledModel, Core, Manager, Model
from ovlpt.precisions import INT4, INT8
from ovlpt.prerequisites.common_optimizations import CommonOptimizations
from ovlpt.trace import InputError, Trace

LPT_OFF = {"CPU": {"LP_TRANSFORMS_MODE": "NO"}, "GPU": {"LP_TRANSFORMS_MODE": False}}


def lpt_properties(model: Model, device: str) -> dict[str, object]:
    """The compile property for a transformed model: the plugin's own LPT is off.

    The one exception are quantized recurrent layers on CPU: the plugin forms them only while its LPT is on, which finds
    little else to do in a model that has been transformed.
    """
    if device.split(".")[0] == "CPU" and has_quantized_recurrence(model):
        return {"LP_TRANSFORMS_MODE": "YES"}
    return LPT_OFF[device.split(".")[0]]


def read_model(model: Model | str | Path, core: Core) -> Model:
    """The model itself, or what a path holds. Raises `InputError` for a file that is missing or unreadable."""
    if not isinstance(model, (str, Path)):
        return model
    path = Path(model)
    if not path.exists():
        raise InputError(
            f'no file "{path}"; give the path of an OpenVINO IR (.xml) or another model that OpenVINO reads'
        )
    core.get_property("CPU", "FULL_DEVICE_NAME")  # a transformed model holds operations that the CPU plugin brings
    try:
        return core.read_model(str(path))
    except RuntimeError as error:
        raise InputError(f'OpenVINO cannot read "{path}": {last_line(error)}') from error


def transform(
    model: Model | str | Path,
    device: str = "CPU",
    config: PluginConfig | None = None,
    lowered: bool = True,
    native_only: bool = False,
    core: Core | None = None,
    trace: Trace | None = None,
    serializable: bool = True,
) -> Model:
    """A new model, transformed for ``device``; the caller's stays as it is.

    ``config``: settings other than the device's own. ``lowered=False``: the pass's own result, without the changes that
    let a plugin take it. ``serializable=False``: the result is compiled as it stands and never saved, which spares each
    layer a post-operation. A model with compressed weights only passes unchanged, with a warning. Raises `InputError`
    for
    an unusable model or device, and for a model without quantization.
    """
    lowering = {"serializable": serializable} if lowered else None
    return _transform(model, device, config, lowering, native_only, core or Core(), trace)


def _transform(
    model: Model | str | Path,
    device: str,
    config: PluginConfig | None,
    lowering: dict[str, bool] | None,
    native_only: bool,
    core: Core,
    trace: Trace | None,
) -> Model:
    """`transform` with settings for the lowering; None: not lowered."""
    config = config or plugin_config.for_device(core, device)
    source = read_model(model, core)
    work = source.clone()
    if work.has_rt_info([MARKER, "transformed"]):
        if lowering is not None:
            PluginLowering(device, **lowering).run_on_model(work)
        return work
    label = f'"{model}"' if isinstance(model, (str, Path)) else f'the model "{source.get_friendly_name()}"'
    quantization = _quantization(source)
    if quantization == "none":
        raise InputError(f"{label} is not quantized: it has no FakeQuantize; quantize it first, with NNCF for instance")
    if quantization == "weights":
        warnings.warn(
            f"{label} has compressed weights only and float activations: it passes unchanged, LPT has nothing to do",
            stacklevel=3,
        )
        return work
    manager = Manager()
    manager.register_pass(CommonOptimizations())
    manager.register_pass(LowPrecision.from_config(config, native_only, trace))
    if lowering is not None:
        manager.register_pass(PluginLowering(device, **lowering))
    manager.run_passes(work)
    return work


def _quantization(model: Model) -> str:
    """ "activations", "weights" (compressed weights and float activations), or "none"."""
    nodes = list(all_nodes(model))
    kinds = {node.get_type_name() for node in nodes}
    if "FakeQuantize" in kinds:
        return "activations"
    compressed = any(
        node.get_type_name() == "Constant" and precision_of(node.output(0)) in (*INT8, *INT4, "nf4") for node in nodes
    )
    return "weights" if compressed and "Convert" in kinds else "none"


def compile_model(
    model: Model | str | Path,
    device: str = "CPU",
    properties: Mapping[str, object] | None = None,
    config: PluginConfig | None = None,
    native_only: bool = False,
    core: Core | None = None,
    trace: Trace | None = None,
) -> CompiledModel:
    """Transform ``model`` and compile it with the plugin's own LPT off (see `lpt_properties` for the one exception).

    The caller's model is not changed.
    ``properties``: more properties for ``Core.compile_model``. Raises as `transform`.
    """
    core = core or Core()
    lowering = {"lpt_on": True, "serializable": False}  # on where the model needs it: the property follows the model
    transformed = _transform(model, device, config, lowering, native_only, core, trace)
    return core.compile_model(transformed, device, {**(properties or {}), **lpt_properties(transformed, device)})

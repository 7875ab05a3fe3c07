"""`ovlpt.compile_model`, which takes the place of ``Core.compile_model``, and `ovlpt.transform`.

To what `ovlpt.device` does they add choosing the forms of layers by measurement, and comparing numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ovlpt.config import PluginConfig, other_names
from ovlpt.device.compile import NotQuantized, compile_quantized
from ovlpt.device.compile import transform as transform_for
from ovlpt.device.loading import read_model, read_quantized, read_text
from ovlpt.errors import InputError, warn
from ovlpt.openvino_api import CompiledModel, Core, Model
from ovlpt.trace import Trace


@other_names(plugin="config", device_name="device")
def transform(
    model: Model | str | Path,
    device: str = "CPU",
    config: PluginConfig | None = None,
    lowered: bool = True,
    native_only: bool = False,
    core: Core | None = None,
    trace: Trace | None = None,
    serializable: bool = True,
    precision: str | None = None,
    tune: bool = False,
) -> Model:
    """A new model, transformed for ``device``; the caller's model is not changed.

    ``config``: settings other than the device's own; the device then need not be on this machine. ``lowered=False``: the
    result of the pass, without the changes that let a plugin take it. ``serializable=False``: the result will be compiled
    directly and never saved. ``precision``: the type in which a GPU will run what is not in low precision, "f16" or
    "f32"; by default the device's own. On a CPU, "f16" where floats will be asked for in it, before 2026.3. ``tune``: choose the forms of layers by measurement on this machine
    (`ovlpt.inspect.tune`). A model that was lowered before is returned as it is. One with compressed weights only, or
    quantized to 8-bit floats, is returned unchanged, with a warning. Raises `InputError` for an unusable model or device,
    and for a model without quantization.
    """
    core = core or Core()
    if tune:
        config = _tuned(model, device, config, {}, core)
    return transform_for(model, device, config, lowered, native_only, core, trace, serializable, precision)


def compile_model(
    model: Model | str | Path,
    device_name: str | None = "CPU",
    config: Mapping[str, object] | None = None,
    plugin: PluginConfig | None = None,
    native_only: bool = False,
    core: Core | None = None,
    trace: Trace | None = None,
    self_check: Sequence[np.ndarray] | None = None,
    cache_dir: str | Path | None = None,
    *,
    weights: bytes | None = None,
    strict: bool = False,
    tune: bool = False,
    device: str | None = None,
    properties: Mapping[str, object] | None = None,
) -> CompiledModel:
    """Transform ``model`` and compile it with the plugin's own LPT off (see `lpt_properties` for the one exception).

    The caller's model is not changed. One that `transform` has lowered is compiled as it is; so is one that is not
    quantized, with a warning, unless ``strict`` refuses it.
    ``device_name``, ``config``: as for ``Core.compile_model``, the properties of the compiled model; the default is the
    CPU. ``weights``: if given, ``model`` is the text of an IR. ``plugin``: settings of the transformation other than the
    device's own. ``device``, ``properties``: other names of the first two; a `PluginConfig` as ``config`` is ``plugin``.

    ``cache_dir``: the folder in which transformed models are kept, and what the plugin compiles from them; by default
    CACHE_DIR of ``config`` or of ``core``. A model of the same content, with the same settings, is loaded from
    there instead of being transformed, unless a ``trace`` is given or ``plugin`` holds the caller's functions.

    ``tune``: choose the forms of layers by measurement on this machine, with ``config`` (`ovlpt.inspect.tune`); takes
    seconds the first time.

    ``self_check``: one array per input, or several samples of them. The compiled model runs on them once, as do the
    plugin's own LPT and the FakeQuantize simulation; if its outputs are wrong by the rule of `ovlpt.inspect.numbers`, a
    warning names the first wrong layer, and the model compiled with the plugin's own LPT is returned, unless it is as far
    from the simulation. This takes two more compilations.

    Raises `InputError` as `transform` does, but for an unquantized model only with ``strict``; with ``self_check`` also
    for arrays that do not fit the inputs, and for a model that was transformed before, which has no simulation.
    """
    core, device = core or Core(), device or device_name or "CPU"
    if isinstance(config, PluginConfig):
        plugin, config = config, None
    if not all(isinstance(each, Mapping) for each in (config or {}, properties or {})):
        raise InputError(
            "config is a mapping of properties for OpenVINO; give settings of the transformation as plugin"
        )
    properties = {**(config or {}), **(properties or {})}
    if weights is not None:
        model = read_text(model, weights, core)
    if self_check is not None:
        model = read_quantized(model, core)
    if cache_dir is not None:
        properties.setdefault("CACHE_DIR", str(cache_dir))
    try:
        if tune:
            plugin = _tuned(model, device, plugin, properties, core)
        compiled = compile_quantized(model, device, properties, plugin, native_only, core, cache_dir, trace)
    except NotQuantized as error:
        if strict:
            raise
        warn(f"{error}; it is compiled as it is")
        return core.compile_model(read_model(model, core), device, properties)
    if self_check is None:
        return compiled

    from ovlpt.inspect.numbers import numbers_of  # here, not above: most calls need none of it

    found = numbers_of(compiled, model, device, core, plugin, native_only, self_check, properties)
    if found.ok:
        return compiled
    model = read_model(model, core)
    where = f'from the layer "{found.layer}" on' if found.layer else "in the whole network"
    instead = "" if found.is_as_stock else "; it runs with the plugin's own LPT instead"
    warn(
        f'the model "{model.get_friendly_name()}" gives wrong numbers {where}: {found.worst}{instead} ("ovlpt check" says more)'
    )
    return compiled if found.is_as_stock else core.compile_model(model, device, properties)


def _tuned(
    model: Model | str | Path, device: str, config: PluginConfig | None, properties: Mapping[str, object], core: Core
) -> PluginConfig:
    from ovlpt.inspect.tune import tune  # here, not above: most calls need none of it

    return tune(model, device, config, properties, core).config

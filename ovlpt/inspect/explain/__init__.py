"""Why is this layer not int8?"""

from __future__ import annotations

from pathlib import Path

from ovlpt import plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import transform
from ovlpt.device.compile import inference_precision, lpt_properties
from ovlpt.device.execution_types import execution_types, last_line
from ovlpt.device.loading import label_of, read_quantized
from ovlpt.device.overflow import overflow_risks
from ovlpt.device.properties import F32, LATENCY
from ovlpt.graph.bodies import with_bodies
from ovlpt.inspect.executed import Layers, layers_of_bodies
from ovlpt.inspect.explain.answers import Explanation
from ovlpt.inspect.explain.diagnosis import diagnosed
from ovlpt.inspect.explain.execution import as_executed
from ovlpt.inspect.explain.graph import GraphAnswers
from ovlpt.inspect.user_names import UserNames
from ovlpt.low_precision import as_defined
from ovlpt.openvino_api import Core, Model
from ovlpt.own_transformations import knows_own_operations
from ovlpt.trace import InputError, Trace

_PROPERTIES = {**LATENCY, **F32}


@other_names(plugin="config", device_name="device")
@knows_own_operations
def explain(
    model: Model | str | Path,
    device: str = "CPU",
    config: PluginConfig | None = None,
    native_only: bool = False,
    core: Core | None = None,
    graph_only: bool = False,
) -> Explanation:
    """Transform and compile a copy of the model, and say for each operation that is not executed in low precision why.

    ``graph_only``: nothing is compiled; the transformed graph is read instead, which is faster and needs no device, but
    does not show where the plugin has no kernel. Raises `InputError` as `transform` does, for a model that is
    transformed already, and for one that the device cannot compile.
    """
    core = core or Core()
    source = read_quantized(model, core)
    trace = Trace()
    result = transform(source, device, config, lowered=False, native_only=native_only, core=core, trace=trace)
    found = explanation(result, trace, native_only, source)
    given = source if native_only else as_defined(source.clone())
    if graph_only:
        return diagnosed(found, given)
    precision = inference_precision(core, plugin_config.physical_devices(core, device)[0], _PROPERTIES)
    ready = transform(result, device, config, core=core, serializable=False, precision=precision)
    properties = {**_PROPERTIES, **lpt_properties(ready, device)}
    try:
        layers = execution_types(core.compile_model(ready, device, properties))
    except RuntimeError as error:
        raise InputError(
            f"{device} cannot compile {label_of(model, source)}, so that nothing is executed: {last_line(error)}; "
            "with graph_only (--graph-only) the answers are of the graph"
        ) from error
    inner = layers_of_bodies(ready, layers, lambda each: core.compile_model(each, device, properties))
    return diagnosed(as_executed(found, Layers([*layers, *inner], ready)), given)


def explanation(
    transformed: Model, trace: Trace, native_only: bool = False, source: Model | None = None
) -> Explanation:
    """What the graph says of a model that was transformed with ``trace``, and not lowered.

    ``source``: the model that was given, for its names.
    """
    from ovlpt.device.hazards import hazards  # here, not above: the algebra below it takes time to import

    operations = [
        each
        for part in with_bodies(transformed)
        for each in GraphAnswers(part, trace, native_only, UserNames(source, part), part is not transformed).all()
    ]
    return Explanation(operations, hazards(transformed), overflow_risks(transformed))

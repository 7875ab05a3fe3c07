"""All fusions in their order."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from ovlpt.config import PassConfig
from ovlpt.fusions.batch_norm_branch import BatchNormBranchFusion
from ovlpt.fusions.batch_norm_elementwise import BatchNormAddFusion, BatchNormMultiplyFusion
from ovlpt.fusions.convolution_batch_norm import ConvolutionBatchNormFusion
from ovlpt.fusions.freeze_variables import FreezeVariables
from ovlpt.fusions.fusion import Fusion
from ovlpt.fusions.inverse_transposes import InverseTransposesFusion
from ovlpt.fusions.requantization import RequantizationFusion
from ovlpt.fusions.small_batch_norm import SmallBatchNormFusion
from ovlpt.fusions.split_convolution_concat import SplitConvolutionConcatFusion
from ovlpt.fusions.transpose_sinking import TransposeSinkingFusion
from ovlpt.layer_transformation import ModelTransformation
from ovlpt.openvino_api import Manager, Model, as_model
from ovlpt.trace import Event, Outcome, Trace

NORMALIZATION: tuple[type[Fusion], ...] = (
    InverseTransposesFusion,
    SmallBatchNormFusion,
    BatchNormMultiplyFusion,
    BatchNormAddFusion,
    ConvolutionBatchNormFusion,
    InverseTransposesFusion,
    TransposeSinkingFusion,
    InverseTransposesFusion,
)

FUSIONS: tuple[type[Fusion], ...] = (
    BatchNormBranchFusion,
    *NORMALIZATION,
    SplitConvolutionConcatFusion,
    *NORMALIZATION,  # once more for what follows a group convolution
    RequantizationFusion,
)


class QuantizationFusions(ModelTransformation):
    """The graph fusions that come before quantization, so that a quantizer sees convolutions with their
    biases.

    Each is exact; see the classes in `FUSIONS`. ``values`` are constants for inputs (`FreezeVariables`). What
    was refused at first and fused later counts as fused in the trace.
    """

    def __init__(
        self,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        pass_config: PassConfig | None = None,
        trace: Trace | None = None,
    ):
        super().__init__(pass_config=pass_config, trace=trace)
        self.values = dict(values or {})

    def run_on_model(self, model: Model) -> bool:
        model, events = as_model(model), Trace()  # a Manager does not take the model as a pass gets it
        changed = FreezeVariables(self.values, trace=events).run_on_model(model)
        for kind in FUSIONS:
            step = kind(pass_config=self.pass_config, trace=events)
            manager = Manager()
            manager.register_pass(step)
            try:
                manager.run_passes(model)
            except RuntimeError:
                raise step.error or RuntimeError(f"{kind.__name__} failed") from None
        for event in _final(events):
            self.trace.events.append(event)
        return changed or any(event.outcome is Outcome.TRANSFORMED for event in events)


def _final(events: Trace) -> list[Event]:
    """Each event once, without the refusals of what was fused in the end."""
    fused = {(event.transformation, event.node) for event in events if event.outcome is Outcome.TRANSFORMED}
    return [
        event
        for event in dict.fromkeys(events)
        if event.outcome is Outcome.TRANSFORMED or (event.transformation, event.node) not in fused
    ]


def fuse(model: Model, trace: Trace | None = None, values: Mapping[str, ArrayLike] | None = None) -> Model:
    """A new model with all fusions made; the caller's model stays as it is.

    ``values``: inputs and variables by name that are to become constants, such as ``{"is_training": False}``; the
    new model no longer has them. Raises `ovlpt.trace.InputError` where one does not exist or does not fit.
    """
    fused = model.clone()
    QuantizationFusions(values, trace=trace).run_on_model(fused)
    fused.validate_nodes_and_infer_types()
    return fused

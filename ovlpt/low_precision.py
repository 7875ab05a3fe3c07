"""`LowPrecision`: the steps as tuples of passes, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeVar

from ovlpt.attributes import AttributeTable
from ovlpt.canonicalize.added_axes import AddedAxes
from ovlpt.canonicalize.boolean_masks import BooleanMasks
from ovlpt.canonicalize.channel_shuffles import ChannelShuffles
from ovlpt.canonicalize.dequantization_before_moves import DequantizationBeforeMoves
from ovlpt.canonicalize.empty_intervals import EmptyIntervals
from ovlpt.canonicalize.factors_before_kernels import FactorsBeforeKernels
from ovlpt.canonicalize.fewer_levels import FewerLevels, has_few_levels
from ovlpt.canonicalize.four_bit_integers import FourBitIntegers
from ovlpt.canonicalize.integer_differences import IntegerDifferences
from ovlpt.canonicalize.integer_quotients import IntegerQuotients
from ovlpt.canonicalize.large_offsets import LargeOffsets
from ovlpt.canonicalize.mat_mul_to_convolution import MatMulToConvolution
from ovlpt.canonicalize.output_channel_scales import OutputChannelScales
from ovlpt.canonicalize.permuted_channels import PermutedChannels
from ovlpt.canonicalize.plain_pooling import PlainPooling
from ovlpt.canonicalize.pool_into_convolution import PoolIntoConvolution
from ovlpt.canonicalize.rearranged_integers import RearrangedIntegers
from ovlpt.canonicalize.recurrent_grid import RecurrentGrid
from ovlpt.canonicalize.redundant_fake_quantize import RedundantFakeQuantize
from ovlpt.canonicalize.relu_before_fake_quantize import ReluBeforeFakeQuantize
from ovlpt.canonicalize.reshapes_before_fake_quantize import ReshapesBeforeFakeQuantize
from ovlpt.canonicalize.rounded_integers import RoundedIntegers
from ovlpt.canonicalize.spelled_ellipses import SpelledEllipses
from ovlpt.canonicalize.stored_operands import StoredOperands
from ovlpt.canonicalize.stored_weights import StoredWeights
from ovlpt.canonicalize.symmetric_weights import (
    CoarserIntegerWeights,
    SymmetricIntegerWeights,
    SymmetricQuantizedWeights,
)
from ovlpt.canonicalize.unshared_constants import UnsharedConstants
from ovlpt.canonicalize.wide_intervals import WideIntervals
from ovlpt.cleanup import native as cleanup_native
from ovlpt.cleanup.eliminate_fake_quantize import EliminateFakeQuantizeTransformation
from ovlpt.cleanup.fold_constants import FoldConstants
from ovlpt.cleanup.fold_convert import FoldConvertTransformation
from ovlpt.cleanup.fold_fake_quantize import FoldFakeQuantizeTransformation
from ovlpt.cleanup.fuse_clamp_to_fake_quantize import FuseClampToFakeQuantizeTransformation
from ovlpt.cleanup.fuse_convert import FuseConvertTransformation
from ovlpt.cleanup.fuse_elementwise_to_fake_quantize import (
    FuseMultiplyToFakeQuantizeTransformation,
    FuseSubtractToFakeQuantizeTransformation,
)
from ovlpt.cleanup.multiply_to_group_convolution import MultiplyToGroupConvolutionTransformation
from ovlpt.cleanup.restore_weights import RestoreWeightsTransformation
from ovlpt.config import (
    Params,
    PassConfig,
    PluginConfig,
    PrecisionsRestriction,
    QuantizationGranularityRestriction,
    nearest,
)
from ovlpt.graph.bodies import kinds_of, operations_of
from ovlpt.graph.constants import numbers_read_once, remembering
from ovlpt.graph.garbage import uncollected
from ovlpt.graph.grafting import graft
from ovlpt.graph.relaxed import read_templates_of
from ovlpt.graph.stamp import is_transformed, stamp
from ovlpt.layer_transformation import InTurn, LayerTransformation, class_of, run_in_turn
from ovlpt.main import native as main_native
from ovlpt.main.add import AddTransformation
from ovlpt.main.assign_and_read_value import AssignAndReadValueTransformation
from ovlpt.main.avg_pool import AvgPoolTransformation
from ovlpt.main.clamp import ClampTransformation
from ovlpt.main.concat import ConcatTransformation
from ovlpt.main.convolution import ConvolutionTransformation
from ovlpt.main.convolution_backprop_data import ConvolutionBackpropDataTransformation
from ovlpt.main.fake_quantize import FakeQuantizeTransformation
from ovlpt.main.fake_quantize_decomposition import FakeQuantizeDecompositionTransformation
from ovlpt.main.group_convolution import GroupConvolutionTransformation
from ovlpt.main.group_convolution_backprop_data import GroupConvolutionBackpropDataTransformation
from ovlpt.main.interpolate import InterpolateTransformation
from ovlpt.main.mat_mul import MatMulTransformation
from ovlpt.main.max_pool import MaxPoolTransformation
from ovlpt.main.maximum import MaximumTransformation
from ovlpt.main.minimum import MinimumTransformation
from ovlpt.main.multiply_partial import MultiplyPartialTransformation
from ovlpt.main.mvn import MVNTransformation
from ovlpt.main.normalize_l2 import NormalizeL2Transformation
from ovlpt.main.pad import PadTransformation
from ovlpt.main.prelu import PReluTransformation
from ovlpt.main.recurrent_cell import RecurrentCellTransformation
from ovlpt.main.relu import ReluTransformation
from ovlpt.main.reshape import ReshapeTransformation
from ovlpt.main.select import SelectTransformation
from ovlpt.main.split import SplitTransformation
from ovlpt.main.variadic_split import VariadicSplitTransformation
from ovlpt.markup import native as markup_native
from ovlpt.markup.align_quantization_intervals import AlignQuantizationIntervals
from ovlpt.markup.align_quantization_parameters import AlignQuantizationParameters
from ovlpt.markup.markup_avg_pool_precision_preserved import MarkupAvgPoolPrecisionPreserved
from ovlpt.markup.markup_bias import MarkupBias
from ovlpt.markup.markup_can_be_quantized import MarkupCanBeQuantized
from ovlpt.markup.markup_precisions import MarkupPrecisions
from ovlpt.markup.markup_quantization_granularity import MarkupQuantizationGranularity
from ovlpt.markup.propagate_precisions import PropagatePrecisions
from ovlpt.markup.propagation import Markup, ModelIndex
from ovlpt.openvino_api import GraphRewrite, Manager, Model, ModelPass, as_model
from ovlpt.operations import OPERATIONS, RECURRENT, Operation
from ovlpt.own_transformations import known, main_of, resolved
from ovlpt.prerequisites import native as prerequisites_native
from ovlpt.prerequisites.convert_subtract import ConvertSubtract
from ovlpt.prerequisites.lin_op_sequence_fusion import LIN_OP_SEQUENCE_FUSION, LinOpSequenceFusion
from ovlpt.prerequisites.move_fake_quantize import MoveFakeQuantize
from ovlpt.prerequisites.pull_reshape_through_dequantization import PullReshapeThroughDequantization
from ovlpt.prerequisites.pull_transpose_through_dequantization import PullTransposeThroughDequantization
from ovlpt.trace import InputError, Outcome, Reason, Trace

T = TypeVar("T")

BEFORE_LPT: tuple[type[LayerTransformation], ...] = (ConvertSubtract,)  # of `CommonOptimizations`

# What OpenVINO reads otherwise than its format defines it, in networks of floats, too.
MISREAD_FLOATS: tuple[type[LayerTransformation], ...] = (
    BooleanMasks,
    FactorsBeforeKernels,
    IntegerQuotients,
    PermutedChannels,
    SpelledEllipses,
)

# The same of quantized networks, and what it rounds away before it quantizes anything: the simulation is mended, too, and a
# compilation before all else.
MISREAD: tuple[type[LayerTransformation], ...] = (
    *MISREAD_FLOATS,
    EmptyIntervals,
    FourBitIntegers,
    IntegerDifferences,
    RoundedIntegers,
    OutputChannelScales,
    LargeOffsets,
    WideIntervals,
)

# Before all else, too: afterwards a dequantization is no longer in one place.
BEFORE_COMMON_OPTIMIZATIONS: tuple[type[LayerTransformation], ...] = (
    *MISREAD,
    AddedAxes,
    DequantizationBeforeMoves,
    StoredWeights,
)

CANONICALIZATIONS: tuple[type[LayerTransformation], ...] = (
    *BEFORE_COMMON_OPTIMIZATIONS,
    RedundantFakeQuantize,
    FewerLevels,
    ChannelShuffles,
    MatMulToConvolution,
    PlainPooling,
    RearrangedIntegers,
    ReluBeforeFakeQuantize,
    ReshapesBeforeFakeQuantize,
    PoolIntoConvolution,
    RecurrentGrid,
    CoarserIntegerWeights,
    SymmetricIntegerWeights,
    SymmetricQuantizedWeights,
    StoredOperands,
    UnsharedConstants,
)

# What these refuse can be in low precision all the same; of a recurrent layer the grid decides.
REWRITES = frozenset(each.__name__ for each in CANONICALIZATIONS if each is not RecurrentGrid)

PREREQUISITES: tuple[type[LayerTransformation], ...] = (
    PullReshapeThroughDequantization,
    PullTransposeThroughDequantization,
    *LIN_OP_SEQUENCE_FUSION,
    MoveFakeQuantize,
)

_WRITTEN: tuple[type[LayerTransformation], ...] = (
    AddTransformation,
    AvgPoolTransformation,
    ClampTransformation,
    ConcatTransformation,
    ConvolutionTransformation,
    ConvolutionBackpropDataTransformation,
    FakeQuantizeDecompositionTransformation,
    FakeQuantizeTransformation,
    InterpolateTransformation,
    GroupConvolutionTransformation,
    MatMulTransformation,
    MaxPoolTransformation,
    MultiplyPartialTransformation,
    MVNTransformation,
    NormalizeL2Transformation,
    PadTransformation,
    PReluTransformation,
    RecurrentCellTransformation,
    ReluTransformation,
    ReshapeTransformation,
    SplitTransformation,
    VariadicSplitTransformation,
    # what the native library has no rule for
    GroupConvolutionBackpropDataTransformation,
    MaximumTransformation,
    MinimumTransformation,
    SelectTransformation,
)


def _needs_no_code(row: Operation) -> bool:
    """Whether its dequantization passes, by the checks and moves of the row, and there is no more to do."""
    written = {
        kind.operation.name for kind in (*_WRITTEN, AssignAndReadValueTransformation) if hasattr(kind, "operation")
    }
    return row.kind in ("passes", "reduces") and row.name not in written


MAIN = (*_WRITTEN, *(class_of(row) for row in OPERATIONS.values() if _needs_no_code(row)))

CLEANUP: tuple[type[LayerTransformation], ...] = (
    EliminateFakeQuantizeTransformation,
    FoldConvertTransformation,
    FuseConvertTransformation,
    FuseSubtractToFakeQuantizeTransformation,
    FuseMultiplyToFakeQuantizeTransformation,
    RestoreWeightsTransformation,
)

MARKUP: tuple[type[Markup], ...] = (
    MarkupCanBeQuantized,
    MarkupPrecisions,
    MarkupQuantizationGranularity,
    MarkupAvgPoolPrecisionPreserved,
    PropagatePrecisions,
    AlignQuantizationIntervals,
    AlignQuantizationParameters,
    MarkupBias,
)

_REGISTERED = frozenset(("Assign", "ReadValue", *RECURRENT))

# The names that settings may use.
PASSES = tuple(
    kind.__name__
    for kind in (
        *BEFORE_LPT,
        LinOpSequenceFusion,
        *CANONICALIZATIONS,
        *PREREQUISITES,
        *MARKUP,
        *MAIN,
        AssignAndReadValueTransformation,
        *CLEANUP,
        FuseClampToFakeQuantizeTransformation,
        MultiplyToGroupConvolutionTransformation,
        FoldFakeQuantizeTransformation,
    )
)


def check_names(pass_config: PassConfig, own: Sequence[type[LayerTransformation]]) -> None:
    """Raises `InputError` for a name in the settings that neither the package's passes nor ``own`` have."""
    names = (*PASSES, *(kind.__name__ for kind in own))
    for name in (*pass_config.disabled, *pass_config.callbacks, *pass_config.enabled):
        if name not in names:
            raise InputError(f'no pass "{name}"{nearest(name, names)}')


def as_defined(model: Model, **settings) -> Model:
    """In place: what OpenVINO reads otherwise than its format defines it, and each quantization in one piece. ``settings``:
    of the passes that do so.
    """
    run_in_turn(model, BEFORE_COMMON_OPTIMIZATIONS, **settings)
    return model


class LowPrecision(ModelPass):
    """Turns a quantized model (FakeQuantize) into one of low precision operations and dequantizations.

    Source: the native pass of the same name, whose steps, order and result it keeps. The model is either transformed
    completely or left as it was. A model that was transformed before is left alone.

    ``main``: custom transformations for the main step (`ovlpt.own_transformations`), which the native library
    takes by ``add_main``.

    Raises `InputError` for a name in ``pass_config`` that no pass has, and for what cannot be a transformation. An
    exception of a transformation is raised, too; `Manager.run_passes` turns it into a RuntimeError.
    """

    def __init__(
        self,
        precision_restrictions: Sequence[PrecisionsRestriction] = (),
        quantization_restrictions: Sequence[QuantizationGranularityRestriction] = (),
        params: Params | None = None,
        pass_config: PassConfig | None = None,
        trace: Trace | None = None,
        main: Sequence[str | Operation | type[LayerTransformation]] = (),
    ):
        super().__init__()
        self.precision_restrictions = tuple(precision_restrictions)
        self.quantization_restrictions = tuple(quantization_restrictions)
        self.params = params or Params()
        self.pass_config = pass_config or PassConfig()
        self.trace = trace if trace is not None else Trace()
        self.own = resolved(main)
        self.in_place = False
        check_names(self.pass_config, self.own)

    @classmethod
    def from_config(
        cls, config: PluginConfig, native_only: bool = False, trace: Trace | None = None, in_place: bool = False
    ) -> LowPrecision:
        """The pass with a plugin's settings.

        ``in_place``: do not make the copy that restores the model if a transformation fails; for callers that have
        one.
        """
        params = config.params if not native_only else config.native_params()
        restrictions = config.precision_restrictions, config.quantization_restrictions
        made = cls(*restrictions, params, config.pass_config(), trace, config.transformations)
        made.in_place = in_place
        return made

    def run_on_model(self, model: Model) -> bool:
        if is_transformed(model):
            self.trace.add(
                Outcome.REJECTED, "LowPrecision", "Model", model.get_friendly_name(),
                Reason("transformed_before", "the model has been transformed before"),
            )  # fmt: skip
            return False
        work = as_model(model) if self.in_place else as_model(model).clone()
        with known(self.own), numbers_read_once(), uncollected():
            self._run(work)
        if not self.in_place:
            graft(model, work)
        stamp(model, transformed="true")
        return True

    def _run(self, model: Model) -> None:
        settings: dict[str, Any] = {
            "params": self.params,
            "pass_config": self.pass_config,
            "trace": self.trace,
            "attributes": AttributeTable(),
        }
        if not self.params.native_only:
            if any(map(has_few_levels, model.get_ops())):  # before their intervals grow
                self._rewrite(model, [RedundantFakeQuantize(**settings)])
            present = kinds_of(model)  # none of these lets what it makes be visited
            self._rewrite(model, [kind(**settings) for kind in CANONICALIZATIONS if kind.is_shown(present)])
        self._rewrite(model, [self._form(prerequisites_native.NATIVE, kind)(**settings) for kind in PREREQUISITES])
        present = self._mark(model, settings)
        read_templates_of(present)
        self._rewrite(model, self._main_of(present, model, settings))
        cleanup = [self._form(cleanup_native.NATIVE, kind)(**settings) for kind in CLEANUP]
        if not self.params.native_only:
            cleanup.append(FuseClampToFakeQuantizeTransformation(**settings))
        asked_for = any(restriction.operation == "GroupConvolution" for restriction in self.precision_restrictions)
        if asked_for or self.params.native_only:  # unless a plugin asks for it, it gains nothing
            kind: Any = self._form(cleanup_native.NATIVE, MultiplyToGroupConvolutionTransformation)
            cleanup.append(kind(restrictions=self.precision_restrictions, **settings))
        self._rewrite(model, cleanup)
        fold = self._form(cleanup_native.NATIVE, FoldFakeQuantizeTransformation)(**settings)
        if self.params.native_only:  # all of them, before what they read becomes constants
            with remembering():
                for node, each in operations_of(model):
                    if each == "FakeQuantize":  # one type, of which few are folded: OpenVINO would look for it longer
                        fold.visit(node)
        FoldConstants(None if self.params.native_only else fold, **settings).run_on_model(model)

    def _form(self, native: Mapping[type[T], type[T]], kind: type[T]) -> type[T]:
        """The pass itself, or what stands for it with ``native_only``."""
        return native.get(kind, kind) if self.params.native_only else kind

    def _main(self) -> list[type[LayerTransformation]]:
        """The transformations of the main step, the caller's own among them."""
        kinds = main_of(MAIN, self.own)
        if not self.params.native_only:
            return kinds
        found = [main_native.as_native(kind) for kind in kinds]  # type: ignore[arg-type]  # classes are hashable
        return [native for native in found if native is not None]

    def _main_of(self, present: Set[str], model: Model, settings: dict[str, Any]) -> list[LayerTransformation]:
        """The passes of the main step for a model of operations of these types."""
        variables: Any = self._form(main_native.NATIVE, AssignAndReadValueTransformation)
        first, *others = self._main()
        main: list[type[LayerTransformation]] = [first, variables, *others]  # the native order
        # no pass but those of these types lets nodes of other types be visited
        if not self.own and _REGISTERED.isdisjoint(present):
            main = [kind for kind in main if kind.is_shown(present)]
        return [kind(model=model, **settings) if kind is variables else kind(**settings) for kind in main]

    def _mark(self, model: Model, settings: dict[str, Any]) -> set[str]:
        """The types of the model's operations, bodies included, as the steps of markup have found them."""
        index = ModelIndex(model)
        # the native library looks for the operations of two steps outside of bodies only
        kinds = {node.get_type_name() for node in model.get_ops()} if self.params.native_only else index.kinds
        steps: list[Markup] = [self._form(markup_native.NATIVE, MarkupCanBeQuantized)(**settings)]
        if self.precision_restrictions:
            marking: Any = self._form(markup_native.NATIVE, MarkupPrecisions)
            steps.append(marking(self.precision_restrictions, **settings))
        if self.quantization_restrictions:
            steps.append(MarkupQuantizationGranularity(self.quantization_restrictions, **settings))
        if "AvgPool" in kinds:
            steps.append(self._form(markup_native.NATIVE, MarkupAvgPoolPrecisionPreserved)(**settings))
        steps.append(self._form(markup_native.NATIVE, PropagatePrecisions)(**settings))
        if "Concat" in kinds:
            # the native order is the other one, which makes no difference there
            aligned = AlignQuantizationParameters, AlignQuantizationIntervals
            steps += [self._form(markup_native.NATIVE, kind)(**settings) for kind in aligned]
        steps.append(self._form(markup_native.NATIVE, MarkupBias)(**settings))
        for step in steps:
            step.run(index)
        return index.kinds

    @staticmethod
    def _rewrite(model: Model, passes: list[LayerTransformation]) -> None:
        """One traversal in topological order: the first pass that changes a node ends its visit."""
        rewrite, shown = GraphRewrite(), InTurn.of(passes)
        for step in shown:
            rewrite.add_matcher(step)
        manager = Manager()
        manager.register_pass(rewrite)
        try:
            with remembering():
                manager.run_passes(model)
        except RuntimeError:
            for step in passes:
                if step.error is not None:
                    raise step.error from None
            raise

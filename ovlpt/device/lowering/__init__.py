"""From the pass's own result to a form that a plugin executes in int8 with its own LPT off.

A plugin runs its common optimizations before it would run LPT, and they do not expect type-relaxed operations. These
are the rules, all found by running; each says at its function what happens without it.

`guards`: after a layer with weights
    add_negative_shift              for a constant that is taken away
    shift_after_scale              a bias before its scale
    scale_to_interval               by channel, for one element of open sizes, and after a product
    part_by_channel                 further after, for one element of open batch
    part_by_column                  after a product of two tensors
    compute_scale_in_f64            its scale and bias, out of the reach of fusions
    guard_output                    a Clamp instead where no scale follows, on other devices, or where the result is
                                    quantized by rows; a Floor where a constant differs between rows
    keep_negative_scale_after_relu
    quantize_rows_alone             after a product of open sizes, or of two tensors

`element_types`: data that a relaxed operation would be rewritten in the type of
    report_f32                      f16 that an operation reports: f32, and a Convert follows
    clamp_in_f32                    before a FakeQuantize that makes the Clamp needless, or where it cuts between integers
    mvn_in_f32                      where it is decomposed
    normalize_in_f32                of rank 5, where it is decomposed
    reduce_in_f32                   before another reduction
    scale_in_f32                    before a float layer, or a constant that is added
    convert_by_f64                  before a scale and float MatMuls
    add_in_f32                      before another Add, or after a factor of -1

`zero_points`
    subtract_in_f32                 integers or f16 less f32
    subtract_signed_in_f32          a zero point of i8 data saturates
    keep_apart                      equal zero points on one tensor, which would be merged
    keep_stride                     of a 1×1 convolution of data with a zero point, padded, or after a Split
    broadcast_before_zero_point     after a Broadcast
    clamp_after_zero_point          that no layer takes
    pad_before_zero_point           of a grouped convolution over three axes

`fake_quantize`
    bypass_relu                    before [0, …]
    join_dequantization             that alone reads the integers
    keep_transpose                  before it, and before a reduction of open sizes
    differ_by_channel               the interval, for what will be taken into one of open sizes
    keep_scale_before             of what it is moved up through with open sizes
    compute_in_steps                along another axis than the channels
    keep_after_transpose           an interval by channel, which would come to another axis

`mat_mul`
    absorb_transposes               before it
    run_at_rank_3                   of rank 4
    lay_weights_in_rows             on a GPU, and in a model that may be saved

`reductions`
    pool_alone                      of a few integers, without an interval by channel
    reduce_alone                    without the post-operations that it takes wrongly

`folding`
    fold_float_weights

`hiding`
    hide_zero_points                from the plugin's own LPT, where that is on
    hide_from_lpt                   in a model that may be saved, each FakeQuantize from it
    hide_recurrent_weights          in a model that may be saved, from constant folding

`sharing`
    share_constants                 of a model that may be saved

`gpu`: on a GPU (tried on virtual ones) hold as they are `keep_apart`, `keep_stride`, `absorb_transposes`,
`bypass_relu`, `join_dequantization`, `reduce_in_f32` and `mvn_in_f32` (with other kernels); of what follows a
layer the Clamp; `run_at_rank_3` is not needed. And:
    add_negative                    for subtract_in_f32
    scale_in_f32_before_weights     for scale_in_f32
    needless_clamp_in_f32           for clamp_in_f32
    keep_weights_zero_point         of a layer
    read_input_in_f32               a FakeQuantize of an input, where the model runs in f16
    keep_sums_in_f32                where the model runs in f16 (`half`)
    hide_end                        for hide_from_lpt
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ovlpt import plugin_config
from ovlpt.device.hazards import WEIGHTED
from ovlpt.device.lowering.element_types import (
    add_in_f32,
    clamp_in_f32,
    convert_by_f64,
    mvn_in_f32,
    needless_clamp_in_f32,
    normalize_in_f32,
    reduce_in_f32,
    report_f32,
    scale_in_f32,
)
from ovlpt.device.lowering.fake_quantize import (
    bypass_relu,
    compute_in_steps,
    differ_by_channel,
    join_dequantization,
    keep_after_transpose,
    keep_scale_before,
    keep_transpose,
)
from ovlpt.device.lowering.folding import fold_float_weights
from ovlpt.device.lowering.gpu import (
    add_negative,
    hide_end,
    keep_weights_zero_point,
    scale_in_f32_before_weights,
)
from ovlpt.device.lowering.guards import (
    add_negative_shift,
    compute_scale_in_f64,
    guard_output,
    keep_negative_scale_after_relu,
    part_by_channel,
    part_by_column,
    quantize_rows_alone,
    scale_to_interval,
    shift_after_scale,
)
from ovlpt.device.lowering.half import keep_sums_in_f32
from ovlpt.device.lowering.hiding import hide_from_lpt, hide_recurrent_weights, hide_zero_points
from ovlpt.device.lowering.mat_mul import absorb_transposes, lay_weights_in_rows, run_at_rank_3
from ovlpt.device.lowering.reductions import REDUCTIONS, pool_alone, reduce_alone
from ovlpt.device.lowering.sharing import share_constants
from ovlpt.device.lowering.zero_points import (
    broadcast_before_zero_point,
    clamp_after_zero_point,
    keep_apart,
    keep_stride,
    pad_before_zero_point,
    sibling_numbers,
    subtract_in_f32,
    subtract_signed_in_f32,
)
from ovlpt.device.release import check_release
from ovlpt.graph.bodies import all_nodes, with_bodies
from ovlpt.graph.constants import remembering_walks
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.low_precision import MARKER
from ovlpt.openvino_api import Model, ModelPass, Node
from ovlpt.trace import InputError

# By kind of node, in order; each gives the node that then stands there.
Rules = Mapping[str, tuple[Callable[[Node], Node], ...]]


class PluginLowering(ModelPass):
    """Prepares the result of `LowPrecision` for ``core.compile_model`` on ``device``.

    The numbers stay the same. Raises `InputError` for a device without lowering rules.

    ``lpt_on``: the model will be compiled with the plugin's own LPT on. Only then does the plugin form quantized
    recurrent layers; without it the plugin folds their weights, and they run in float.
    ``serializable``: the result may be saved and compiled from the file; False is for a model that is compiled as it
    stands, without what keeps a saved one from the plugin's own LPT.
    ``precision``: in which type a GPU will run what is not in low precision, "f16" or "f32".
    """

    def __init__(self, device: str = "CPU", lpt_on: bool = False, serializable: bool = True, precision: str = "f32"):
        super().__init__()
        self.device = plugin_config.kind(device)
        if self.device not in ("CPU", "GPU"):
            raise InputError(f'no lowering for device "{device}"; there is one for "CPU" and "GPU"')
        self.lpt_on, self.precision = lpt_on, precision
        self.serializable = serializable or self.device != "CPU"

    def run_on_model(self, model: Model) -> bool:
        if model.has_rt_info([MARKER, "lowered"]):
            return False
        check_release(self._guard)
        relaxed_rules, rules = self._rules_of_relaxed(), self._rules_of_all()
        # Held to the end: what a rule has replaced still counts among the readers of its inputs.
        nodes = [report_f32(node) for node in all_nodes(model)]
        with remembering_walks():
            lowered = [_apply(relaxed_rules, node, is_relaxed) for node in nodes]
            subtracts = [node for node in lowered if node.get_type_name() == "Subtract" and is_relaxed(node)]
            numbers = sibling_numbers(subtracts)
            for node in lowered:
                _apply(rules, node)
        if self.precision != "f32":
            keep_sums_in_f32(model, numbers)
        else:
            for node in subtracts:
                if number := numbers[node.get_instance_id()]:
                    keep_apart(node, number)
        if self.lpt_on and self.device == "CPU":
            hide_zero_points(model)
        if self.serializable and self.device == "CPU":
            for body in with_bodies(model):
                share_constants(body)
                (hide_recurrent_weights if self.lpt_on else hide_from_lpt)(body)
        model.validate_nodes_and_infer_types()
        if self.serializable:
            model.set_rt_info(self.device, [MARKER, "lowered"])
        return True

    @property
    def _guard(self) -> Callable[[Node], Node]:
        return guard_output if self.device == "GPU" else compute_scale_in_f64

    def _rules_of_relaxed(self) -> Rules:
        layer = (keep_negative_scale_after_relu, self._guard)
        rules = {
            **dict.fromkeys(WEIGHTED, layer),
            "FakeQuantize": (bypass_relu, join_dequantization),
            "Clamp": (clamp_after_zero_point, clamp_in_f32),
            "MVN": (partial(mvn_in_f32, is_kernel=plugin_config.kernels(self.device)["MVN"]),),
            "ReduceMean": (reduce_in_f32,),
            "ReduceSum": (reduce_in_f32,),
        }
        if self.device == "GPU":
            layer = (keep_weights_zero_point, *layer)
            return rules | {
                **dict.fromkeys(WEIGHTED, layer),
                "Clamp": (clamp_after_zero_point, needless_clamp_in_f32),
                "MatMul": (absorb_transposes, lay_weights_in_rows, *layer),
                "Multiply": (scale_in_f32_before_weights,),
                "Subtract": (broadcast_before_zero_point, add_negative),
            }
        layer = (add_negative_shift, shift_after_scale, *layer)
        convolution = (*layer[:2], scale_to_interval, part_by_channel, *layer[2:])
        rows = (lay_weights_in_rows,) if self.serializable else ()
        return rules | {
            **dict.fromkeys(WEIGHTED, layer),
            "AvgPool": (pool_alone,),
            "Convolution": convolution,
            "GroupConvolution": (pad_before_zero_point, *convolution),
            "MatMul": (
                absorb_transposes,
                run_at_rank_3,
                *rows,
                *layer[:2],
                scale_to_interval,
                part_by_column,
                *layer[2:],
            ),
            "NormalizeL2": (normalize_in_f32,),
            "Multiply": (scale_in_f32,),
            "Add": (add_in_f32,),
            "Subtract": (broadcast_before_zero_point, subtract_signed_in_f32, subtract_in_f32),
        }

    def _rules_of_all(self) -> Rules:
        """Once the guards stand: rules of operations that are relaxed or not."""
        if self.device == "GPU":
            return {"Convolution": (keep_stride,), "FakeQuantize": (hide_end,)}
        return {
            "Convert": (convert_by_f64,),
            **dict.fromkeys(WEIGHTED, (fold_float_weights,)),
            "Convolution": (keep_stride, fold_float_weights),
            **dict.fromkeys(REDUCTIONS, (reduce_alone,)),
            "FakeQuantize": (
                compute_in_steps,
                keep_after_transpose,
                quantize_rows_alone,
                keep_scale_before,
                keep_transpose,
                differ_by_channel,
            ),
        }


def _apply(rules: Rules, node: Node, condition: Callable[[Node], bool] = lambda _: True) -> Node:
    """The node that stands in place of ``node`` once the rules of its kind are followed."""
    kind = node.get_type_name()
    found = rules.get(kind, ())
    if found and condition(node):
        for rule in found:
            if node.get_type_name() == kind:
                node = rule(node)
    return node

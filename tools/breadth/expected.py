"""What is flagged, and known."""

from __future__ import annotations

from typing import Any

from tools.breadth.plan import DEFAULT, flags

_MEAN = (
    "stock computes garbage in fewer layers: a reduction takes the per-channel interval of the FakeQuantize after it wrongly, "
    "which therefore is a layer of its own, in bf16 with a Reorder"
)
_SUMS = (
    "more products of two tensors run in int8 than in stock, each with sums of integers that stand for its zero points"
)
_BIAS = (
    "with a dynamic batch the per-channel bias of two float depthwise layers is a layer of its own: a quantization would "
    "be moved up to it, which is wrong where a size is one"
)
_MASK = "the mask is scaled once, in two layers, instead of in the kernel of each attention"
_TIE = "one of eight samples lies at a tie, where the rounding of f32 decides"
_GARBAGE = (
    "stock computes garbage in as many layers: its MatMuls of two tensors read a per-column scale from beyond its array, and "
    "with a dynamic batch it fuses a scale into a convolution whose integers a FakeQuantize also reads"
)
_RANK = "Reshapes, which move no data, in place of as many layers that compute, or of layers in float"

# family, quantizer → what may be worse than stock ("layers", "int8", "SQNR", "failure"), and why
EXPECTED: dict[tuple[str, str], dict[str, str]] = {
    ("torch/lstm_both", DEFAULT): {
        "layers": "the grid of a dynamic state is an extra layer; without it stock clips the state"
    },
    ("timm/efficientvit_b0", DEFAULT): {"layers": _GARBAGE},
    ("timm/edgenext_xx_small", DEFAULT): {
        "layers": (
            "a FakeQuantize in one Subgraph with an attention of few rows makes the plugin write beyond its memory, and the "
            "process may end; apart from it there are a Subgraph and two Reshapes more"
        )
    },
    ("timm/levit_128s", DEFAULT): {"layers": _MEAN},
    ("timm/mixer_s32_224", DEFAULT): {"layers": _MEAN},
    ("timm/swin_tiny_patch4_window7_224", DEFAULT): {
        "layers": f"{_MEAN}; a dynamic batch size is read four times more"
    },
    ("timm/swinv2_tiny_window8_256", DEFAULT): {"layers": f"{_MEAN}; else {_RANK}"},
    ("timm/cait_xxs24_224", DEFAULT): {"layers": _RANK},
    ("timm/gcresnext26ts", DEFAULT): {"layers": _RANK},
    ("timm/nest_tiny", DEFAULT): {"layers": _RANK},
    ("timm/maxvit_pico_rw_256", DEFAULT): {"layers": _RANK},
    ("timm/hieradet_small", DEFAULT): {"layers": _RANK},
    ("timm/efficientvit_l1", DEFAULT): {"layers": _GARBAGE},
    ("timm/xcit_tiny_12_p8_224", DEFAULT): {
        "layers": "with a dynamic batch and floats in bf16 the plugin lays normalized queries and keys out with their channels last, "
        "between Reorders"
    },
    ("timm/gmlp_ti16_224", DEFAULT): {"layers": _MEAN},
    ("timm/resmlp_12_224", DEFAULT): {"layers": _MEAN},
    ("timm/tiny_vit_5m_224", DEFAULT): {"layers": _BIAS},
    ("transformers/layoutlm", DEFAULT): {"layers": _MASK},
    ("transformers/clip_text", DEFAULT): {"SQNR": _TIE},
    ("transformers/maskformer", DEFAULT): {
        "SQNR": _TIE,
        "int8": "with a dynamic batch stock has one layer more, in int8; as many are in float",
    },
    ("transformers/bloom", DEFAULT): {"layers": "a Reorder of four values, the slopes of the positions"},
    ("transformers/encodec", DEFAULT): {
        "layers": "the grid that data and state of a recurrent layer share is an extra layer for each of them"
    },
    ("transformers/detr", DEFAULT): {"layers": "with a dynamic batch a Concat of four sizes is a layer of its own"},
    **{
        ("transformers/depth_anything", quantizer): {
            "layers": "with a dynamic batch stock computes garbage in one layer fewer"
        }
        for quantizer in (DEFAULT, "mixed", "every_range_halved")
    },
    ("transformers/depth_anything", "smooth_quant"): {
        "layers": "with a dynamic batch stock computes garbage in one layer fewer",
        "SQNR": "means that an Interpolate computes lie at ties, which the simulation, too, rounds otherwise with another output",
    },
    ("timm/efficientvim_m1", DEFAULT): {"layers": _SUMS},
    ("transformers/prophetnet", DEFAULT): {"layers": _MASK},
    ("transformers/gptj", DEFAULT): {"SQNR": _TIE},
    ("transformers/mask2former", DEFAULT): {"SQNR": _TIE},
    ("transformers/dpt", DEFAULT): {"layers": "with a dynamic batch stock computes garbage in five layers fewer"},
    ("transformers/rt_detr", DEFAULT): {
        "int8": "with a dynamic batch stock runs two layers more than with its fixed shape; ovlpt's are those of the fixed shape"
    },
    ("transformers/layoutlmv3", DEFAULT): {
        "layers": (
            "with a dynamic batch a Reshape that changes nothing, and a Transpose, stay layers after each attention: the mask has "
            "a batch of its own, and that it is the same only an attention in one operation shows"
        )
    },
    ("transformers/groupvit", DEFAULT): {
        "layers": "an interval by column after a product of two tensors is a layer of its own: stock reads it from beyond its array"
    },
    ("torchvision/googlenet", DEFAULT): {
        "SQNR": "19 more layers than in stock run in int8; samples lie at ties in both"
    },
    ("timm/levit_conv_128s", DEFAULT): {"layers": _SUMS},
    ("timm/swinv2_cr_tiny_ns_224", DEFAULT): {
        "int8": "with a dynamic batch stock runs two layers twice; ovlpt's are those of the fixed shape"
    },
    ("timm/tf_efficientnet_cc_b0_4e", DEFAULT): {
        "layers": (
            "an interval by column after the second of two MatMuls is a layer of its own: with one thread the plugin reads "
            "it from elsewhere, and stock computes garbage"
        )
    },
    ("timm/mixer_s32_224", "every_range_halved"): {"layers": _MEAN},
    ("timm/tiny_vit_5m_224", "every_range_halved"): {"layers": _BIAS},
    ("timm/tiny_vit_5m_224", "onnx_runtime"): {"layers": _SUMS},
    ("timm/hiera_tiny_224", "onnx_runtime"): {"layers": _SUMS},
    **{
        (f"timm/{name}", quantizer): {
            "layers": (
                "channels are repeated before convolutions of several outputs for each: a Gather and two Reorders more, in less "
                "time"
            )
        }
        for name in ("fastvit_t8", "fastvit_mci0")
        for quantizer in (DEFAULT, "mixed", "every_range_halved", "smooth_quant", "onnx_runtime", "onnx_runtime_signed")
    },
    **{
        ("timm/botnet26t_256", quantizer): {
            "layers": (
                "one product more than in stock runs in int8, with sums of integers; with a dynamic batch the zero point of "
                "each padded table of positions is subtracted in a layer of its own, and three sizes are read twice"
            )
        }
        for quantizer in ("onnx_runtime", "onnx_runtime_signed")
    },
}


def unexpected(line: dict[str, Any]) -> list[str]:
    """The flags of a line for which no reason is known."""
    known = EXPECTED.get((line["family"], line["quantizer"]), {})
    return [flag for flag in flags(line) if flag.split()[-1] not in known]


def reasons(line: dict[str, Any], way: str = "") -> list[str]:
    """Why a line has its flags (those of one ``way``), as far as that is known."""
    known = EXPECTED.get((line["family"], line["quantizer"]), {})
    found = (flag.split()[-1] for flag in flags(line) if flag.startswith(way))
    return list(dict.fromkeys(known[what] for what in found if what in known))

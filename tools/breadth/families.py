"""The families: a small member of each, from timm, torchvision and transformers, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from tools.zoo.torchvision_operations import declare

if TYPE_CHECKING:
    from torch import nn

IMAGE, TOKENS, SIGNAL = "image", "input_ids", "signal"


@dataclass(frozen=True)
class Family:
    """``make`` gives a module; ``shapes`` are those of what it reads, in the order of its parameters: images f32
    [1, 3, size, size], tokens i64 and a mask of them, or signals f32 of any shape (`tools.zoo.signals.draw`).
    """

    make: Callable[[], nn.Module]
    shapes: dict[str, tuple[int, ...]]
    transformer: bool = False


# name of timm's: the size of its images. Those that are built with another size than their own are told so.
TIMM = {
    "botnet26t_256": 128, "caformer_s18": 96, "cait_xxs24_224": 96, "coat_lite_tiny": 96, "coatnet_nano_rw_224": 96,
    "convit_tiny": 96, "convmixer_768_32": 56, "convnext_atto": 96, "convnextv2_atto": 96, "crossvit_9_240": 240,
    "cs3darknet_focus_s": 96, "cspresnet50": 96, "cspnext_tiny": 96, "davit_tiny": 96, "deit3_small_patch16_224": 96,
    "densenet121": 96, "dla46_c": 96, "dm_nfnet_f0": 96, "dpn48b": 96, "ecaresnet26t": 96, "eca_halonext26ts": 128,
    "edgenext_xx_small": 96, "efficientformer_l1": 96, "efficientformerv2_s0": 96, "efficientnet_b0": 96,
    "efficientvit_b0": 96, "efficientvit_m0": 96, "ese_vovnet19b_dw": 96, "eva02_tiny_patch14_224": 98,
    "fasternet_t0": 96, "fastvit_t8": 96, "fbnetv3_b": 96, "focalnet_tiny_srf": 96, "gcresnext26ts": 96,
    "gcvit_xxtiny": 224, "ghostnet_050": 96, "ghostnetv2_100": 96, "gmlp_ti16_224": 224, "hardcorenas_a": 96,
    "hgnetv2_b0": 96, "hiera_tiny_224": 224, "hrnet_w18_small": 96, "inception_next_atto": 96, "inception_v3": 128,
    "inception_v4": 128, "lambda_resnet26t": 128, "lcnet_050": 96, "legacy_seresnet18": 96, "levit_128s": 224,
    "mambaout_femto": 96, "mixer_s32_224": 224, "mixnet_s": 96, "mnasnet_small": 96, "mobilenetv1_100": 96,
    "mobilenetv2_050": 96, "mobilenetv3_small_050": 96, "mobilenetv4_conv_small_050": 96, "mobileone_s0": 96,
    "mobilevit_xxs": 96, "mobilevitv2_050": 96, "mvitv2_tiny": 96, "nest_tiny": 224, "nextvit_small": 96,
    "nf_regnet_b0": 96, "pit_ti_224": 224, "poolformer_s12": 96, "pvt_v2_b0": 96, "rdnet_tiny": 96, "regnetx_002": 96,
    "regnety_002": 96, "repghostnet_050": 96, "repvgg_a0": 96, "repvit_m0_9": 96, "res2net50_14w_8s": 96,
    "resmlp_12_224": 224, "resnest14d": 96, "resnet18": 96, "resnetv2_18": 96, "resnext26ts": 96, "rexnet_100": 96,
    "selecsls42": 96, "semnasnet_050": 96, "sequencer2d_s": 224, "shvit_s1": 96, "skresnet18": 96, "starnet_s050": 96,
    "swiftformer_xs": 96, "swin_tiny_patch4_window7_224": 224, "swinv2_tiny_window8_256": 128, "tf_efficientnet_lite0": 96,
    "tiny_vit_5m_224": 224, "tinynet_e": 96, "tnt_s_patch16_224": 224, "tresnet_m": 96, "twins_svt_small": 96,
    "vgg11_bn": 64, "visformer_tiny": 224, "vit_tiny_patch16_224": 96, "vit_relpos_small_patch16_224": 224,
    "volo_d1_224": 224, "xception41": 96, "xcit_nano_12_p16_224": 96, "cpubone_nano": 96, "efficientvim_m1": 224,
    "iformer_t": 224, "lcnetv2_small": 96, "lowformer_b0": 96, "vit_tiny_r_s16_p8_224": 96,
}  # fmt: skip
LATER_OF_TIMM = {  # after all others: every tenth of them stays what it was
    "inception_resnet_v2": 128, "legacy_xception": 96, "swinv2_cr_tiny_ns_224": 224, "vitamin_small_224": 96,
    "gmixer_12_224": 224, "hgnet_tiny": 96, "twins_pcpvt_small": 96,
    "resnetblur18": 96, "resnet26t": 96, "gernet_s": 96, "dla34": 96, "darknetaa53": 96, "cspdarknet53": 96,
    "seresnext26d_32x4d": 96, "bat_resnext26ts": 256, "halonet26t": 256, "sebotnet33ts_256": 256,
    "lamhalobotnet50ts_256": 256, "eca_nfnet_l0": 96, "convformer_s18": 96, "poolformerv2_s12": 96,
    "mobilenetv4_hybrid_medium": 96, "tf_efficientnetv2_b0": 96, "efficientnet_es": 96, "regnetz_b16": 96,
    "regnetv_040": 96, "fastvit_mci0": 96, "csatv2": 128, "maxvit_pico_rw_256": 64, "coatnext_nano_rw_224": 96,
    "efficientvit_l1": 96, "vit_wee_patch16_reg1_gap_256": 96, "deit_tiny_distilled_patch16_224": 96,
    "hieradet_small": 96, "xcit_tiny_12_p8_224": 64, "efficientnet_b0_g16_evos": 96,
    "naflexvit_base_patch16_gap": 96, "samvit_base_patch16_224": 112, "pnasnet5large": 96,
}  # fmt: skip
TRANSFORMERS_OF_TIMM = (
    "cait", "convit", "crossvit", "deit", "eva02", "gcvit", "hiera", "levit", "mixer", "gmlp", "mvit", "nest", "pit", "pvt",
    "resmlp", "swin", "tiny_vit", "tnt", "twins", "visformer", "vit_", "volo", "xcit", "davit",
)  # fmt: skip


def of_timm(name: str, size: int) -> Family:
    """A network of timm with 100 classes; layer scales that begin near 0 are set to 0.3, or blocks would add nothing."""

    def make() -> nn.Module:
        import torch

        declare()
        import timm

        error: Exception | None = None
        for given in ({"img_size": size}, {}):
            try:
                module = timm.create_model(name, pretrained=False, num_classes=100, **given).eval()
                with torch.no_grad():
                    module(torch.zeros(1, 3, size, size))
            except Exception as failure:  # most families take no size
                error = failure
                continue
            enliven(module)
            return module
        raise error

    return Family(make, {IMAGE: (1, 3, size, size)}, name.startswith(TRANSFORMERS_OF_TIMM))


def enliven(module: nn.Module) -> None:
    """Scales and weights that begin at or near 0 get values as after training."""
    from torch import nn

    for name, parameter in module.named_parameters():
        largest = float(parameter.detach().abs().max()) if parameter.numel() else 1.0
        if parameter.ndim <= 1 and name.endswith("weight") and largest == 0:
            parameter.data.fill_(0.5)
        elif largest == 0 and name.endswith("weight"):  # of the last layer, in networks of MLPs
            nn.init.normal_(parameter.data, std=parameter.shape[-1] ** -0.5)
        elif largest < 1e-3 and any(part in name for part in ("gamma", "scale", ".ls")):
            parameter.data.fill_(0.3)


def first(module: nn.Module, call: Callable | None = None) -> nn.Module:
    """The module with one tensor as its output: the first, or what ``call`` makes of module and inputs."""
    from torch import nn

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, *inputs):
            output = call(self.inner, *inputs) if call else self.inner(*inputs)
            return output if not isinstance(output, tuple) and not hasattr(output, "to_tuple") else output[0]

    return First().eval()


def of_torchvision(path: str, size: int, **given: object) -> Family:
    """A network of torchvision, by its dotted path below ``models``; segmentation gives the map alone."""

    def make() -> nn.Module:
        declare()
        import torchvision

        builder = torchvision.models
        for part in path.split("."):
            builder = getattr(builder, part)
        call = (lambda module, x: module(x)["out"]) if path.startswith("segmentation") else None
        return first(builder(weights=None, **given), call)

    shape = (1, 3, 4, size, size) if path.startswith("video") else (1, 3, size, size)
    return Family(make, {SIGNAL if path.startswith("video") else IMAGE: shape})


SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 2000,
    "max_position_embeddings": 64,
}  # fmt: skip
AUDIO = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "conv_dim": (16, 16),
    "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 2,
}  # fmt: skip
PAIR = {
    "d_model": 32,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
SEQUENCES = {**PAIR, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 2000}  # one to another
LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
IDS, MASK = {TOKENS: (1, 12)}, {TOKENS: (1, 12), "attention_mask": (1, 12)}


def detector(library: ModuleType) -> dict[str, object]:
    """What detectors of the kind of DETR have in common."""
    return {
        "backbone_config": library.ResNetConfig(
            embedding_size=16,
            hidden_sizes=[16, 24, 32, 48],
            depths=[1] * 4,
            layer_type="basic",
            out_features=["stage2", "stage3", "stage4"],
        ),
        **{"use_timm_backbone": False, "backbone": None, "use_pretrained_backbone": False, "encoder_layers": 1},
        **{"decoder_layers": 2, "num_queries": 8, "num_labels": 5},
    }


def of_transformers(
    kind: str,
    config: dict[str, object] | Callable[[ModuleType], dict[str, object]],
    shapes: dict[str, tuple[int, ...]],
    call: Callable,
    **more,
) -> Family:
    """A network of transformers, ``kind`` by the names of its model class and its configuration's class; ``config`` may
    need the package, for the configuration of a part.
    """

    def make() -> nn.Module:
        declare()
        import transformers

        model, configuration = kind.split()
        given = config(transformers) if callable(config) else config
        return first(getattr(transformers, model)(getattr(transformers, configuration)(**given)), call)

    return Family(make, shapes, **{"transformer": True, **more})


def masked(module, tokens, mask):
    return module(input_ids=tokens, attention_mask=mask)[0]


def uncached(module, tokens, mask):
    return module(input_ids=tokens, attention_mask=mask, use_cache=False)[0]


def translated(module, tokens, mask):
    return module(input_ids=tokens, attention_mask=mask, decoder_input_ids=tokens, use_cache=False)[0]


def unmasked(module, tokens):
    return module(input_ids=tokens, use_cache=False)[0]


def recurrent(kind: str, bidirectional: bool) -> Family:
    """Two recurrent layers of torch and a Linear."""

    def make() -> nn.Module:
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = getattr(nn, kind)(16, 24, 2, batch_first=True, bidirectional=bidirectional)
                self.head = nn.Linear(48 if bidirectional else 24, 10)

            def forward(self, x):
                return self.head(self.layers(x)[0])

        return Tagger().eval()

    return Family(make, {SIGNAL: (1, 9, 16)})


FAMILIES: dict[str, Family] = {
    **{f"timm/{name}": of_timm(name, size) for name, size in TIMM.items()},
    "torchvision/alexnet": of_torchvision("alexnet", 64, num_classes=10),
    "torchvision/squeezenet1_1": of_torchvision("squeezenet1_1", 64, num_classes=10),
    "torchvision/shufflenet_v2_x0_5": of_torchvision("shufflenet_v2_x0_5", 96, num_classes=10),
    "torchvision/mnasnet0_5": of_torchvision("mnasnet0_5", 96, num_classes=10),
    "torchvision/maxvit_t": of_torchvision("maxvit_t", 224, num_classes=10),
    "torchvision/deeplabv3": of_torchvision(
        "segmentation.deeplabv3_mobilenet_v3_large", 96, weights_backbone=None, num_classes=5
    ),
    "torchvision/lraspp": of_torchvision("segmentation.lraspp_mobilenet_v3_large", 96, weights_backbone=None, num_classes=5),
    "torchvision/fcn": of_torchvision("segmentation.fcn_resnet50", 64, weights_backbone=None, num_classes=5),
    "torchvision/r3d_18": of_torchvision("video.r3d_18", 32, num_classes=5),
    "transformers/roberta": of_transformers("RobertaModel RobertaConfig", SMALL, MASK, masked),
    "transformers/deberta": of_transformers(
        "DebertaV2Model DebertaV2Config", {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, MASK, masked
    ),
    "transformers/distilbert": of_transformers(
        "DistilBertModel DistilBertConfig",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 2000}, MASK, masked,
    ),
    "transformers/mobilebert": of_transformers(
        "MobileBertModel MobileBertConfig",
        {**SMALL, "hidden_size": 64, "intra_bottleneck_size": 32, "embedding_size": 32}, MASK, masked,
    ),
    "transformers/albert": of_transformers("AlbertModel AlbertConfig", {**SMALL, "embedding_size": 16}, MASK, masked),
    "transformers/electra": of_transformers("ElectraModel ElectraConfig", {**SMALL, "embedding_size": 16}, MASK, masked),
    "transformers/squeezebert": of_transformers(
        "SqueezeBertModel SqueezeBertConfig", {**SMALL, "embedding_size": 32}, MASK, masked
    ),
    "transformers/gpt2": of_transformers(
        "GPT2LMHeadModel GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 2000, "n_positions": 64}, MASK, uncached
    ),
    "transformers/llama": of_transformers("LlamaForCausalLM LlamaConfig", {**SMALL, "num_key_value_heads": 2}, MASK, uncached),
    "transformers/mamba": of_transformers(
        "MambaForCausalLM MambaConfig", {"vocab_size": 2000, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2}, {TOKENS: (1, 6)}, unmasked
    ),
    "transformers/t5_encoder": of_transformers(
        "T5EncoderModel T5Config",
        {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4, "vocab_size": 2000}, IDS,
        lambda module, tokens: module(input_ids=tokens)[0],
    ),
    "transformers/clip_vision": of_transformers(
        "CLIPVisionModel CLIPVisionConfig",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8},
        {IMAGE: (1, 3, 32, 32)}, lambda module, x: module(x)[1],
    ),
    "transformers/wav2vec2": of_transformers("Wav2Vec2Model Wav2Vec2Config", AUDIO, {SIGNAL: (1, 1600)}, lambda m, x: m(x)[0]),
    "transformers/hubert": of_transformers("HubertModel HubertConfig", AUDIO, {SIGNAL: (1, 1600)}, lambda m, x: m(x)[0]),
    "transformers/conformer": of_transformers(
        "Wav2Vec2ConformerModel Wav2Vec2ConformerConfig", {**AUDIO, "position_embeddings_type": "relative"}, {SIGNAL: (1, 1600)},
        lambda module, x: module(x)[0],
    ),
    "transformers/patchtst": of_transformers(
        "PatchTSTForPrediction PatchTSTConfig",
        {"num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8, "prediction_length": 8, "d_model": 32,
         "num_attention_heads": 4, "num_hidden_layers": 2, "ffn_dim": 64},
        {SIGNAL: (1, 32, 3)}, lambda module, x: module(past_values=x)[0],
    ),
    "transformers/segformer": of_transformers(
        "SegformerForSemanticSegmentation SegformerConfig",
        {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 48, 64], "num_attention_heads": [1, 2, 3, 4], "decoder_hidden_size": 32},
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x)[0],
    ),
    "transformers/modernbert": of_transformers(
        "ModernBertModel ModernBertConfig", {**SMALL, "global_attn_every_n_layers": 2, "pad_token_id": 0}, MASK, masked
    ),
    "transformers/layoutlm": of_transformers("LayoutLMModel LayoutLMConfig", SMALL, MASK, masked),
    "transformers/canine": of_transformers("CanineModel CanineConfig", SMALL, MASK, masked),
    "transformers/phi3": of_transformers(
        "Phi3ForCausalLM Phi3Config", {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0}, MASK, uncached
    ),
    "transformers/olmo2": of_transformers("Olmo2ForCausalLM Olmo2Config", {**SMALL, "num_key_value_heads": 2}, MASK, uncached),
    "transformers/stablelm": of_transformers("StableLmForCausalLM StableLmConfig", {**SMALL, "num_key_value_heads": 2}, MASK, uncached),
    "transformers/falcon": of_transformers("FalconForCausalLM FalconConfig", SMALL, MASK, uncached),
    "transformers/gpt_neox": of_transformers("GPTNeoXForCausalLM GPTNeoXConfig", SMALL, MASK, uncached),
    "torch/lstm": recurrent("LSTM", False),
    "torch/lstm_both": recurrent("LSTM", True),
    "torch/gru": recurrent("GRU", False),
    "torch/gru_both": recurrent("GRU", True),
    "torch/rnn": recurrent("RNN", False),
    "timm/resnet50_gn": of_timm("resnet50_gn", 96),
    "timm/tf_efficientnet_cc_b0_4e": of_timm("tf_efficientnet_cc_b0_4e", 96),
    "timm/levit_conv_128s": of_timm("levit_conv_128s", 224),
    "timm/vit_small_patch16_rope_mixed_224": of_timm("vit_small_patch16_rope_mixed_224", 96),
    "torchvision/googlenet": of_torchvision("googlenet", 96, num_classes=10, init_weights=True, aux_logits=False),
    "torchvision/swin3d_t": of_torchvision("video.swin3d_t", 64, num_classes=5),
    "transformers/bloom": of_transformers(
        "BloomForCausalLM BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 2000}, MASK, uncached
    ),
    "transformers/clip_text": of_transformers(
        "CLIPTextModel CLIPTextConfig", {**SMALL, "eos_token_id": 1999, "bos_token_id": 1, "pad_token_id": 0}, MASK, masked
    ),
    "transformers/bart": of_transformers("BartModel BartConfig", {**SEQUENCES, "max_position_embeddings": 64}, MASK, translated),
    "transformers/led": of_transformers(
        "LEDModel LEDConfig",
        {**SEQUENCES, "attention_window": 4, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64},
        MASK, translated,
    ),
    "transformers/trocr": of_transformers(
        "TrOCRForCausalLM TrOCRConfig",
        {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 64, "vocab_size": 2000,
         "max_position_embeddings": 64, "cross_attention_hidden_size": 32},
        MASK, uncached,
    ),
    "transformers/donut_swin": of_transformers(
        "DonutSwinModel DonutSwinConfig",
        {"image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x)[0],
    ),
    "transformers/dinov2": of_transformers(
        "Dinov2Model Dinov2Config",
        {"image_size": 56, "patch_size": 14, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2},
        {IMAGE: (1, 3, 56, 56)}, lambda module, x: module(x)[0],
    ),
    "transformers/depth_anything": of_transformers(
        "DepthAnythingForDepthEstimation DepthAnythingConfig",
        lambda library: {
            "backbone_config": library.Dinov2Config(
                image_size=56, patch_size=14, hidden_size=32, num_hidden_layers=4, num_attention_heads=2,
                out_indices=[1, 2, 3, 4], apply_layernorm=True, reshape_hidden_states=False,
            ),
            "patch_size": 14, "reassemble_hidden_size": 32, "neck_hidden_sizes": [16, 16, 24, 32], "fusion_hidden_size": 16,
            "head_hidden_size": 16,
        },
        {IMAGE: (1, 3, 56, 56)}, lambda module, x: module(x)[0],
    ),
    "transformers/upernet": of_transformers(
        "UperNetForSemanticSegmentation UperNetConfig",
        lambda library: {
            "backbone_config": library.ConvNextConfig(
                hidden_sizes=[16, 24, 32, 48], depths=[1] * 4, out_features=[f"stage{at}" for at in range(1, 5)]
            ),
            "hidden_size": 32, "num_labels": 5, "use_auxiliary_head": False, "auxiliary_in_channels": 32,
        },
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x)[0], transformer=False,
    ),
    "transformers/maskformer": of_transformers(
        "MaskFormerForInstanceSegmentation MaskFormerConfig",
        lambda library: {
            "backbone_config": library.SwinConfig(
                image_size=64, embed_dim=16, depths=[1] * 4, num_heads=[1, 2, 2, 4], window_size=2,
                out_features=[f"stage{at}" for at in range(1, 5)],
            ),
            "decoder_config": library.DetrConfig(**PAIR, encoder_layers=1, decoder_layers=2, num_queries=8),
            "fpn_feature_size": 32, "mask_feature_size": 32,
        },
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x).masks_queries_logits,
    ),
    "transformers/detr": of_transformers(
        "DetrForObjectDetection DetrConfig",
        lambda library: {
            "backbone_config": library.ResNetConfig(
                embedding_size=16, hidden_sizes=[16, 24, 32, 48], depths=[1] * 4, layer_type="basic", out_features=["stage4"]
            ),
            "use_timm_backbone": False, "backbone": None, "use_pretrained_backbone": False, **PAIR, "encoder_layers": 2,
            "decoder_layers": 2, "num_queries": 8, "num_labels": 5,
        },
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x)[0],
    ),
    "transformers/encodec": of_transformers(
        "EncodecModel EncodecConfig",
        {"num_filters": 8, "hidden_size": 32, "codebook_dim": 32, "codebook_size": 64, "upsampling_ratios": [4, 2],
         "num_lstm_layers": 1, "target_bandwidths": [1.5]},
        {SIGNAL: (1, 1, 640)}, lambda module, x: module.decoder(module.encoder(x)), transformer=False,
    ),
    "transformers/parakeet": of_transformers(
        "ParakeetEncoder ParakeetEncoderConfig",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "num_mel_bins": 32,
         "subsampling_conv_channels": 16},
        {SIGNAL: (1, 64, 32)}, lambda module, x: module(input_features=x)[0],
    ),
    "transformers/whisper_encoder": of_transformers(
        "WhisperModel WhisperConfig",
        {**SEQUENCES, "max_source_positions": 32, "num_mel_bins": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
         "decoder_start_token_id": 1},
        {SIGNAL: (1, 16, 64)}, lambda module, x: module.encoder(x)[0],
    ),
    "transformers/videomae": of_transformers(
        "VideoMAEModel VideoMAEConfig",
        {"image_size": 32, "patch_size": 8, "num_frames": 4, "tubelet_size": 2, "hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 64},
        {SIGNAL: (1, 4, 3, 32, 32)}, lambda module, x: module(x)[0],
    ),
    "transformers/xlnet": of_transformers(
        "XLNetModel XLNetConfig", {"vocab_size": 2000, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}, MASK,
        lambda module, tokens, mask: module(input_ids=tokens, attention_mask=mask.float(), use_mems=False)[0],
    ),
    "transformers/funnel": of_transformers(
        "FunnelModel FunnelConfig",
        {"vocab_size": 2000, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64, "num_decoder_layers": 1},
        MASK, masked,
    ),
    "transformers/roformer": of_transformers("RoFormerModel RoFormerConfig", SMALL, MASK, masked),
    "transformers/fnet": of_transformers(
        "FNetModel FNetConfig", {**SMALL, "use_tpu_fourier_optimizations": False}, IDS, lambda module, tokens: module(input_ids=tokens)[0]
    ),
    "transformers/convbert": of_transformers("ConvBertModel ConvBertConfig", {**SMALL, "embedding_size": 32}, MASK, masked),
    "transformers/esm": of_transformers(
        "EsmModel EsmConfig", {**SMALL, "pad_token_id": 1, "position_embedding_type": "rotary"}, MASK, masked
    ),
    "transformers/perceiver": of_transformers(
        "PerceiverModel PerceiverConfig",
        {"num_latents": 8, "d_latents": 32, "d_model": 16, "num_blocks": 1, "num_self_attends_per_block": 2,
         "num_self_attention_heads": 4, "num_cross_attention_heads": 4},
        {SIGNAL: (1, 20, 16)}, lambda module, x: module(x)[0],
    ),
    "transformers/opt": of_transformers(
        "OPTForCausalLM OPTConfig",
        {"vocab_size": 2000, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64,
         "max_position_embeddings": 64, "word_embed_proj_dim": 32},
        MASK, uncached,
    ),
    "transformers/gptj": of_transformers(
        "GPTJForCausalLM GPTJConfig",
        {"vocab_size": 2000, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64}, MASK, uncached,
    ),
    "transformers/gemma2": of_transformers(
        "Gemma2ForCausalLM Gemma2Config", {**SMALL, "num_key_value_heads": 2, "head_dim": 8}, MASK, uncached
    ),
    "transformers/qwen3": of_transformers(
        "Qwen3ForCausalLM Qwen3Config", {**SMALL, "num_key_value_heads": 2, "head_dim": 8}, MASK, uncached
    ),
    "transformers/mpt": of_transformers(
        "MptForCausalLM MptConfig", {"vocab_size": 2000, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}, MASK, uncached
    ),
    "transformers/xlstm": of_transformers(
        "xLSTMForCausalLM xLSTMConfig", {"vocab_size": 2000, "hidden_size": 32, "num_hidden_layers": 1, "num_heads": 4},
        {TOKENS: (1, 8)}, unmasked,
    ),
    "transformers/rt_detr": of_transformers(
        "RTDetrForObjectDetection RTDetrConfig",
        lambda library: {
            "backbone_config": library.RTDetrResNetConfig(
                embedding_size=16, hidden_sizes=[16, 24, 32, 48], depths=[1] * 4, layer_type="basic",
                out_features=["stage2", "stage3", "stage4"],
            ),
            "use_timm_backbone": False, "backbone": None, "encoder_hidden_dim": 32, "encoder_in_channels": [24, 32, 48],
            "encoder_ffn_dim": 64, "encoder_attention_heads": 4, "d_model": 32, "num_queries": 12,
            "decoder_in_channels": [32] * 3, "decoder_ffn_dim": 64, "decoder_layers": 2, "decoder_attention_heads": 4,
            "num_labels": 5, "num_denoising": 0, "feat_strides": [8, 16, 32],
        },
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x).logits,
    ),
    "transformers/conditional_detr": of_transformers(
        "ConditionalDetrForObjectDetection ConditionalDetrConfig",
        lambda library: {**detector(library), **PAIR}, {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x).logits,
    ),
    "transformers/dab_detr": of_transformers(
        "DabDetrForObjectDetection DabDetrConfig",
        lambda library: {**detector(library), **PAIR, "hidden_size": 32}, {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x).logits,
    ),
    "transformers/yolos": of_transformers(
        "YolosForObjectDetection YolosConfig",
        {**LAYERS, "image_size": [64, 64], "patch_size": 16, "num_detection_tokens": 6, "num_labels": 5},
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x).logits,
    ),
    "transformers/mask2former": of_transformers(
        "Mask2FormerForUniversalSegmentation Mask2FormerConfig",
        lambda library: {
            "backbone_config": library.SwinConfig(
                image_size=64, embed_dim=16, depths=[1] * 4, num_heads=[1, 2, 2, 4], window_size=2,
                out_features=[f"stage{at}" for at in range(1, 5)],
            ),
            "feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 64, "encoder_layers": 1,
            "decoder_layers": 2, "num_attention_heads": 4, "dim_feedforward": 64, "num_queries": 8,
        },
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x).masks_queries_logits,
    ),
    "transformers/superpoint": of_transformers(
        "SuperPointForKeypointDetection SuperPointConfig",
        {"encoder_hidden_sizes": [16, 16, 32, 32], "decoder_hidden_size": 32, "descriptor_decoder_dim": 32},
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module.encoder(x[:, :1])[0], transformer=False,
    ),
    "transformers/vitpose": of_transformers(
        "VitPoseForPoseEstimation VitPoseConfig",
        lambda library: {
            "backbone_config": library.VitPoseBackboneConfig(
                image_size=[64, 48], patch_size=[16, 16], hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                mlp_ratio=2, out_features=["stage2"],
            ),
            "num_labels": 5, "scale_factor": 4,
        },
        {IMAGE: (1, 3, 64, 48)}, lambda module, x: module(x).heatmaps,
    ),
    "transformers/glpn": of_transformers(
        "GLPNForDepthEstimation GLPNConfig",
        {"depths": [1] * 4, "hidden_sizes": [16, 32, 48, 64], "num_attention_heads": [1, 2, 3, 4], "decoder_hidden_size": 32},
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x)[0],
    ),
    "transformers/dpt": of_transformers(
        "DPTForDepthEstimation DPTConfig",
        {**LAYERS, "num_hidden_layers": 4, "image_size": 64, "patch_size": 16, "backbone_out_indices": [0, 1, 2, 3],
         "neck_hidden_sizes": [16, 16, 24, 32], "fusion_hidden_size": 32, "is_hybrid": False},
        {IMAGE: (1, 3, 64, 64)}, lambda module, x: module(x)[0],
    ),
    "transformers/groupvit": of_transformers(
        "GroupViTVisionModel GroupViTVisionConfig",
        {"hidden_size": 32, "intermediate_size": 64, "depths": [1, 1, 1], "num_group_tokens": [8, 4, 0],
         "num_output_groups": [8, 4, 0], "num_attention_heads": 4, "image_size": 32, "patch_size": 8},
        {IMAGE: (1, 3, 32, 32)}, lambda module, x: module(x)[0],
    ),
    "transformers/timesformer": of_transformers(
        "TimesformerModel TimesformerConfig", {**LAYERS, "image_size": 32, "patch_size": 8, "num_frames": 4},
        {SIGNAL: (1, 4, 3, 32, 32)}, lambda module, x: module(x)[0],
    ),
    "transformers/vivit": of_transformers(
        "VivitModel VivitConfig", {**LAYERS, "image_size": 32, "num_frames": 4, "tubelet_size": [2, 8, 8]},
        {SIGNAL: (1, 4, 3, 32, 32)}, lambda module, x: module(x)[0],
    ),
    "transformers/wavlm": of_transformers(
        "WavLMModel WavLMConfig", {**AUDIO, "num_buckets": 32, "max_bucket_distance": 80}, {SIGNAL: (1, 1600)}, lambda m, x: m(x)[0]
    ),
    "transformers/sew": of_transformers(
        "SEWModel SEWConfig", {**AUDIO, "squeeze_factor": 2}, {SIGNAL: (1, 1600)}, lambda m, x: m(x)[0]
    ),
    "transformers/ast": of_transformers(
        "ASTModel ASTConfig",
        {**LAYERS, "max_length": 64, "num_mel_bins": 32, "patch_size": 16, "frequency_stride": 10, "time_stride": 10},
        {SIGNAL: (1, 64, 32)}, lambda module, x: module(x)[0],
    ),
    "transformers/wav2vec2_bert": of_transformers(
        "Wav2Vec2BertModel Wav2Vec2BertConfig",
        {**LAYERS, "feature_projection_input_dim": 16, "position_embeddings_type": "relative_key", "output_hidden_size": 32},
        {SIGNAL: (1, 24, 16)}, lambda module, x: module(x)[0],
    ),
    "transformers/moonshine": of_transformers(
        "MoonshineModel MoonshineConfig",
        {"vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "encoder_num_hidden_layers": 2,
         "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4},
        {SIGNAL: (1, 4000)}, lambda module, x: module.encoder(x)[0],
    ),
    "transformers/dac": of_transformers(
        "DacModel DacConfig",
        {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_hidden_size": 32, "n_codebooks": 2,
         "codebook_size": 32, "codebook_dim": 8, "upsampling_ratios": [4, 2]},
        {SIGNAL: (1, 1, 256)}, lambda module, x: module.decoder(module.encoder(x)), transformer=False,
    ),
    "transformers/siglip": of_transformers(
        "SiglipVisionModel SiglipVisionConfig", {**LAYERS, "image_size": 32, "patch_size": 8}, {IMAGE: (1, 3, 32, 32)},
        lambda module, x: module(x)[1],
    ),
    "transformers/layoutlmv3": of_transformers(
        "LayoutLMv3Model LayoutLMv3Config",
        {**SMALL, "visual_embed": False, "coordinate_size": 4, "shape_size": 8, "has_spatial_attention_bias": False}, MASK, masked,
    ),
    "transformers/marian": of_transformers(
        "MarianModel MarianConfig", {**SEQUENCES, "max_position_embeddings": 64, "pad_token_id": 0, "decoder_start_token_id": 0},
        MASK, translated,
    ),
    "transformers/prophetnet": of_transformers(
        "ProphetNetEncoder ProphetNetConfig",
        {"vocab_size": 2000, "hidden_size": 32, "encoder_ffn_dim": 64, "num_encoder_layers": 2, "num_encoder_attention_heads": 4,
         "max_position_embeddings": 64},
        MASK, masked,
    ),
    "transformers/textnet": of_transformers(
        "TextNetForImageClassification TextNetConfig", {"num_labels": 10}, {IMAGE: (1, 3, 64, 64)},
        lambda module, x: module(x).logits, transformer=False,
    ),
    "transformers/mgp_str": of_transformers(
        "MgpstrForSceneTextRecognition MgpstrConfig",
        {"image_size": [16, 64], "patch_size": 4, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "max_token_length": 8, "num_character_labels": 20, "num_bpe_labels": 30, "num_wordpiece_labels": 30},
        {IMAGE: (1, 3, 16, 64)}, lambda module, x: module(x).logits[0],
    ),
    **{f"timm/{name}": of_timm(name, size) for name, size in LATER_OF_TIMM.items()},
}  # fmt: skip

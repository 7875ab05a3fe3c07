"""What is chosen by its name. It imports nothing, so that help and completion, which list the names, are there at once."""

from __future__ import annotations

OVLPT, STOCK, FLOAT = "ovlpt", "stock", "float"  # the sides of a measurement
HINTS = {"latency": "LATENCY", "throughput": "THROUGHPUT", "none": None}

# precision of ``--expect``: as counters and execution graphs have it
EXPECTABLE = {"int8": ("u8", "i8"), "u8": ("u8",), "i8": ("i8",), "f32": ("f32",), "f16": ("f16",), "bf16": ("bf16",)}

DP4A, XMX, NO_INT8 = "DP4A", "XMX", "no int8"
GPUS = {
    "gen9": NO_INT8, "xelp": DP4A, "dg2": XMX, "mtl": DP4A, "arl": XMX, "lnl": XMX, "bmg": XMX, "ptl": XMX, "nvl": XMX,
}  # how each computes in int8  # fmt: skip
EXECUTABLE = tuple(gpu for gpu, how in GPUS.items() if how == DP4A)

# name: the variables' value, and what oneDNN then says of itself, in the words of new releases and of 2024.6
INSTRUCTION_SETS = {
    "sse41": ("SSE41", "Intel SSE4.1"),
    "avx2": ("AVX2", "Intel AVX2"),
    "avx2_vnni": ("AVX2_VNNI", "Intel AVX2 with Intel DL Boost"),
    "avx512": ("AVX512_CORE", "Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions"),
    "avx512_vnni": ("AVX512_CORE_VNNI", "Intel AVX-512 with Intel DL Boost"),
    "avx512_bf16": ("AVX512_CORE_BF16", "Intel AVX-512 with Intel DL Boost and bfloat16 support"),
    "avx512_fp16": (
        "AVX512_CORE_FP16",
        "Intel AVX 10.1",
        "Intel AVX-512 with float16, Intel DL Boost and bfloat16 support",
    ),
    "amx": (
        "AVX512_CORE_AMX",
        "Intel AVX10.1 and Intel AMX with bfloat16 and 8-bit integer support",
        "Intel AVX-512 with float16, Intel DL Boost and bfloat16 support"
        " and Intel AMX with bfloat16 and 8-bit integer support",
    ),
}

# whose arithmetic: the values of every ``method`` argument
METHODS = {
    "tflite-reference": "LiteRT's reference kernels (BUILTIN_REF)",
    "tflite-optimized": "LiteRT's optimized x86 kernels (BUILTIN_WITHOUT_DEFAULT_DELEGATES)",
    "tflite-2.5": "the optimized x86 kernels of TensorFlow 2.5, its default",
    "tflite-xnnpack": "LiteRT with the XNNPACK delegate, today's default",
    "onnx": "ONNX Runtime on x86",
    "caffe2": "Caffe2's Int8 operators (QNNPACK)",
    "openvino": "OpenVINO's CPU plugin on x86",
    "torch-qnnpack": "PyTorch today, engine qnnpack",
    "torch-fbgemm": "PyTorch today, engine fbgemm",
    "torch-x86": "PyTorch today, engine x86",
    "torch-onednn": "PyTorch today, engine onednn",
    "snps": "SNPS-Caffe's document, its matrix of TFLite's convolutions",
}
RUNTIMES = tuple(name for name in METHODS if name != "snps")  # the methods that a runtime can be asked about

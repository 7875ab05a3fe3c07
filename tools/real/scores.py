"""How well a task was done: a score for each sample of the evaluation, 0 to 1, from a network's outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Outputs = Sequence[Sequence[np.ndarray]]  # by sample, then by output
Score = Callable[[Outputs, Sequence[object]], np.ndarray]


def right_class(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """1 where the largest value stands at the true index, or at one of a set of true indices."""
    found = [int(each[0][0].argmax()) for each in outputs]
    return np.array(
        [index in (true if isinstance(true, set) else {true}) for index, true in zip(found, truth, strict=True)], float
    )


def exact_line(alphabet: Sequence[str]) -> Score:
    """1 where the text that the best path through the characters spells is the line's, spaces aside; 0 is not a character."""

    def score(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
        return np.array(
            [
                spell(each[0][0], alphabet) == str(line).replace(" ", "")
                for each, line in zip(outputs, truth, strict=True)
            ],
            float,
        )

    return score


def spell(probabilities: np.ndarray, alphabet: Sequence[str]) -> str:
    """The text of a path [steps, characters]: repetitions count once, index 0 separates, spaces are left out."""
    path = probabilities.argmax(-1)
    kept = [index for step, index in enumerate(path) if index and (step == 0 or index != path[step - 1])]
    return "".join(alphabet[index - 1] for index in kept).replace(" ", "")


def f1(found: np.ndarray, true: np.ndarray) -> float:
    """Harmonic mean of precision and recall of two bool arrays; 1 where both are empty."""
    total = found.sum() + true.sum()
    return float(2 * (found & true).sum() / total) if total else 1.0


def text_area(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """F1 of the pixels above 0.3 against the inner parts of the lines' boxes, which the detector is trained to mark."""
    scores = []
    for each, boxes in zip(outputs, truth, strict=True):
        found = each[0][0, 0] > 0.3
        true = np.zeros_like(found)
        for left, top, right, bottom in boxes:
            shrink = int(0.22 * (bottom - top))
            true[top + shrink : bottom - shrink, left + shrink : right - shrink] = True
        scores.append(f1(found, true))
    return np.array(scores)


def frames(output: int = 0, threshold: float = 0.5, index: int | None = None) -> Score:
    """F1 of the values of an output above the threshold, in each sample; ``index``: of the last axis."""

    def score(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
        return np.array(
            [
                f1(np.squeeze(each[output] if index is None else each[output][..., index]) > threshold, true)
                for each, true in zip(outputs, truth, strict=True)
            ]
        )

    return score


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    left, top = np.maximum(first[:2], second[:2])
    right, bottom = np.minimum(first[2:], second[2:])
    common = max(0.0, right - left) * max(0.0, bottom - top)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return common / (sum(areas) - common)


def face(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """1 where the surest box covers the face by half (None: where no box is surer than a half)."""
    grids = [(16, 2), (8, 6)]
    anchors = np.concatenate([
        np.repeat(np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1).reshape(-1, 2), boxes, 0) / size + 0.5 / size
        for size, boxes in grids
    ])  # fmt: skip
    scores = []
    for (regressed, sureness), true in zip(outputs, truth, strict=True):
        best = int(sureness[0, :, 0].argmax())
        if true is None:
            scores.append(float(sureness[0, best, 0] < 0))
            continue
        centre, size = regressed[0, best, :2] / 128 + anchors[best], regressed[0, best, 2:4] / 128
        scores.append(
            float(
                sureness[0, best, 0] > 0 and overlap(np.concatenate([centre - size / 2, centre + size / 2]), true) > 0.5
            )
        )
    return np.array(scores)


def letters(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """F1 of the boxes that are surer than a tenth and cover no surer one, against those of the letters.

    In each cell of grids of 8, 16 and 32 pixels the network gives centre and size, as a logarithm, in cells, and how
    sure it is.
    """
    places, cells = [], []
    for cell in (8, 16, 32):
        rows, columns = np.mgrid[: 416 // cell, : 416 // cell]
        places.append(np.stack([columns, rows], -1).reshape(-1, 2))
        cells.append(np.full((rows.size, 1), cell))
    place, cell = np.concatenate(places), np.concatenate(cells)
    scores = []
    for ((found,),), boxes in zip(outputs, truth, strict=True):
        centre, size = (found[:, :2] + place) * cell, np.exp(found[:, 2:4]) * cell
        corners, sureness = np.concatenate([centre - size / 2, centre + size / 2], 1), found[:, 4] * found[:, 5]
        kept: list[np.ndarray] = []
        for index in np.argsort(-sureness)[: int((sureness > 0.1).sum())]:
            if all(overlap(corners[index], other) < 0.45 for other in kept):
                kept.append(corners[index])
        hits = sum(any(overlap(each, np.array(box, float)) > 0.5 for each in kept) for box in boxes)
        scores.append(2 * hits / (len(kept) + len(boxes)))
    return np.array(scores)


def half_semitone(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """The share of windows in which the surest of 360 steps of 20 cents is within 50 cents of the tone."""
    found = [1997.38 + 20 * each[0].argmax(1) for each in outputs]
    return np.array([(np.abs(cents - true) <= 50).mean() for cents, true in zip(found, truth, strict=True)])


def nearest(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """1 where an embedding is nearer to its own kind's mean than to others'; truth: (kind, whether it counts to the mean)."""
    values = np.stack([np.ravel(each[0]) for each in outputs])
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    kinds = sorted({kind for kind, _ in truth})
    means = np.stack([values[[each == (kind, True) for each in truth]].mean(0) for kind in kinds])
    asked = [index for index, (_, enrolled) in enumerate(truth) if not enrolled]
    return np.array([kinds[int((means @ values[index]).argmax())] == truth[index][0] for index in asked], float)


def matched(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """1 where the nearest of the second halves belongs to a first half; truth: (pair, half). Outputs: token states."""
    values = np.stack([each[0][0].mean(0) for each in outputs])
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    first, second = (values[[index for index, (_, half) in enumerate(truth) if half == wanted]] for wanted in (0, 1))
    return (np.argmax(first @ second.T, 1) == np.arange(len(first))).astype(float)


def cleaned(outputs: Outputs, truth: Sequence[object]) -> np.ndarray:
    """Signal to noise ratio of speech after the gains, 30 dB as 1; truth: spectra of the clean and the noisy speech."""
    scores = []
    for each, (clean, noisy) in zip(outputs, truth, strict=True):
        left = np.clip(each[0][0], 1e-4, 1) * noisy - clean
        scores.append(
            np.clip(10 * np.log10((np.abs(clean) ** 2).sum() / max((np.abs(left) ** 2).sum(), 1e-30)) / 30, 0, 1)
        )
    return np.array(scores)


def same_person(outputs: Outputs, reference: Outputs) -> np.ndarray:
    """Mean of the mask's overlap with that of the float network and of the share of landmarks within 3 % of its."""
    scores = []
    for each, true in zip(outputs, reference, strict=True):
        mask, expected = each[2] > 0, true[2] > 0
        joint = (mask & expected).sum() / max(1, (mask | expected).sum())
        points, wanted = (value[0][0].reshape(-1, 5)[:, :2] / 256 for value in (each, true))
        scores.append((joint + (np.abs(points - wanted).max(1) < 0.03).mean()) / 2)
    return np.array(scores)

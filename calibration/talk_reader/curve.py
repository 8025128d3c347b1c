"""Learning curves of a linear reading: `python -m calibration.talk_reader.curve --material FILE...`.

What a strong model holds against a turn is fitted on ever more turns; people's verdicts on what is left out measure it.
"""

import random
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from calibration.command import run_command
from calibration.talk_reader.lessons import read_material
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder

_SIZES = (5_000, 10_000, 20_000, 40_000)
_DRAWS, _RIDGE = 5, 300.0
_MEASURED = {"dbdc3": "dbdc3/0", "convai2": ""}
_err = Console(stderr=True)


def _area(scores: NDArray[Any], is_fault: NDArray[Any]) -> float:
    ranks = np.empty(len(scores))
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    faults = is_fault.sum()
    return float((ranks[is_fault].sum() - faults * (faults + 1) / 2) / (faults * (len(scores) - faults)))


def curve(
    material: Annotated[list[Path], typer.Option(help="Files that calibration.talk_reader.material wrote.")],
) -> None:
    """Print areas under the curve by the turns that were taught, and with each corpus left out."""
    encoder = SentenceEncoder(1)
    rows: list[tuple[str, str, float | None, float | None, str, str]] = []
    for talk in read_material(material):
        for place in sorted(talk.machine):
            target = talk.targets.get(place)
            if target and (target.held is not None or target.verdict is not None) and not talk.is_scene:
                said = talk.lines[place - 1] if place else ""
                rows.append((talk.corpus, talk.writer, target.held, target.verdict, said, talk.lines[place]))
    words = sorted({text for row in rows for text in row[4:]})
    vectors = np.concatenate([encoder.encode(words[at : at + 256]) for at in range(0, len(words), 256)])
    number = {text: at for at, text in enumerate(words)}
    before, turn = vectors[[number[row[4]] for row in rows]], vectors[[number[row[5]] for row in rows]]
    lengths = np.log1p([[len(row[4]), len(row[5])] for row in rows])
    features = np.hstack([turn, before, turn * before, lengths, np.ones((len(rows), 1))]).astype(np.float32)
    corpora, held = (
        np.array([row[0] for row in rows]),
        np.array([row[2] if row[2] is not None else np.nan for row in rows]),
    )
    measured = {
        corpus: [
            at for at, row in enumerate(rows) if row[0] == corpus and row[3] is not None and row[1].startswith(writer)
        ]
        for corpus, writer in _MEASURED.items()
    }
    unseen = {at for places in measured.values() for at in places}
    taught = [at for at in range(len(rows)) if not np.isnan(held[at]) and at not in unseen and corpora[at] != "convai2"]
    _err.print(
        f"{len(taught)} turns: { {name: int((corpora[taught] == name).sum()) for name in np.unique(corpora[taught])} }"
    )

    def areas(chosen: list[int]) -> list[float]:
        x, y = features[chosen], held[chosen]
        y = np.log(np.clip(y, 0.02, 0.98) / (1 - np.clip(y, 0.02, 0.98)))
        gram = x.T @ x + _RIDGE * np.eye(x.shape[1], dtype=np.float32)
        weights = np.linalg.solve(gram, x.T @ y)
        return [
            _area(features[places] @ weights, np.array([(rows[at][3] or 0) >= 0.5 for at in places]))
            for places in measured.values()
        ]

    results: dict[str, list[list[float]]] = defaultdict(list)
    for draw in range(_DRAWS):
        order = random.Random(draw).sample(taught, len(taught))
        for size in _SIZES:
            if size <= len(order):
                results[f"{size} turns"].append(areas(order[:size]))
    results[f"all {len(taught)}"].append(areas(taught))
    for name in np.unique(corpora[taught]):
        results[f"without {name}"].append(areas([at for at in taught if corpora[at] != name]))
        results[f"{name} alone"].append(areas([at for at in taught if corpora[at] == name]))
    for name, found in results.items():
        print(
            name,
            " ".join(f"{corpus} {value:.3f}" for corpus, value in zip(measured, np.mean(found, axis=0), strict=True)),
        )


if __name__ == "__main__":
    run_command(curve)

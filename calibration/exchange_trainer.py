"""Train the exchange classifier on the labelled talks: `python -m calibration.exchange_trainer` writes its weights.

Each stage gets a ridge and a softmax regression, which make different errors. Three folds of talks give their mixing
weights. Features outnumber turns, so the solvers work in the dual: they find one
coefficient per turn, and the weights are the sum of the turns' features times these coefficients.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.command import run_command
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import sha256_of
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_monitor.context.exchange import (
    ATTRIBUTES,
    MARKS,
    POLARITIES,
    SHIPPED,
    Exchange,
    ExchangeFeatures,
    ExchangeStage,
    evidence,
    probability,
    softmax,
)

TALKS = shipped_file("calibration", "talks")

_ABOUT = {
    "emotions": Attribute.EMOTIONS,
    "engagement": Attribute.ENGAGEMENT,
    "turns": Attribute.CONVERSATIONAL_MECHANICS,
    "knowledge": Attribute.KNOWLEDGE_STATE,
    "intent": Attribute.USER_INTENTION,
    "social": Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS,
    "norms": Attribute.SOCIAL_NORMS_AND_ROUTINES,
}
_SIGNS = {"+": Polarity.COMPETENCE, "-": Polarity.ERROR}
_TURN = re.compile(r"(?P<who>[ruv]): (?P<text>[^|]*[^|\s])(?P<label> \|(?: (?P<sign>[+-])(?P<about>(?: [a-z]+)+))?)?")


class LabelledTalkError(TactfulError, ValueError):
    """A line is not a turn; the message gives the place."""


@record
class LabelledTurn:
    """One turn of a talk; a robot's turn may have a polarity and attributes."""

    is_robot: bool
    text: str
    polarity: Polarity | None = None  # None for an ordinary turn
    attributes: tuple[Attribute, ...] = ()


@record
class LabelledExchange:
    """One robot turn in its talk, with its label."""

    talk: int
    exchange: Exchange
    polarity: Polarity | None
    attributes: tuple[Attribute, ...]


def read_talks(folder: Path = TALKS) -> tuple[tuple[LabelledTurn, ...], ...]:
    """Read all talks of a folder, in order of file names."""
    return tuple(talk for path in sorted(folder.glob("*.txt")) for talk in read_file(path))


def talks_sha256() -> str:
    """Return the digest of the shipped talks."""
    return sha256_of({path.name: path.read_text(encoding="utf-8") for path in TALKS.glob("*.txt")})


def exchanges(talks: Sequence[Sequence[LabelledTurn]]) -> Iterator[LabelledExchange]:
    """Yield each robot turn, with everything before and after it."""
    for number, talk in enumerate(talks):
        own = [at for at, turn in enumerate(talk) if turn.is_robot]
        for before, at, then in zip([-1, *own], own, [*own[1:], len(talk)], strict=False):
            yield LabelledExchange(
                talk=number,
                exchange=Exchange(
                    before=" ".join(turn.text for turn in talk[before + 1 : at]),
                    said=talk[at].text,
                    after=" ".join(turn.text for turn in talk[at + 1 : then]),
                    then=talk[then].text if then < len(talk) else "",
                    earlier=talk[before].text if before >= 0 else "",
                    opening=before < 0,
                ),
                polarity=talk[at].polarity,
                attributes=talk[at].attributes,
            )


def read_file(path: Path) -> list[tuple[LabelledTurn, ...]]:
    """Read the talks of a file; raise TalkError at a line that is no turn."""
    talks: list[list[LabelledTurn]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# "):
            talks.append([])
        elif line and not talks:
            raise LabelledTalkError(f"{path.name}, line {number}: a talk begins with a line '# PLACE; PERSON; ROBOT'")
        elif line:
            talks[-1].append(_turn(line, f"{path.name}, line {number}"))
    return [tuple(talk) for talk in talks]


def _turn(line: str, where: str) -> LabelledTurn:
    matched = _TURN.fullmatch(line)
    if matched is None:
        raise LabelledTalkError(
            f"{where}: a turn is 'u: TEXT', 'v: TEXT' or 'r: TEXT |', with '+' or '-' and attributes after it"
        )
    is_robot, about = matched["who"] == "r", (matched["about"] or "").split()
    if is_robot != (matched["label"] is not None):
        raise LabelledTalkError(f"{where}: the robot's turns end in '|' and its label, and nobody else's do")
    if unknown := sorted(set(about) - set(_ABOUT)):
        raise LabelledTalkError(f"{where}: {', '.join(unknown)} is no attribute; they are {', '.join(_ABOUT)}")
    return LabelledTurn(
        is_robot=is_robot,
        text=matched["text"],
        polarity=_SIGNS[matched["sign"]] if matched["sign"] else None,
        attributes=tuple(_ABOUT[name] for name in about),
    )


RIDGE, SOFTMAX_RIDGE, LOGISTIC_RIDGE = 20.0, 3.0, 0.01
FOLDS = 3
_BLOCK = 2_048
_DESCENT_STEPS, _POWER_STEPS, _NEWTON_STEPS = 200, 30, 50
_MOST_STEPS, _LEFT_OVER, _NOTHING = 500, 1e-4, 1e-30  # of conjugate gradients

Matrix = NDArray[np.float64]
Products = NDArray[np.float32]  # Gram matrix of turns' features, and solutions from it


def main() -> None:
    """Train the exchange classifier on the shipped talks, and write its artefact."""
    write(list(exchanges(read_talks())), SentenceEncoder(cache_size=100_000), talks_sha256(), SHIPPED)


def write(examples: Sequence[LabelledExchange], encoder: SentenceEncoder, talks_digest: str, path: Path) -> None:
    """Train on the examples, and write the weights to `path`."""
    marked = np.array([[example.polarity is polarity for polarity in POLARITIES] for example in examples], float)
    about = np.array([[attribute in example.attributes for attribute in ATTRIBUTES] for example in examples], float)
    folds = np.array([example.talk % FOLDS for example in examples])
    arrays: dict[str, NDArray[np.generic]] = {}
    exchange_features = ExchangeFeatures.fit(encoder, (example.exchange for example in examples))
    features = np.empty(
        (len(examples), exchange_features.of(examples[0].exchange, max(ExchangeStage)).size), np.float32
    )
    for row, example in zip(features, examples, strict=True):
        row[:] = exchange_features.of(example.exchange, max(ExchangeStage))
    alike, begin = np.zeros((len(examples), len(examples)), np.float32), 0
    for stage in ExchangeStage:
        end = exchange_features.of(examples[0].exchange, stage).size
        _add_products(alike, features[:, begin:end])
        begin = end
        unseen = np.zeros((len(examples), MARKS))
        for fold in range(FOLDS):
            out, within = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            unseen[out] = alike[np.ix_(out, within)] @ _marks(alike[np.ix_(within, within)], marked[within])
        unseen_evidence = evidence(unseen)
        logistic = np.stack([_logistic(unseen_evidence[:, at], marked[:, at]) for at in range(len(POLARITIES))])
        likely = probability(unseen_evidence, logistic)
        counts = np.zeros((len(examples), MARKS + len(POLARITIES) * len(ATTRIBUTES)), np.float32)
        counts[:, :MARKS] = _marks(alike, marked)
        for at, right in enumerate(np.flatnonzero(column) for column in marked.T):
            first = MARKS + at * len(ATTRIBUTES)
            counts[right, first : first + len(ATTRIBUTES)] = _solved(alike[np.ix_(right, right)], about[right])
        arrays[f"weights_{stage}"] = (features[:, :end].T @ counts).astype(np.float16)
        arrays[f"logistic_{stage}"] = logistic
        _tell(stage, likely, marked)
    sources = {"talks": talks_digest, "turns": len(examples), "encoder": encoder.weights_sha256}
    np.savez_compressed(path, made_from=np.array(json.dumps(sources)), **exchange_features.to_arrays(), **arrays)  # type: ignore[arg-type]


def _add_products(alike: Products, features: Products) -> None:
    """Add the Gram matrix in blocks. One large product crashes the library and doubles the memory."""
    for begin in range(0, len(features), _BLOCK):
        end = begin + _BLOCK
        alike[begin:end, begin:] += features[begin:end] @ features[begin:].T
        alike[end:, begin:end] = alike[begin:end, end:].T


def _marks(alike: Products, marked: Matrix) -> Products:
    """Return the training targets of each turn, for every kind of evidence."""
    return np.column_stack([_solved(alike, marked), _softmax_counts(alike, marked)])


def _solved(alike: Products, aims: Matrix) -> Products:
    """Solve ridge regression by conjugate gradients, with one column per target."""
    counts = np.zeros(aims.shape, alike.dtype)
    left = ahead = aims.astype(alike.dtype)
    size = first = (left * left).sum(axis=0)
    for _ in range(_MOST_STEPS):
        turned = alike @ ahead + RIDGE * ahead
        step = size / np.maximum((ahead * turned).sum(axis=0), _NOTHING)
        counts, left = counts + step * ahead, left - step * turned
        before, size = size, (left * left).sum(axis=0)
        if (size <= _LEFT_OVER**2 * first).all():
            break
        ahead = left + size / np.maximum(before, _NOTHING) * ahead
    return counts


def _softmax_counts(alike: Products, marked: Matrix) -> Products:
    """Fit softmax regression over "none" and each polarity, by Nesterov's method with restarts."""
    aims = np.column_stack([1 - marked.sum(axis=1), marked])
    step = 1 / (_steepest(alike) / 2 + SOFTMAX_RIDGE)
    counts = ahead = np.zeros(aims.shape, alike.dtype)
    scores = scores_ahead = np.zeros(aims.shape, alike.dtype)  # invariant: alike @ counts and alike @ ahead
    pace = 1.0
    for _ in range(_DESCENT_STEPS):
        slope = softmax(scores_ahead) - aims + SOFTMAX_RIDGE * ahead
        reached = (ahead - step * slope).astype(alike.dtype)
        scores_reached = alike @ reached
        overshot = ((ahead - reached) * (scores_reached - scores)).sum() > 0
        next_pace = 1.0 if overshot else (1 + math.sqrt(1 + 4 * pace * pace)) / 2
        onward = 0.0 if overshot else (pace - 1) / next_pace
        ahead = reached + onward * (reached - counts)
        scores_ahead = scores_reached + onward * (scores_reached - scores)
        counts, scores, pace = reached, scores_reached, next_pace
    return counts


def _steepest(alike: Products) -> float:
    """Estimate the largest eigenvalue by power iteration."""
    direction = np.ones(len(alike), alike.dtype)
    for _ in range(_POWER_STEPS):
        direction = alike @ direction
        direction /= np.linalg.norm(direction)
    return float(direction @ (alike @ direction))


def _logistic(evidence_rows: Matrix, right: Matrix) -> Matrix:
    """Fit a logistic regression that weighs the kinds of evidence, by Newton's method."""
    counts = np.zeros(evidence_rows.shape[1])
    for _ in range(_NEWTON_STEPS):
        likely = probability(evidence_rows, counts)
        curvature = (evidence_rows * (likely * (1 - likely))[:, None]).T @ evidence_rows + LOGISTIC_RIDGE * np.eye(
            len(counts)
        )
        counts = counts + np.linalg.solve(curvature, evidence_rows.T @ (right - likely) - LOGISTIC_RIDGE * counts)
    return counts


def _tell(stage: ExchangeStage, likely: Matrix, marked: Matrix) -> None:
    for polarity, probabilities, right in zip(POLARITIES, likely.T, marked.T, strict=True):
        order = np.argsort(-probabilities)
        hits = np.cumsum(right[order])
        f1 = 2 * hits / (np.arange(1, len(order) + 1) + right.sum())
        best = int(f1.argmax())
        print(
            f"{stage.name.lower()}, {polarity}: of {len(order)} turns {right.mean():.0%} are marked; "
            f"best F1 {f1[best]:.2f} from probability {probabilities[order[best]]:.2f} on"
        )


if __name__ == "__main__":
    run_command(main)

"""Fit how a machine's turn reads on people's verdicts and on invented talk, and measure it on corpora left out whole.

Run: python -m calibration.verdict_fit TALKS.jsonl... [--answers ANSWERS.jsonl] [--limit TURNS]. Nothing is written.

The fit is a ridge regression on some fifty features that a reader can name. Each corpus has its own mean and scale of
verdicts and its own mean of each feature, because annotators were asked different things about different machines.
"""

import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from calibration.command import run_command
from calibration.exchange_trainer import exchanges
from calibration.exchange_trainer import read_talks as read_invented
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.evaluation.ranking import ranking_measures
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.meaning import Concepts, EncoderMatcher, TextMatcher
from norm_monitor.context.wording import asks_to_repeat, is_backchannel, is_question, is_request, is_unfinished, tokens
from sim_replays.talks.judge import TalkVerdicts
from sim_replays.talks.talk_file import judged_turns, read_talks

Array = NDArray[np.float64]
Features = dict[str, float]
INVENTED = "invented"
RIDGE = 0.5  # as a share of a feature's mean variance; chosen on the corpora below
_FOLDS, _DRAWS = 5, 400
_FOLLOWING = (
    *("unhappy_answer", "enthusiasm", "thanks", "repair_request", "stop", "praise", "misunderstood", "protest_wish"),
    *("protest_feeling", "protest", "protest_floor", "protest_manners", "ordinary", "farewell"),
)
_SAID = (
    *("ordinary", "sympathy", "apology", "repair_request", "asking_follow_up", "offering", "greeting", "farewell"),
    *("thanks", "welcome", "enthusiasm", "reassuring", "adapting"),
)
_COMMON = frozenset(
    (
        *(
            "the",
            "a",
            "an",
            "i",
            "you",
            "it",
            "is",
            "are",
            "was",
            "to",
            "of",
            "and",
            "in",
            "on",
            "for",
            "my",
            "your",
            "me",
        ),
        *("we", "that", "this", "do", "does", "did", "have", "has"),
    )
)


@record
class VerdictCorpus:
    """The turns of a corpus: a row of features each, the mean verdict, whether it is a fault, and its group."""

    name: str
    features: Array
    verdicts: Array
    is_fault: NDArray[np.bool_]
    groups: NDArray[np.str_]


def features(exchange: Exchange, matcher: TextMatcher) -> Features:
    """Return what a turn and its exchange show; the part before the dot names a family of features."""
    said, before, after, earlier = (
        set(tokens(text)) for text in (exchange.said, exchange.before, exchange.after, exchange.earlier)
    )
    asks, asked, follows = is_question(exchange.said), is_question(exchange.before), bool(exchange.after)

    def cosine(one: str, other: str) -> float:
        return matcher.similarity(one, other) if one and other else 0.0

    shared = _share(before - _COMMON, said - _COMMON)
    return {
        "relevance.cosine": cosine(exchange.said, exchange.before),
        "relevance.cosine_to_earlier": cosine(exchange.said, exchange.earlier),
        "relevance.words": shared,
        "relevance.is_reply": float(bool(exchange.before)),
        "relevance.asks_back": float(asks and asked),
        "relevance.answers": float(asked and not asks),
        "relevance.ignores_question": asked * (1 - shared),
        "repetition.of_earlier": _overlap(said, earlier),
        "repetition.of_person": _overlap(said, before),
        "repetition.within": 1 - len(said) / max(len(tokens(exchange.said)), 1),
        "form.length": float(np.log1p(len(tokens(exchange.said)))),
        "form.asks": float(asks),
        "form.unfinished": float(is_unfinished(exchange.said)),
        "form.opening": float(exchange.opening),
        "form.asked": float(asked),
        "form.length_before": float(np.log1p(len(tokens(exchange.before)))),
        "form.person_takes_up": cosine(exchange.before, exchange.earlier),
        "following.there": float(follows),
        "following.rephrases": cosine(exchange.after, exchange.before),
        "following.repeats": _overlap(after - _COMMON, before - _COMMON),
        "following.takes_up": cosine(exchange.after, exchange.said),
        "following.takes_up_words": _share(said - _COMMON, after - _COMMON),
        "following.asks": float(is_question(exchange.after)),
        "following.asks_again": float(follows and asks_to_repeat(exchange.after)),
        "following.length": float(np.log1p(len(tokens(exchange.after)))),
        "following.backchannel": float(follows and is_backchannel(exchange.after)),
        "following.request": float(follows and is_request(exchange.after)),
        "stock.backchannel": float(is_backchannel(exchange.said)),
        **{f"following.{name}": matcher.match(exchange.after, name).nearness for name in _FOLLOWING},
        **{f"stock.{name}": matcher.match(exchange.said, name).nearness for name in _SAID},
    }


def fit(corpora: Sequence[VerdictCorpus], columns: Sequence[int]) -> Array:
    """Return a weight for each of the columns; a corpus counts by the root of its number of turns."""
    parts = [
        (corpus.features[:, columns] - corpus.features[:, columns].mean(axis=0), corpus.verdicts) for corpus in corpora
    ]
    shares = [len(rows) ** 0.5 / sum(len(rows) ** 0.5 for rows, _ in parts) for rows, _ in parts]
    moments = sum(share * rows.T @ rows / len(rows) for share, (rows, _) in zip(shares, parts, strict=True))
    aims = sum(
        share * rows.T @ (verdicts - verdicts.mean()) / max(float(verdicts.std()), 1e-9) / len(rows)
        for share, (rows, verdicts) in zip(shares, parts, strict=True)
    )
    scale = np.sqrt(np.diag(moments)) + 1e-9
    system = moments / np.outer(scale, scale) + RIDGE * np.eye(len(columns))
    return np.asarray(np.linalg.solve(system, aims / scale) / scale)


def left_out(
    corpora: Sequence[VerdictCorpus], teachers: Sequence[VerdictCorpus], invented: VerdictCorpus, names: Sequence[str]
) -> dict[str, dict[str, Array]]:
    """Score the turns of each corpus, and the odd invented talks, by fits that saw no turn of theirs."""
    odd = np.array([int(group) % 2 == 1 for group in invented.groups])
    within, out = _part(invented, ~odd), _part(invented, odd)
    families = {name.split(".")[0] for name in names}
    every = list(range(len(names)))
    scores: dict[str, dict[str, Array]] = {}
    for corpus in (*corpora, out):
        people = [other for other in (*corpora, *teachers) if other.name != corpus.name]
        fits = {"invented": ([within], every), "people": (people, every), "both": ([*people, within], every)}
        for family in sorted(families):
            columns = [at for at, name in enumerate(names) if name.startswith(f"{family}.")]
            fits[f"{family} alone"] = people, columns
        rows = {how: corpus.features[:, columns] @ fit(seen, columns) for how, (seen, columns) in fits.items()}
        folds = np.unique(corpus.groups, return_inverse=True)[1] % _FOLDS
        own = np.zeros(len(folds))
        for fold in range(_FOLDS):
            own[folds == fold] = corpus.features[folds == fold] @ fit([_part(corpus, folds != fold)], every)
        scores[corpus.name] = {**rows, "own talks": own}
    return scores


def area(corpus: VerdictCorpus, scores: Array) -> tuple[float, tuple[float, float]]:
    """Return the area under the curve and its 95 % interval over groups."""
    groups, places = np.unique(corpus.groups, return_inverse=True)
    drawn = [np.bincount(row, minlength=len(groups))[places] for row in draw_clusters(len(groups), _DRAWS, 0)]
    values = ranking_measures(scores, corpus.is_fault, np.array([np.ones(len(places)), *drawn], float))[0]
    return float(values[0]), percentile_interval(values[1:][~np.isnan(values[1:])])


def collect(
    name: str, rows: Iterable[tuple[Exchange, float, bool, str]], matcher: TextMatcher
) -> tuple[VerdictCorpus, list[str]]:
    """Compute the features of turns with their verdict, whether it is a fault, and their group."""
    exchanges_of, verdicts, faults, groups = zip(*rows, strict=True)
    found = [features(exchange, matcher) for exchange in track(exchanges_of, name, console=Console(stderr=True))]
    corpus = VerdictCorpus(
        name=name,
        features=np.array([list(row.values()) for row in found]),
        verdicts=np.array(verdicts, float),
        is_fault=np.array(faults, bool),
        groups=np.array(groups, str),
    )
    return corpus, list(found[0])


def measure(
    files: Annotated[list[Path], typer.Argument(metavar="TALKS.jsonl", help="Talks with people's verdicts.")],
    answers_file: Annotated[
        Path | None, typer.Option("--answers", help="A strong model's answers, which teach beside the votes.")
    ] = None,
    limit: Annotated[int, typer.Option(min=10, help="Turns of each corpus, drawn by talk.")] = 2_000,
) -> None:
    """Measure fits on invented talk, on people's verdicts and on both, leaving each corpus out whole."""
    matcher = EncoderMatcher(SentenceEncoder(remembered=50_000), Concepts.shipped())
    talks = sorted(read_talks(files), key=lambda talk: talk.corpus)
    answers = TalkVerdicts.read(answers_file, talks).by_turn if answers_file else {}
    corpora: list[VerdictCorpus] = []
    teachers: list[VerdictCorpus] = []
    names: list[str] = []
    for family, members in groupby(talks, key=lambda talk: talk.corpus.split("-")[0]):
        # The talks that a strong model answered come first.
        drawn = sorted(_shuffled(members), key=lambda talk: (talk.id, 1) not in answers)
        turns = [turn for talk in drawn for turn in judged_turns(talk)][:limit]
        rows = [(one.exchange, float(np.mean(one.turn.faults)), one.turn.is_fault, one.group) for one in turns]
        corpus, names = collect(family, rows, matcher)
        corpora.append(corpus)
        keys = [(one.talk_id, one.number) for one in turns]
        is_answered = np.array([key in answers for key in keys])
        if is_answered.sum() > 1:
            taught = np.array([answers.get(key, 0.0) for key in keys])
            teachers.append(_part(replace(corpus, verdicts=taught), is_answered))
    by_talk = groupby(exchanges(read_invented()), key=lambda example: example.talk)
    marked = [example for talk in _shuffled(list(group) for _, group in by_talk) for example in talk][:limit]
    is_error = [example.polarity is Polarity.ERROR for example in marked]
    invented, names = collect(
        INVENTED,
        [(one.exchange, float(bad), bad, str(one.talk)) for one, bad in zip(marked, is_error, strict=True)],
        matcher,
    )
    scores = left_out(corpora, teachers, invented, names)
    columns = list(scores[INVENTED])
    table = Table("left out", "turns", *columns, title="area under the curve, 0.5 by chance")
    odd = np.array([int(group) % 2 == 1 for group in invented.groups])
    for corpus in (*corpora, _part(invented, odd)):
        figures = [area(corpus, scores[corpus.name][column]) for column in columns]
        table.add_row(
            corpus.name,
            str(len(corpus.verdicts)),
            *(f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, (low, high) in figures),
        )
    Console(highlight=False, width=None if sys.stdout.isatty() else 1_000).print(table)


T = TypeVar("T")


def _shuffled(items: Iterable[T]) -> list[T]:
    """Return the items in an order that is drawn once for all."""
    drawn = list(items)
    random.Random(0).shuffle(drawn)
    return drawn


def _part(corpus: VerdictCorpus, rows: NDArray[np.bool_]) -> VerdictCorpus:
    return VerdictCorpus(
        name=corpus.name,
        features=corpus.features[rows],
        verdicts=corpus.verdicts[rows],
        is_fault=corpus.is_fault[rows],
        groups=corpus.groups[rows],
    )


def _share(known: set[str], words: set[str]) -> float:
    return len(known & words) / max(len(words), 1)


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


if __name__ == "__main__":
    run_command(measure)

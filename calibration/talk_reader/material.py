"""Collect what the talk reader is taught, or measured on.

Run: python -m calibration.talk_reader.material --out FILE [TALKS.jsonl...] [--answers ANSWERS.jsonl].
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated
from zlib import crc32

import typer

from calibration.command import run_command
from calibration.exchange_trainer import LabelledTurn, read_file
from calibration.exchange_trainer import read_talks as read_invented
from calibration.leave_one_writer_out import shipped_sources
from calibration.talk_reader.lessons import Kind, Scene, Target, TaughtTalk, shipped_lines
from calibration.talk_reader.swaps import replied_lines, swaps
from calibration.talk_verdicts.talk_file import Answer, Talk, read_lines, read_talks
from calibration.unit_examples import labels_of
from norm_core.files.atomic_file import write_atomic
from norm_core.files.data_files import shipped_file
from norm_core.records.json_codec import to_json
from norm_core.records.speech import RobotSpeech, Utterance
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.talk_lines import talk_lines
from norm_monitor.context.turns import turns_of
from norm_monitor.encounters.encounter import Encounter, make_talk_name
from norm_monitor.encounters.library import SPLITS
from sim_replays.monitor_bench.script_driver import make_script_records

# Folders of talks by further writers: pairs of which one ends in an error or holds one, and whole talks.
_FOLDERS = ("hurtful", "plain_errors", "whole_talks")
_TARGETS = ("kind", "held", "good", "verdict", "possible", "fitting")
# A corpus of judged talks has as many parts, which can be left out like a writer.
_PARTS = 5
# Talks of a writer, or of a part of a corpus, that are made to end with an answer to another question.
_SWAPS = 60


def invented_talks(
    talks: Sequence[Sequence[LabelledTurn]], answers: Mapping[tuple[str, int], Answer], writer: str = "talks"
) -> Iterator[TaughtTalk]:
    """Yield labelled talks, those of `calibration/talks` or a writer's, with a strong model's answers if there are."""
    for number, talk in enumerate(talks):
        name = f"{writer}:{number}"
        spoken = [turn for turn in talk if turn.text.strip()]
        lines = talk_lines(("" if turn.is_robot else "person", turn.text) for turn in spoken)
        targets: dict[int, Target] = {}
        for place, turn in enumerate(spoken):
            if turn.is_robot:
                answer = answers.get((name, len(targets) + 1))
                targets[place] = Target(
                    kind=Kind.of(turn.polarity),
                    attributes=turn.attributes,
                    held=answer.fault if answer else None,
                    good=answer.good if answer else None,
                )
        yield TaughtTalk(
            id=name, corpus="invented", writer=writer, lines=tuple(lines), machine=frozenset(targets), targets=targets
        )


def further_talks() -> Iterator[TaughtTalk]:
    """Yield the talks of further writers, by folder and the writer's letter (`hurtful/a`)."""
    for folder in _FOLDERS:
        for path in sorted(shipped_file("calibration", f"talk_reader/{folder}").glob("*.txt")):
            yield from invented_talks(read_file(path), {}, f"{folder}/{path.stem}")


def encounter_talk(encounter: Encounter, writer: str) -> TaughtTalk:
    """Return the lines of an encounter as its script gives them, with the coder's labels."""
    entries, truth = make_script_records(encounter)
    records = [entry for _, entry in entries]
    turns = turns_of(
        [entry for entry in records if isinstance(entry, Utterance)],
        [entry for entry in records if isinstance(entry, RobotSpeech)],
        truth.end_ns,
    )
    turns = tuple(turn for turn in turns if turn.text.strip())
    silences = [Unit.of_silence(turn, None) for turn in turns if not turn.is_robot]
    labels = labels_of([*map(Unit.of_turn, turns), *silences], truth.events)
    return TaughtTalk(
        id=make_talk_name(encounter),
        corpus="encounters",
        writer=writer,
        lines=tuple(talk_lines(("" if turn.is_robot else turn.speaker_id or "person", turn.text) for turn in turns)),
        machine=frozenset(place for place, turn in enumerate(turns) if turn.is_robot),
        targets={
            place: Target(
                kind=Kind.of(labels[place].polarity if place in labels else None),
                attributes=labels[place].attributes if place in labels else (),
            )
            for place, turn in enumerate(turns)
            if turn.is_robot
        },
        onsets_ns=tuple(turn.start_ns for turn in turns),
    )


def judged_talk(talk: Talk, answers: Mapping[tuple[str, int], Answer]) -> TaughtTalk:
    """Return a talk that people judged, with a strong model's answers where there are any."""
    turns = [turn for turn in talk.turns if turn.text.strip()]
    targets: dict[int, Target] = {}
    number = 0
    for place, turn in enumerate(turns):
        if turn.is_machine:
            number += 1
            answer = answers.get((talk.id, number))
            verdict = sum(turn.faults) / len(turn.faults) if turn.faults else None
            if answer or verdict is not None:
                targets[place] = Target(
                    held=answer.fault if answer else None, good=answer.good if answer else None, verdict=verdict
                )
    return TaughtTalk(
        id=talk.id,
        corpus=talk.corpus.split("-")[0],
        writer=f"{talk.corpus.split('-')[0]}/{crc32(talk.id.encode()) % _PARTS}",
        lines=tuple(talk_lines(("" if turn.is_machine else turn.by, turn.text) for turn in turns)),
        machine=frozenset(place for place, turn in enumerate(turns) if turn.is_machine),
        targets=targets,
    )


def written_scenes() -> Iterator[TaughtTalk]:
    """Yield the shipped scenes; their writer is the letter with which their name begins."""
    for scene in shipped_lines(Scene, "scenes.jsonl.gz"):
        yield scene.talk(f"scenes/{scene.id[0]}")


def counts(talks: Iterable[TaughtTalk]) -> dict[str, Counter[str]]:
    """Count talks, machine turns and known targets by corpus."""
    rows: dict[str, Counter[str]] = {}
    for talk in talks:
        row = rows.setdefault(talk.corpus, Counter())
        row["talks"] += 1
        row["turns"] += len(talk.machine)
        for target in talk.targets.values():
            row.update(name for name in _TARGETS if getattr(target, name) is not None)
    return rows


def collect(
    out: Annotated[Path, typer.Option(help="File to write.")],
    talk_files: Annotated[list[Path] | None, typer.Argument(metavar="TALKS.jsonl", help="Talks with machines.")] = None,
    answers_files: Annotated[
        list[Path] | None, typer.Option("--answers", help="A strong model's answers about them or the invented talks.")
    ] = None,
) -> None:
    """Write invented talks, encounters, scenes, lines with replies, further talks and swaps of all as lessons."""
    answers = {
        (answer.talk, answer.n): answer
        for path in answers_files or ()
        for _, answer in read_lines(path, Answer, "{talk, n, fault, good}")
    }
    talks = [
        *invented_talks(read_invented(), answers),
        *further_talks(),
        *(encounter_talk(source.encounter, source.writer) for source in shipped_sources(SPLITS)),
        *(judged_talk(talk, answers) for talk in read_talks(talk_files or ())),
        *written_scenes(),
        *(talk for line in replied_lines() for talk in line.talks()),
    ]
    by_writer: defaultdict[tuple[str, str], list[TaughtTalk]] = defaultdict(list)
    for talk in talks:
        by_writer[talk.corpus, talk.writer].append(talk)
    talks += [swapped for group in by_writer.values() for swapped in swaps(group, _SWAPS)]
    write_atomic(out, "".join(f"{to_json(talk)}\n" for talk in talks))
    for corpus, row in counts(talks).items():
        print(f"{corpus}: {', '.join(f'{count} {name}' for name, count in row.items())}")


if __name__ == "__main__":
    run_command(collect)

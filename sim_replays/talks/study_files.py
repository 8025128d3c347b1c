"""Talks from the tables and coding files of a study."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from norm_core.records.flag import Polarity
from norm_core.runtime.config import check_config
from sim_replays.talks.talk_file import MACHINES, Talk, TalkError, read_talks
from study_desk.coding.forms.form_file import open_form
from study_desk.coding.forms.sheet import Mark, attributes_in
from study_desk.coding.forms.tables import read_text_table

_SPEECH = "speech"
_VOTES = {
    "error": "breakdown", "possible": "possible_breakdown", "ordinary": "no_breakdown", "competence": "no_breakdown",
}  # fmt: skip
Turns = list[dict[str, Any]]


class TalkForm(StrEnum):
    """The form of a file with talks."""

    JSONL = "jsonl"
    CSV = "csv"
    BORIS = "boris"
    EAF = "eaf"


def read_talk_files(paths: Iterable[Path], form: TalkForm) -> list[Talk]:
    """Read all talks of files; those of a study have the name of its folder as their corpus."""
    if form is TalkForm.JSONL:
        return read_talks(paths)
    talks: dict[str, Talk] = {}
    for path in paths:
        corpus = path.resolve().parent.name or form.value
        for name, turns in _table(path) if form is TalkForm.CSV else _coding(path):
            plain = {"id": f"{corpus}/{name or path.stem}", "corpus": corpus, "turns": turns}
            talk = check_config(Talk, plain, str(path))
            if talks.setdefault(talk.id, talk) is not talk:
                raise TalkError(f"{path}: talk {talk.id!r} was read before; give each talk one name, in one file")
    return list(talks.values())


def _by(speaker: str) -> str:
    plain = speaker.strip().casefold()
    return plain if plain in {*MACHINES, "facilitator"} else "person"


def _table(path: Path) -> Iterator[tuple[str, Turns]]:
    """Yield the name and the turns of each talk of a table with a row a turn."""
    table, talks = read_text_table(path), dict[str, Turns]()
    if not {"speaker", "text"} <= {*table.header}:
        raise TalkError(f"{path}: lacks a column; name the columns talk, speaker, text, start_s and verdict")
    for row in table.rows:
        turn: dict[str, Any] = {"by": _by(row.cells["speaker"]), "text": row.cells["text"]}
        try:
            turn |= _verdict(row.cells.get("verdict", ""))
            turn |= {"start_s": float(row.number("start_s"))} if row.cells.get("start_s") else {}
        except ValueError as error:
            raise TalkError(f"{row.place}: {error}") from error
        talks.setdefault(row.cells.get("talk", ""), []).append(turn)
    yield from talks.items()


def _verdict(cell: str) -> dict[str, Any]:
    """Read the verdicts of one annotator or several: ratings, or votes by name."""
    values = [value.strip().casefold() for value in re.split(r"[;|]", cell) if value.strip()]
    if values and all(re.fullmatch(r"[1-5]([.,]\d+)?", value) for value in values):
        return {"rating": [float(value.replace(",", ".")) for value in values]}
    if unknown := [value for value in values if value not in _VOTES]:
        raise ValueError(
            f"verdict {unknown[0]!r} is none of {', '.join(_VOTES)}, and no rating from 1 to 5; correct it"
        )
    return {"votes": Counter(_VOTES[value] for value in values)} if values else {}


def _coding(path: Path) -> Iterator[tuple[str, Turns]]:
    """Yield the name and the turns of each session of a coding file."""
    form = open_form(path)
    for part in form.parts:
        turns = _coded_turns(sorted(form.marks(part.name), key=lambda mark: mark.start_s), part.coder)
        if not any(turn["by"] in MACHINES for turn in turns):
            raise TalkError(
                f"{path}: holds no speech of a robot; name tiers speech robot and speech person, or a behaviour speech "
                "with the speaker as its subject and the words as its comment"
            )
        yield part.name, turns


def _coded_turns(marks: list[Mark], coder: str) -> Turns:
    """Let each coder's error count against the machine's turn under way, or else its next one, or its last."""
    turns: Turns = [
        {"by": _by(mark.name[len(_SPEECH) :].strip() or mark.who), "text": mark.text, "start_s": mark.start_s}
        for mark in marks
        if mark.name.casefold().startswith(_SPEECH)
    ]
    coders_against: dict[int, set[str]] = {place: set() for place, turn in enumerate(turns) if turn["by"] in MACHINES}
    coders = {coder} - {""}
    for mark in marks if coders_against else ():
        is_speech = mark.name.casefold().startswith(_SPEECH)
        polarity = None if is_speech else attributes_in(f"{mark.name} {mark.kind}", [*Polarity])
        coders |= {coder or mark.who} if polarity else set()
        if polarity == Polarity.ERROR:
            under_way = bisect_right([turn["start_s"] for turn in turns], mark.start_s) - 1
            place = next((place for place in coders_against if place >= under_way), max(coders_against))
            coders_against[place].add(coder or mark.who)
    for place, errors in coders_against.items() if coders else ():
        turns[place]["votes"] = {"no_breakdown": len(coders - errors), "breakdown": len(errors)}
    return turns

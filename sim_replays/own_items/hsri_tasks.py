"""Draw HSRI's tasks from the coded sessions of a study: its segments in the layout that the suite reads."""

import re
from collections.abc import Iterator
from itertools import pairwise

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.time import NS_PER_S
from sim_replays.own_items.assembly import write_datasheet
from sim_replays.own_items.item_run import ITEMS, REFUSED, Drop, ItemError, ItemRun, PhaseCount
from sim_replays.suites.hsri_segments import FILE, HsriSegment, SegmentKind, draw_questions, read
from study_desk.log.recording import Recording
from study_desk.log.schema import CONSENSUS, MONITOR, Label
from study_desk.study.study_folder import Study

# In the comment of an error's label: why it is one, and what would have been right.
_EXPLANATION = re.compile(r"^(.+?)\s*=>\s*(.+)$", re.DOTALL)


def draw_tasks(run: ItemRun, study: Study) -> PhaseCount:
    """Write the segments of each session: the coded ones, and as many stretches of talk with no label.

    Labels are those of the consensus, else of the first coder. Raises ItemError where no task can be asked.
    """
    segments: list[HsriSegment] = []
    drops: list[Drop] = []
    for source in run.file.sources:
        if source.consent.startswith(REFUSED):
            drops.append(Drop(id=source.name, why="no consent", detail=source.consent))
            continue
        recording = study.recording_of(source.name)
        coders = sorted({label.coder for label in recording.labels} - {MONITOR})
        coder = CONSENSUS if CONSENSUS in coders else next(iter(coders), "")
        if not coder:
            drops.append(Drop(id=source.name, why="not coded"))
            continue
        for name, plain in _segments(recording, [label for label in recording.labels if label.coder == coder]):
            try:
                segments.append(check_config(HsriSegment, {**plain, "id": name, "session": source.name}, name))
            except ConfigError as error:
                words = (
                    "no words" if not plain["transcript"] else "an error without a comment of the form WHY => BETTER"
                )
                drops.append(Drop(id=name, why=words, detail=str(error)))
    if not any(segment.kind is not SegmentKind.NONE for segment in segments):
        why = "; ".join(f"{drop.id}: {drop.why}" for drop in drops) or "no session has a log"
        raise ItemError(f"{study.folder}: no coded segment can be asked about ({why}); code sessions first")
    run.write(f"{ITEMS}/{FILE}", "".join(f"{each.model_dump_json(exclude_defaults=True)}\n" for each in segments))
    read(run.folder / ITEMS)  # raises where a task has too few segments
    count = run.finish("assemble", segments, drops)
    sessions = {segment.session for segment in segments}
    write_datasheet(run, {name: [s.id for s in segments if s.session == name] for name in sessions})
    return count


def questions_by_task(run: ItemRun) -> dict[str, int]:
    """Count the questions of each task over the three seeds."""
    drawn = draw_questions(read(run.folder / ITEMS))
    return {task: sum(each.task == task for each in drawn) for task in dict.fromkeys(each.task for each in drawn)}


def _segments(recording: Recording, labels: list[Label]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the coded segments of a session and its talk between them, with an id each."""
    by_place: dict[tuple[int, int, Polarity], list[Label]] = {}
    for label in labels:
        by_place.setdefault((label.start_ns, label.end_ns, label.polarity), []).append(label)
    speech, session = recording.speech, recording.info.session
    for number, ((start_ns, end_ns, polarity), of_place) in enumerate(sorted(by_place.items())):
        explained = next(filter(None, (_EXPLANATION.match(label.comment) for label in of_place)), None)
        told = (
            {"rationale": explained[1], "correction": explained[2]} if explained and polarity is Polarity.ERROR else {}
        )
        names = {label.attribute for label in of_place}
        about = {"kind": polarity.value, "attributes": [each.value for each in Attribute if each in names], **told}
        yield f"{session}-{number}", {**about, "transcript": _lines(speech, start_ns, end_ns)}
    plain = [said for said in speech if not any(a <= said.end_ns and said.start_ns <= b for a, b, _ in by_place)]
    pairs = [(one, other) for one, other in pairwise(plain) if one.speaker is not other.speaker]
    for number, (one, other) in enumerate(pairs[:: 1 + len(pairs) // (len(by_place) + 1)]):
        lines = _lines((one, other), one.start_ns, other.end_ns)
        yield f"{session}-none-{number}", {"kind": "none", "attributes": [], "transcript": lines}


def _lines(speech: tuple[Utterance, ...], start_ns: int, end_ns: int) -> list[dict[str, object]]:
    """Return the words of a time, and the turn of the other party that leads to it."""
    within = [place for place, said in enumerate(speech) if said.start_ns <= end_ns and said.end_ns >= start_ns]
    if within and len({speech[place].speaker for place in within}) == 1 and within[0] > 0:
        within.insert(0, within[0] - 1)
    begin_ns = speech[within[0]].start_ns if within else 0
    return [
        {
            "speaker": "agent" if said.speaker is Speaker.ROBOT else "user",
            "text": said.text,
            "start_s": (said.start_ns - begin_ns) / NS_PER_S,
            "end_s": max(0, said.end_ns - begin_ns) / NS_PER_S,
        }
        for said in (speech[place] for place in within)
        if said.text.strip()
    ]

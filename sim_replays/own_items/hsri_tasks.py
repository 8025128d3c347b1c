"""Draw HSRI's tasks from the coded sessions of a study: its segments in the layout that the suite reads."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from norm_core.records.flag import Polarity
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Label
from norm_monitor.session_log.study_folder import Study
from sim_replays.own_items.assembly import write_datasheet
from sim_replays.own_items.item_run import ITEMS, REFUSED, Drop, ItemError, ItemRun
from sim_replays.suites.hsri_segments import FILE, HsriSegment, draw_questions, read

# In the comment of an error's label: why it is one, and what would have been right.
_EXPLANATION = re.compile(r"^(.+?)\s*=>\s*(.+)$", re.DOTALL)


def draw_tasks(run: ItemRun, study: Study) -> dict[str, int]:
    """Write the coded segments of each session and stretches without a label; return the number of questions by task.

    Labels are those of the consensus, else of the first coder. Raises an error where a task has too few segments.
    """
    segments: list[HsriSegment] = []
    drops: list[Drop] = []
    for source in run.file.sources:
        if source.consent.startswith(REFUSED):
            drops.append(Drop(id=source.name, why="no consent", detail=source.consent))
            continue
        recording = study.recording_of(source.name)
        if recording.missing:
            drops.append(Drop(id=source.name, why="erased", detail=recording.missing))
            continue
        coders = sorted({label.coder for label in recording.labels} - {MONITOR}, key=lambda name: name != CONSENSUS)
        for name, plain in _segments(recording, coders[0]) if coders else ():
            try:
                segments.append(check_config(HsriSegment, {**plain, "id": name, "session": source.name}, name))
            except ConfigError as error:
                why = "an error without WHY => BETTER as its comment" if plain["transcript"] else "no words"
                drops.append(Drop(id=name, why=why, detail=str(error)))
        drops += [] if coders else [Drop(id=source.name, why="not coded")]
    if not any(segment.attributes for segment in segments):
        why = "; ".join(f"{drop.id}: {drop.why}" for drop in drops) or "no session has a log"
        raise ItemError(f"{study.folder}: no coded segment can be asked about ({why}); code sessions first")
    run.write(f"{ITEMS}/{FILE}", "".join(f"{segment.model_dump_json(exclude_defaults=True)}\n" for segment in segments))
    questions = draw_questions(read(run.folder / ITEMS))
    run.finish("assemble", segments, drops)
    ids: dict[str, list[str]] = {}
    for session, name in sorted({(question.session, question.id.partition("#")[0]) for question in questions}):
        ids.setdefault(session, []).append(name)
    write_datasheet(run, ids)
    return dict(Counter(question.task for question in questions))


def _segments(recording: Recording, coder: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the segments that a coder coded and the talk between them, with an id each."""
    by_place: dict[tuple[int, int, Polarity], list[Label]] = {}
    for label in recording.labels:
        if label.coder == coder:
            by_place.setdefault((label.start_ns, label.end_ns, label.polarity), []).append(label)
    speech, session = recording.speech, recording.info.session
    for number, ((start_ns, end_ns, polarity), labels) in enumerate(sorted(by_place.items())):
        explained = next(filter(None, (_EXPLANATION.match(label.comment) for label in labels)), None)
        explanation = dict(zip(("rationale", "correction"), explained.groups(), strict=True)) if explained else {}
        names = sorted({label.attribute for label in labels})
        about = {"kind": polarity.value, "attributes": names, **(explanation if polarity is Polarity.ERROR else {})}
        yield f"{session}-{number}", {**about, "transcript": _lines(speech, start_ns, end_ns)}
    is_plain = [
        not any(a <= utterance.end_ns and utterance.start_ns <= b for a, b, _ in by_place) for utterance in speech
    ]
    turns = [turn for turn, *plain in zip(pairwise(speech), is_plain, is_plain[1:], strict=False) if all(plain)]
    pairs = [(first, other) for first, other in turns if first.speaker is not other.speaker]
    for number, (first, other) in enumerate(pairs[:: 1 + len(pairs) // (len(by_place) + 1)]):  # as many as are coded
        lines = _lines((first, other), first.start_ns, other.end_ns)
        yield f"{session}-none-{number}", {"kind": "none", "transcript": lines}


def _lines(speech: tuple[Utterance, ...], start_ns: int, end_ns: int) -> list[dict[str, object]]:
    """Return the words of a time, and the turn of the other party that leads to it."""
    within = [
        place for place, utterance in enumerate(speech) if utterance.start_ns <= end_ns and utterance.end_ns >= start_ns
    ]
    if within and len({speech[place].speaker for place in within}) == 1 and within[0] > 0:
        within.insert(0, within[0] - 1)
    begin_ns = speech[within[0]].start_ns if within else 0
    return [
        {
            "speaker": "agent" if utterance.speaker is Speaker.ROBOT else "user",
            "text": utterance.text,
            "start_s": (utterance.start_ns - begin_ns) / NS_PER_S,
            "end_s": max(0, utterance.end_ns - begin_ns) / NS_PER_S,
        }
        for utterance in (speech[place] for place in within)
        if utterance.text.strip()
    ]

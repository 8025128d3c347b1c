"""Speech and images of a window as prompt parts, timed from the window's start."""

from norm_core.engines.prompt import Image, Part, Quoted, Text
from norm_core.records.frame import Frame
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.runtime.time import ns_to_s

# The names of speakers, by language.
SPEAKERS = {
    "en": {Speaker.ROBOT: "ROBOT", Speaker.USER: "PERSON", Speaker.UNKNOWN: "SOMEONE"},
    "zh": {Speaker.ROBOT: "机器人", Speaker.USER: "用户", Speaker.UNKNOWN: "某人"},
}
# The label of a talk in a prompt.
LABEL = {"en": "transcript", "zh": "对话记录"}
# The text of an empty talk.
NOBODY = {"en": "(nobody speaks)", "zh": "（没有人说话）"}


def format_transcript(utterances: tuple[Utterance, ...], start_ns: int, locale: str = "en") -> Quoted:
    """Return speaker, time and words, one line per utterance, as quoted text."""
    names = SPEAKERS[locale]
    lines = []
    for utterance in sorted(utterances, key=lambda utterance: (utterance.start_ns, utterance.utterance_id)):
        name = f"{names[utterance.speaker]}{f' {utterance.speaker_id}' if utterance.speaker_id else ''}"
        lines.append(f"{_format_time(utterance, start_ns)}{name}: {' '.join(utterance.text.split())}")
    return Quoted(text="\n".join(lines) or NOBODY[locale], label=LABEL[locale])


def choose_pictures(frames: tuple[Frame, ...], max_count: int, start_ns: int) -> tuple[Part, ...]:
    """Choose at most `max_count` frames, evenly spread and with the last one, each after its time."""
    count = min(max_count, len(frames))
    if not count:
        return ()
    step = len(frames) / count
    chosen_frames = [frames[len(frames) - 1 - int(index * step)] for index in reversed(range(count))]
    parts: list[Part] = []
    for frame in chosen_frames:
        parts += [Text(text=f"[{ns_to_s(frame.stamp_ns - start_ns):.1f} s]"), Image(jpeg=frame.tile_jpeg)]
    return tuple(parts)


def _format_time(utterance: Utterance, start_ns: int) -> str:
    """Return the time of an utterance; empty if it is unknown, as in plain text."""
    if utterance.timing is Timing.ABSENT:
        return ""
    return f"[{ns_to_s(utterance.start_ns - start_ns):.1f}-{ns_to_s(utterance.end_ns - start_ns):.1f} s] "

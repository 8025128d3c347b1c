"""Words of a transcript, and pictures as prompt parts, timed from the start of a window."""

from norm_core.engines.prompt import Image, Part, Text
from norm_core.records.frame import Frame
from norm_core.records.speech import Speaker
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

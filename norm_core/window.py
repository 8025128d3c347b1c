"""A stretch of time with all that was seen and heard in it."""

from norm_core.frame import Frame
from norm_core.jsonl import sha256_of, to_plain
from norm_core.record import record
from norm_core.speech import RobotSpeech, Utterance


@record
class Window:
    """Everything from start_ns up to, not including, end_ns; frames by stamp, utterances by onset."""

    start_ns: int
    end_ns: int
    frames: tuple[Frame, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    robot_speech: tuple[RobotSpeech, ...] = ()
    late: bool = False

    def __post_init__(self) -> None:
        if self.end_ns <= self.start_ns:
            raise ValueError(f"a window cannot end at {self.end_ns} ns having begun at {self.start_ns} ns")
        if not all(utterance.final for utterance in self.utterances):
            raise ValueError("only final utterances enter a window")
        for stamp_ns in (*(f.stamp_ns for f in self.frames), *(u.start_ns for u in self.utterances)):
            if not self.start_ns <= stamp_ns < self.end_ns:
                raise ValueError(f"{stamp_ns} ns lies outside the window {self.start_ns} to {self.end_ns} ns")


def digest(window: Window) -> str:
    """SHA-256 of what the window holds by source: bounds, frame stamps and payloads, speech.

    It neither depends on the order things arrived in, nor on re-encoded tiles, nor on the window's lateness.
    """
    frames = [[f.stamp_ns, f.source_topic, f.payload_sha256] for f in window.frames]
    utterances = [to_plain(u) for u in window.utterances]
    robot_speech = [to_plain(s) for s in window.robot_speech]
    return sha256_of(
        {
            "bounds": [window.start_ns, window.end_ns],
            "frames": sorted(frames),
            "utterances": sorted(utterances, key=lambda u: (u["start_ns"], u["utterance_id"], sha256_of(u))),
            "robot_speech": sorted(robot_speech, key=lambda s: (s["stamp_ns"], s["speech_id"], sha256_of(s))),
        }
    )

"""A time window with all frames, speech and presences in it."""

from collections.abc import Iterable
from dataclasses import replace

from norm_core.records.frame import Frame
from norm_core.records.json_codec import canonical, sha256_of, to_plain
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance


@record
class Window:
    """The records from `start_ns` up to, but excluding, `end_ns`; frames by stamp, utterances by onset."""

    start_ns: int
    end_ns: int
    frames: tuple[Frame, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    robot_speech: tuple[RobotSpeech, ...] = ()
    presences: tuple[Presence, ...] = ()
    late: bool = False
    missing: tuple[str, ...] = ()  # sources that had not passed `end_ns` when the window closed

    def __post_init__(self) -> None:
        """Check that it is not empty and holds no partial utterance or outside stamp. Raises ValueError."""
        if self.end_ns <= self.start_ns:
            raise ValueError(f"a window cannot end at {self.end_ns} ns having begun at {self.start_ns} ns")
        if not all(utterance.final for utterance in self.utterances):
            raise ValueError("only final utterances enter a window")
        if self.missing and not self.late:
            raise ValueError("a window that misses a source is late")
        stamped: tuple[Frame | RobotSpeech, ...] = (*self.frames, *self.robot_speech)
        stamps_ns = [entry.stamp_ns for entry in stamped] + [utterance.start_ns for utterance in self.utterances]
        for stamp_ns in stamps_ns:
            if not self.start_ns <= stamp_ns < self.end_ns:
                raise ValueError(f"{stamp_ns} ns lies outside the window {self.start_ns} to {self.end_ns} ns")


@record
class ClosedWindow:
    """Notice that a window closed, with counts of its contents; `stamp_ns` is the window's end."""

    stamp_ns: int
    frame_id: str = ""
    start_ns: int
    end_ns: int
    sha256: str
    frame_count: int
    utterance_count: int
    robot_speech_count: int
    presence_count: int
    late: bool = False
    missing: tuple[str, ...] = ()


def describe_closed_window(window: Window, sha256: str = "") -> ClosedWindow:
    """Return the notice of a closed window; `sha256` is its digest, or empty if unknown."""
    return ClosedWindow(
        stamp_ns=window.end_ns,
        start_ns=window.start_ns,
        end_ns=window.end_ns,
        sha256=sha256 or window_digest(window),
        frame_count=len(window.frames),
        utterance_count=len(window.utterances),
        robot_speech_count=len(window.robot_speech),
        presence_count=len(window.presences),
        late=window.late,
        missing=window.missing,
    )


def gather_window(
    start_ns: int,
    end_ns: int,
    frames: Iterable[Frame] = (),
    utterances: Iterable[Utterance] = (),
    robot_speech: Iterable[RobotSpeech] = (),
    *,
    presences: Iterable[Presence] = (),
    missing: Iterable[str] = (),
    late: bool = False,
) -> Window:
    """Return the window of the records within the bounds, in time order; leave out partial utterances."""
    missing = tuple(sorted(missing))
    return Window(
        start_ns=start_ns,
        end_ns=end_ns,
        frames=tuple(sorted((f for f in frames if start_ns <= f.stamp_ns < end_ns), key=_make_time_key)),
        utterances=tuple(
            sorted((u for u in utterances if u.final and start_ns <= u.start_ns < end_ns), key=_make_time_key)
        ),
        robot_speech=tuple(sorted((s for s in robot_speech if start_ns <= s.stamp_ns < end_ns), key=_make_time_key)),
        presences=tuple(sorted((p for p in presences if start_ns <= p.stamp_ns < end_ns), key=_make_time_key)),
        late=late or bool(missing),
        missing=missing,
    )


def window_digest(window: Window) -> str:
    """Return the SHA-256 of a window's source data: bounds, frame stamps and payloads, speech.

    The digest leaves out data derived from frames, such as presence, and a recognizer's estimates of single words. It
    does not depend on the order of arrival, on re-encoded tiles or on the window's lateness.
    """
    frames = [[f.stamp_ns, f.source_topic, f.payload_sha256] for f in window.frames]
    # Without a recognizer's estimates about words, which differ by processor and decide nothing.
    utterances = [
        to_plain(replace(u, words=(), confidence=None, no_speech_probability=None)) for u in window.utterances
    ]
    robot_speech = [to_plain(s) for s in window.robot_speech]
    return sha256_of(
        {
            "bounds": [window.start_ns, window.end_ns],
            "frames": sorted(frames),
            "utterances": sorted(utterances, key=canonical),
            "robot_speech": sorted(robot_speech, key=canonical),
        }
    )


def _make_time_key(entry: Frame | Utterance | RobotSpeech | Presence) -> tuple[int, str]:
    match entry:
        case Utterance():
            return entry.start_ns, entry.utterance_id
        case Frame() | Presence():
            return entry.stamp_ns, entry.source_topic
        case RobotSpeech():
            return entry.stamp_ns, entry.speech_id

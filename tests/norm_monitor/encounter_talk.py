"""A conversation in seconds, as the senses give it, and the flags of the monitor about it."""

from collections.abc import Iterable, Sequence

from norm_core.records.flag import Attribute, Polarity, SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.presence import Face, Person, Presence, PresenceState
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Timing, Utterance, make_silence_mark
from norm_core.records.window import Window, gather_window
from norm_core.runtime.time import ReplayClock, s_to_ns
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_model import AdditiveScore, KindModel, OperatingPoint, Sensitivity, Steps, UnitModel
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import History, Scene
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import Entry

START_S = 1_000.0
ALONE = MonitorConfig.for_replay(("utterances",))


def at(seconds: float) -> int:
    return s_to_ns(START_S + seconds)


def seconds(stamp_ns: int) -> float:
    return stamp_ns / 1e9 - START_S


def user(start_s: float, end_s: float, text: str, timing: Timing = Timing.SOURCE, person: str = "") -> list[Entry]:
    return [
        Utterance(
            stamp_ns=at(start_s),
            utterance_id=f"u{start_s}",
            speaker=Speaker.USER,
            speaker_id=person,
            text=text,
            start_ns=at(start_s),
            end_ns=at(end_s),
            timing=timing,
            source_topic="audio",
        )
    ]


def robot(start_s: float, end_s: float, text: str) -> list[Entry]:
    return [
        RobotSpeech(stamp_ns=at(start_s), speech_id=f"r{start_s}", state=SpeechEdge.START, text=text),
        RobotSpeech(stamp_ns=at(end_s), speech_id=f"r{start_s}", state=SpeechEdge.STOP),
    ]


def seen(start_s: int, end_s: int, *, away_from_s: int | None = None, gone: bool = False) -> list[Entry]:
    """Return a presence each second: somebody who may look away from a second on, or was last seen at the start."""
    entries: list[Entry] = []
    for second in range(start_s, end_s):
        away = away_from_s is not None and second >= away_from_s
        lost_s = second - start_s
        state = PresenceState.PRESENT if not gone else PresenceState.LOST if lost_s < 2 else PresenceState.ABSENT
        face = Face(left_ratio=0.4, top_ratio=0.3, width_ratio=0.2, height_ratio=0.3, confidence=0.9, looking_away=away)
        entries.append(
            Presence(
                stamp_ns=at(second),
                source_topic="camera",
                state=state,
                faces=() if gone else (face,),
                since_ns=at(0),
                last_seen_ns=at(start_s if gone else second),
                away_since_ns=at(away_from_s) if away and away_from_s is not None else None,
            )
        )
    return entries


def near(start_s: float, end_s: float, distance_m: float) -> list[Entry]:
    """Return presences of somebody at a distance, five times a second."""
    return approaching(start_s, end_s, distance_m, distance_m)


def approaching(start_s: float, end_s: float, from_m: float, to_m: float) -> list[Entry]:
    """Return presences of somebody whose distance changes evenly, five times a second."""
    ticks = int(5 * (end_s - start_s))
    return [
        Presence(
            stamp_ns=at(start_s + tick / 5),
            source_topic="persons",
            state=PresenceState.PRESENT,
            persons=(Person(person_id="p", distance_m=from_m + (to_m - from_m) * tick / ticks),),
            since_ns=at(0),
            last_seen_ns=at(start_s + tick / 5),
        )
        for tick in range(ticks)
    ]


def window_of(talk: Iterable[Entry], end_s: float, frames: Sequence[Frame] = (), *, start_s: float = 0) -> Window:
    """Return the window over a talk up to a second."""
    entries = list(talk)
    return gather_window(
        at(start_s),
        at(end_s),
        frames,
        [entry for entry in entries if isinstance(entry, Utterance)],
        [entry for entry in entries if isinstance(entry, RobotSpeech)],
        presences=[entry for entry in entries if isinstance(entry, Presence)],
    )


def when_given(entry: Entry) -> int:
    """Return when the senses give an entry: an utterance once it is over."""
    return entry.end_ns if isinstance(entry, Utterance) else entry.stamp_ns


def scene_of(talk: Iterable[Entry], end_s: float = 30) -> Scene:
    """Return the scene at the end of one long window."""
    return History().scene(window_of(talk, end_s))


ABOUT = (Attribute.CONVERSATIONAL_MECHANICS, Attribute.KNOWLEDGE_STATE, Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS)


def errors_by(fact: str, threshold: float, *named: Attribute) -> KindModel:
    """Return weights by which a unit is an error of these attributes once a fact reaches a threshold."""
    reached = AdditiveScore(intercept=-9, facts={fact: Steps(cuts=(threshold,), values=(0.0, 11.0))})
    never = AdditiveScore(intercept=-9, facts={})
    return KindModel(
        polarities={Polarity.ERROR: reached, Polarity.COMPETENCE: never},
        attributes={polarity: dict.fromkeys(Attribute, never) for polarity in Polarity},
        coded=dict.fromkeys(Polarity, tuple(((attribute,), 1) for attribute in named)),
        named_from=dict.fromkeys(Polarity, 0.2),
    )


def waiting_alone(**turns: float) -> UnitModel:
    """Return a model that flags each silence in which an answer is owed for two seconds, and each sighting.

    It flags a turn of the robot only if a fact reaches the value in `turns`.
    """
    of_turns = [(UnitKind.ROBOT_TURN, errors_by(fact, threshold, *ABOUT)) for fact, threshold in turns.items()]
    silence = errors_by("owed_silence_s", 2.0, Attribute.CONVERSATIONAL_MECHANICS)
    point = OperatingPoint(error=0.5, competence=0.5, false_errors_per_hour=0)
    return UnitModel.blank().model_copy(
        update={
            "kinds": {UnitKind.SILENCE: silence, **dict(of_turns)},
            "sightings": dict.fromkeys(("ignores_leaving", "ignores_looking_away", "too_near"), 0.7),
            "operating_points": dict.fromkeys(Sensitivity, point),
        }
    )


class Watched:
    """A monitor fed with an encounter as the senses would give it, a mark of silence twice a second among it.

    Flags are those of `waiting_alone`, or of the shipped weights if `weighed`.
    """

    def __init__(
        self,
        meaning: TextMatcher,
        table: ThresholdTable | None = None,
        fusion: FusionConfig | None = None,
        *,
        weighed: bool = False,
        **turns: float,
    ) -> None:
        self.clock = ReplayClock()
        config = ALONE.model_copy(update={"fusion": fusion}) if fusion else ALONE
        table = table or ThresholdTable.shipped()
        self.monitor = Monitor(
            config, table, meaning, self.clock, unit_model=None if weighed else waiting_alone(**turns)
        )

    def watch(self, *parts: Iterable[Entry], until_s: float = 30.0) -> list[SocialFlag]:
        """Return every flag in the order of publication."""
        flags: list[SocialFlag] = []
        for given_ns, entry in with_silence([entry for part in parts for entry in part], until_s):
            self.clock.advance_to(max(given_ns, self.clock.now_ns()))
            flags += self.monitor.take(entry)
        return flags + self.monitor.end_input()


def with_silence(entries: list[Entry], until_s: float) -> list[tuple[int, Entry]]:
    """Return the entries with the times at which they are given, and marks of silence between them."""
    speaking = [(e.start_ns, e.end_ns) for e in entries if isinstance(e, Utterance)]
    marks: list[tuple[int, Entry]] = []
    for tick in range(int(2 * until_s) + 1):
        now_ns = at(tick / 2)
        quiet_ns = min([now_ns, *(start_ns for start_ns, end_ns in speaking if start_ns <= now_ns < end_ns)])
        marks.append((now_ns, make_silence_mark(quiet_ns, "audio")))
    return sorted([*((when_given(entry), entry) for entry in entries), *marks], key=lambda given: given[0])


def last_of(flags: list[SocialFlag]) -> dict[str, SocialFlag]:
    """Return the newest flag of each cue."""
    return {flag.cue_id: flag for flag in flags}

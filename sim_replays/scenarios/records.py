"""Convert an encounter to the senses' records, without making sound or images."""

from itertools import pairwise

from norm_core.records.frame import Frame
from norm_core.records.presence import Face, Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, Word
from norm_core.runtime.time import s_to_ns
from norm_monitor.senses.faces.presence_tracker import PresenceTracker
from sim_replays.scenarios.encounter import Edges
from sim_replays.scenarios.picture import USUAL_M
from sim_replays.scenarios.timeline import Sighting, SpeechPiece, SpokenTurn, Timeline

AUDIO, CAMERA = "/audio", "/camera/image_raw/compressed"
PRESENCE_HZ, DISTANCE_HZ = 1.0, 5.0
SPLIT_S = 0.7  # a pause of this length splits a turn into two utterances
AWAY_PITCH_DEG, TOWARDS_PITCH_DEG = -38.0, -8.0  # as measured on the generated images


@record
class Distance:
    """The distance of a person from the robot."""

    stamp_ns: int
    person_id: str
    distance_m: float


@record
class Senses:
    """The speech, frames and presence of an encounter, each in order of time."""

    utterances: tuple[Utterance, ...]
    robot_speech: tuple[RobotSpeech, ...]
    presences: tuple[Presence, ...]
    distances: tuple[Distance, ...]


def senses_of(timeline: Timeline, start_ns: int) -> Senses:
    """Make the records of a timeline that starts at `start_ns`. Word times are proportional to letters."""
    return Senses(
        utterances=utterances_of(timeline, start_ns),
        robot_speech=robot_speech_of(timeline, start_ns),
        presences=_presences(timeline, start_ns),
        distances=distances_of(timeline, start_ns),
    )


def utterances_of(timeline: Timeline, start_ns: int) -> tuple[Utterance, ...]:
    """Make the utterances, with turns split at long pauses."""
    utterances = []
    for spoken in timeline.spoken:
        for index, pieces in enumerate(_stretches(spoken)):
            words = tuple(word for piece in pieces for word in _words(piece, timeline.language, start_ns))
            onset_ns = start_ns + s_to_ns(pieces[0].start_s)
            utterances.append(
                Utterance(
                    stamp_ns=onset_ns,
                    utterance_id=f"{timeline.encounter_id}-{spoken.turn_id}-{index}",
                    speaker=Speaker.ROBOT if spoken.by_robot else Speaker.USER,
                    speaker_id="" if spoken.by_robot else spoken.speaker,
                    text=" ".join(piece.text for piece in pieces),
                    locale=timeline.language,
                    start_ns=onset_ns,
                    end_ns=start_ns + s_to_ns(pieces[-1].end_s),
                    words=words,
                    confidence=1.0,
                    no_speech_probability=0.0,
                    overlap_ns=s_to_ns(_overlap_s(pieces, spoken, timeline)),
                    source_topic=AUDIO,
                )
            )
    return tuple(sorted(utterances, key=lambda utterance: utterance.start_ns))


def robot_speech_of(timeline: Timeline, start_ns: int) -> tuple[RobotSpeech, ...]:
    """Make the robot's messages about the start and end of its speech."""
    edges = []
    for spoken in timeline.spoken:
        if not spoken.by_robot or spoken.edges is Edges.NONE:
            continue
        for at_s, state in ((spoken.start_s, SpeechEdge.START), (spoken.end_s, SpeechEdge.STOP)):
            edges.append(
                RobotSpeech(
                    stamp_ns=start_ns + s_to_ns(at_s),
                    speech_id=f"{timeline.encounter_id}-{spoken.turn_id}",
                    state=state,
                    text=spoken.text,
                    locale=timeline.language,
                    estimated=spoken.edges is Edges.ESTIMATED,
                )
            )
    return tuple(sorted(edges, key=lambda edge: edge.stamp_ns))


def distances_of(timeline: Timeline, start_ns: int) -> tuple[Distance, ...]:
    """Make the distances of people where the script states them."""
    return tuple(
        Distance(stamp_ns=start_ns + s_to_ns(at_s), person_id=person.person_id, distance_m=distance_m)
        for at_s in _ticks(timeline.length_s, DISTANCE_HZ)
        for person in timeline.people
        if (distance_m := person.distance_at(at_s)) is not None
    )


def _stretches(spoken: SpokenTurn) -> list[list[SpeechPiece]]:
    stretches = [[spoken.pieces[0]]]
    for before, piece in pairwise(spoken.pieces):
        if piece.start_s - before.end_s >= SPLIT_S:
            stretches.append([])
        stretches[-1].append(piece)
    return stretches


def _words(piece: SpeechPiece, language: str, start_ns: int) -> list[Word]:
    texts = list(piece.text) if language == "zh" else piece.text.split()
    weights = [len(text) + 1 for text in texts]
    begin_ns, length_ns = start_ns + s_to_ns(piece.start_s), s_to_ns(piece.end_s - piece.start_s)
    words, done = [], 0
    for text, weight in zip(texts, weights, strict=True):
        first_ns = begin_ns + length_ns * done // sum(weights)
        done += weight
        words.append(Word(text=text, start_ns=first_ns, end_ns=begin_ns + length_ns * done // sum(weights)))
    return words


def _overlap_s(pieces: list[SpeechPiece], own: SpokenTurn, timeline: Timeline) -> float:
    others = [piece for spoken in timeline.spoken if spoken.speaker != own.speaker for piece in spoken.pieces]
    return sum(
        max(0.0, min(piece.end_s, other.end_s) - max(piece.start_s, other.start_s))
        for piece in pieces
        for other in others
    )


def _presences(timeline: Timeline, start_ns: int) -> tuple[Presence, ...]:
    tracker = PresenceTracker()
    return tuple(
        tracker.follow(
            _blank_frame(start_ns + s_to_ns(at_s)),
            tuple(sorted(_faces(timeline, at_s), key=lambda face: -face.width_ratio)),
        )
        for at_s in _ticks(timeline.length_s, PRESENCE_HZ)
    )


def _faces(timeline: Timeline, at_s: float) -> list[Face]:
    return [
        _face(person, at_s, (place + 1) / (len(timeline.people) + 1))
        for place, person in enumerate(timeline.people)
        if person.is_seen(at_s)
    ]


def _face(person: Sighting, at_s: float, centre: float) -> Face:
    size = min(0.3 / (person.distance_at(at_s) or USUAL_M), 0.45)
    away = person.is_away(at_s)
    return Face(
        left_ratio=max(centre - size / 2, 0.0),
        top_ratio=0.2,
        width_ratio=size,
        height_ratio=size * 4 / 3,
        confidence=0.9,
        yaw_deg=0.0,
        pitch_deg=AWAY_PITCH_DEG if away else TOWARDS_PITCH_DEG,
        roll_deg=0.0,
        looking_away=away,
    )


def _ticks(length_s: float, rate_hz: float) -> list[float]:
    return [index / rate_hz for index in range(int(length_s * rate_hz) + 1)]


def _blank_frame(stamp_ns: int) -> Frame:
    return Frame(
        stamp_ns=stamp_ns,
        frame_id="camera",
        source_topic=CAMERA,
        source_encoding="jpeg",
        source_width_px=0,
        source_height_px=0,
        payload_sha256="",
        tile_width_px=0,
        tile_height_px=0,
        tile_jpeg=b"",
    )

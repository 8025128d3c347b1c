"""A small generated session: a robot and a visitor talk in front of a drawn scene, at known times."""

import hashlib
from pathlib import Path

import cv2
import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.bags.writer import BagWriter
from norm_core.decision import Duplicable, OtherAgent, Viewpoint
from norm_core.episode import Episode, EpisodeEdge, Query
from norm_core.frame import Frame
from norm_core.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, Word
from norm_core.time import NS_PER_S, s_to_ns
from norm_core.window import Window, gather

FRAMES, UTTERANCES, ROBOT_SPEECH, EPISODES, QUERIES = (
    f"/tactful/{name}" for name in ("frames", "utterances", "robot_speech", "episodes", "queries")
)
WINDOW_NS, STEP_NS = 15 * NS_PER_S, 5 * NS_PER_S

_LENGTH_S = 30
_TALK = (  # onset and offset in seconds, who, what
    (1.0, 2.4, Speaker.ROBOT, "Good morning, welcome to the library."),
    (2.9, 4.1, Speaker.USER, "Good morning! I am Ana."),
    (4.6, 6.8, Speaker.ROBOT, "Nice to meet you, Ana. How can I help?"),
    (7.4, 10.2, Speaker.USER, "I am looking for a book about whales."),
    (15.4, 17.5, Speaker.ROBOT, "Whales are on the second floor, Anna-Maria."),
    (18.0, 19.4, Speaker.USER, "No, my name is Ana."),
    (19.9, 21.9, Speaker.ROBOT, "I am sorry, Ana. Thank you for telling me."),
    (25.0, 26.2, Speaker.USER, "Thank you, goodbye."),
    (26.6, 27.6, Speaker.ROBOT, "Goodbye, Ana."),
)


def write_session(path: Path, start_ns: int) -> None:
    """Writes the session into a new bag at path, its first stamp at start_ns."""
    entries = [*_frames(start_ns), *_speech(start_ns), *_episode(start_ns)]
    with BagWriter(path) as bag:
        for stamp_ns, topic, record in sorted(entries, key=lambda entry: entry[0]):
            bag.write(topic, record, stamp_ns)


def windows_of(path: Path) -> tuple[Window, ...]:
    """The session's windows as a bag holds them, cut by stamps alone."""
    with BagReader(path) as bag:
        records = [bag.decode(m) for m in bag.messages([FRAMES, UTTERANCES, ROBOT_SPEECH, EPISODES])]
    frames = [r for r in records if isinstance(r, Frame)]
    utterances = [r for r in records if isinstance(r, Utterance)]
    robot_speech = [r for r in records if isinstance(r, RobotSpeech)]
    episode = next(r for r in records if isinstance(r, Episode))
    last_start_ns = episode.end_ns - WINDOW_NS
    return tuple(
        gather(start_ns, start_ns + WINDOW_NS, frames, utterances, robot_speech)
        for start_ns in range(episode.start_ns, last_start_ns + 1, STEP_NS)
    )


def _frames(start_ns: int) -> list[tuple[int, str, object]]:
    frames: list[tuple[int, str, object]] = []
    for second in range(_LENGTH_S):
        image = np.full((252, 448, 3), (60, 70, 80), np.uint8)
        cv2.rectangle(image, (0, 190), (448, 252), (40, 50, 90), -1)
        x = 60 + 10 * second
        cv2.circle(image, (x, 90), 26, (150, 180, 220), -1)
        cv2.rectangle(image, (x - 30, 118), (x + 30, 200), (120, 60, 40), -1)
        encoded, jpeg = cv2.imencode(".jpg", image)
        if not encoded:
            raise RuntimeError("the image library could not encode a JPEG")
        payload = jpeg.tobytes()
        stamp_ns = start_ns + second * NS_PER_S
        frame = Frame(
            stamp_ns=stamp_ns,
            frame_id="camera",
            source_topic="/camera/image_raw/compressed",
            source_encoding="jpeg",
            source_width_px=448,
            source_height_px=252,
            payload_sha256=hashlib.sha256(payload).hexdigest(),
            tile_width_px=448,
            tile_height_px=252,
            tile_jpeg=payload,
        )
        frames.append((stamp_ns, FRAMES, frame))
    return frames


def _speech(start_ns: int) -> list[tuple[int, str, object]]:
    entries: list[tuple[int, str, object]] = []
    for index, (onset_s, offset_s, speaker, text) in enumerate(_TALK):
        onset_ns, offset_ns = start_ns + s_to_ns(onset_s), start_ns + s_to_ns(offset_s)
        utterance = Utterance(
            stamp_ns=onset_ns,
            utterance_id=f"u{index}",
            speaker=speaker,
            text=text,
            locale="en",
            start_ns=onset_ns,
            end_ns=offset_ns,
            words=_words(text, onset_ns, offset_ns),
            source_topic="generated",
        )
        entries.append((offset_ns, UTTERANCES, utterance))
        if speaker is Speaker.ROBOT:
            for stamp_ns, state in ((onset_ns, SpeechEdge.START), (offset_ns, SpeechEdge.STOP)):
                edge = RobotSpeech(stamp_ns=stamp_ns, speech_id=f"s{index}", state=state, text=text, locale="en")
                entries.append((stamp_ns, ROBOT_SPEECH, edge))
    return entries


def _words(text: str, onset_ns: int, offset_ns: int) -> tuple[Word, ...]:
    words = text.split()
    each_ns = (offset_ns - onset_ns) // len(words)
    return tuple(
        Word(text=word, start_ns=onset_ns + index * each_ns, end_ns=onset_ns + (index + 1) * each_ns)
        for index, word in enumerate(words)
    )


def _episode(start_ns: int) -> list[tuple[int, str, object]]:
    end_ns = start_ns + _LENGTH_S * NS_PER_S
    begin, end = (
        Episode(
            stamp_ns=stamp_ns,
            episode_id="library",
            state=state,
            suite="session",
            start_ns=start_ns,
            end_ns=end_ns,
        )
        for stamp_ns, state in ((start_ns, EpisodeEdge.BEGIN), (end_ns, EpisodeEdge.END))
    )
    query = Query(
        stamp_ns=start_ns + 11 * NS_PER_S,
        query_id="library-1",
        episode_id="library",
        task="action",
        options=("Take the book from the reader's hands", "Tell Ana where the books about whales are", ""),
        others_given=True,
        others=(OtherAgent(agent_id="A", role="reader", doing="reading a book", duplicable=Duplicable.NO),),
        viewpoint_given=True,
        viewpoint=Viewpoint(description="behind the desk, facing the entrance", place="desk", role="host"),
    )
    return [(start_ns, EPISODES, begin), (query.stamp_ns, QUERIES, query), (end_ns, EPISODES, end)]

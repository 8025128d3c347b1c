"""`tactful calibrate examples`: draw pictures without faces and sentences from bags, for an int8 quantization."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import cv2
import numpy as np

from calibration.example_set import (
    ExampleSet,
    Matrix,
    PictureExample,
    Pixels,
    SentenceExample,
    SourceBag,
    draw_diverse,
    picture_descriptor,
)
from norm_core.bags.reader import BagError, BagReader
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.models.store import hashed_file
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_plain
from norm_core.records.messages import message_type
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from sim_replays.flag_runs.bag_flags import bag_digest, find_bags
from study_desk.privacy.face_search import TiledFaceDetector
from tactful_cli.bag.pictures import NoPictureTopicError, frames_of
from tactful_cli.console import complain, out, print_json

_FACE, _NO_PICTURE, _ALIKE = "pictures with a face", "pictures that cannot be decoded", "not chosen: alike or too many"


def draw_examples(bags: Sequence[Path], folder: Path, count: int, seed: int, as_json: bool) -> None:
    """Draw, write the folder and its manifest, and print what was left out."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TactfulError(f"--out: {folder} is no empty folder; name a new one")
    detector = TiledFaceDetector()  # without its weights, no picture leaves a bag
    left_out: Counter[str] = Counter()
    frames: list[tuple[str, Frame]] = []
    said: dict[str, SentenceExample] = {}
    sources = []
    for name, path in find_bags(bags).items():
        with BagReader(path) as bag:
            sources.append(SourceBag(bag=name, digest=bag_digest(bag)))
            for sentence in _sentences(name, bag):
                said.setdefault(sentence.text, sentence)
        try:
            found = list(frames_of(path))
        except NoPictureTopicError as error:
            complain(str(error))
            continue
        left_out[_NO_PICTURE] += found.count(None)
        frames += [(name, frame) for frame in found if frame]
    if not frames and not said:
        raise BagError(f"{', '.join(map(str, bags))}: hold no picture and no words; name other bags")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    pictures = _pictures(frames, folder, count, seed, detector, left_out)
    sentences = _chosen_sentences(list(said.values()), count, seed)
    left_out[_ALIKE] += len(frames) - len(pictures) - left_out[_FACE] + len(said) - len(sentences)
    made = ExampleSet(
        made_on=date.today().isoformat(),
        seed=seed,
        sources=tuple(sources),
        pictures=tuple(pictures),
        sentences=tuple(sentences),
        left_out=dict(left_out),
    )
    made.write(folder)
    _show(made, folder, as_json)


def _sentences(name: str, bag: BagReader) -> Iterator[SentenceExample]:
    types = {message_type(Utterance), message_type(RobotSpeech)}
    topics = [topic.topic for topic in bag.topics if topic.type_name in types]
    for message in bag.messages(topics) if topics else ():
        text = bag.decode(message).text.strip()
        if text:
            yield SentenceExample(text=text, bag=name, stamp_ns=message.stamp_ns)


def _chosen_sentences(said: Sequence[SentenceExample], count: int, seed: int) -> list[SentenceExample]:
    if not said:
        return []
    vectors = SentenceEncoder().encode([one.text for one in said])
    return [said[place] for place in draw_diverse(np.asarray(vectors, np.float32), count, seed)]


def _pictures(  # noqa: PLR0917
    frames: Sequence[tuple[str, Frame]],
    folder: Path,
    count: int,
    seed: int,
    detector: TiledFaceDetector,
    left_out: Counter[str],
) -> list[PictureExample]:
    def has_no_face(place: int) -> bool:
        has_face = bool(detector.find(_pixels(frames[place][1])))
        left_out[_FACE] += has_face
        return not has_face

    rows: Matrix = np.array([picture_descriptor(_pixels(frame)) for _, frame in frames], np.float32)
    examples = []
    for number, place in enumerate(draw_diverse(rows, count, seed, has_no_face)):
        name, frame = frames[place]
        path = folder / f"{number:04}.jpg"
        write_atomic(path, frame.tile_jpeg, mode=0o600)
        examples.append(
            PictureExample(
                file=path.name, sha256=hashed_file(folder, path.name).sha256, bag=name, stamp_ns=frame.stamp_ns
            )
        )
    return examples


def _pixels(frame: Frame) -> Pixels:
    return np.asarray(cv2.imdecode(np.frombuffer(frame.tile_jpeg, np.uint8), cv2.IMREAD_COLOR), np.uint8)


def _show(made: ExampleSet, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(folder), **to_plain(made)})
        return
    counts = f"{count_of(len(made.pictures), 'picture')} and {count_of(len(made.sentences), 'sentence')}"
    out.print(f"{folder}: {counts} of {count_of(len(made.sources), 'bag')}", soft_wrap=True)
    for why, number in made.left_out.items():
        out.print(f"left out, {why}: {number}", soft_wrap=True)
    if made.sentences:
        out.print("the sentences stand there as they were said, with any names in them", soft_wrap=True)

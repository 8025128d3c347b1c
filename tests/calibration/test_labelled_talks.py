"""The talks that readings are learnt from: their format, and that the shipped weights were learnt from them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.exchange_trainer import LabelledTalkError, exchanges, read_talks, talks_sha256, write
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import Attribute, Polarity
from norm_monitor.context.exchange import SHIPPED as WEIGHTS
from norm_monitor.context.exchange import Exchange, ExchangeClassifier
from norm_monitor.context.wording import sentences, word_count
from norm_monitor.encounters import library

# Shorter ones are everybody's.
MOST_WORDS_IN_COMMON = 6
SURE = 0.6

TALK = """# desk; a man; the robot guides
r: Morning! | + norms engagement
u: Where is the lift?
v: He means the stairs.
r: On the left. |
r: Mind your bad knee. | - social

# desk; nobody
u: Hm.
"""


def talks_of(folder: Path, text: str) -> Path:
    (folder / "one.txt").write_text(text, encoding="utf-8")
    return folder


def test_a_talk_is_read_turn_by_turn(tmp_path: Path) -> None:
    first, second, third = exchanges(read_talks(talks_of(tmp_path, TALK)))
    words = "Where is the lift? He means the stairs."
    lift, knee = "On the left.", "Mind your bad knee."
    assert first.exchange == Exchange(before="", said="Morning!", after=words, then=lift, opening=True)
    assert second.exchange == Exchange(before=words, said=lift, then=knee, earlier="Morning!")
    assert third.exchange == Exchange(before="", said=knee, earlier=lift)
    assert [one.polarity for one in (first, second, third)] == [Polarity.COMPETENCE, None, Polarity.ERROR]
    assert first.attributes == (Attribute.SOCIAL_NORMS_AND_ROUTINES, Attribute.ENGAGEMENT)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("r: Hello.", "the robot's turns end in"),
        ("u: Hello. | + norms", "the robot's turns end in"),
        ("r: Hello. | + manners", "manners is no attribute"),
        ("r: Hello. | +", "a turn is"),
        ("r: Hello. | norms", "a turn is"),
        ("x: Hello.", "a turn is"),
        ("r:", "a turn is"),
    ],
)
def test_a_line_that_is_no_turn_is_named(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(LabelledTalkError, match=f"one.txt, line 2: .*{why}"):
        read_talks(talks_of(tmp_path, f"# desk\n{line}\n"))


def test_a_turn_before_any_talk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabelledTalkError, match="line 1: a talk begins with"):
        read_talks(talks_of(tmp_path, "u: Hello.\n"))


def test_the_shipped_weights_are_of_the_shipped_talks() -> None:
    made_from = ExchangeClassifier(SentenceEncoder()).made_from
    assert made_from["talks"] == talks_sha256(), "learn them anew: python -m calibration.exchange_trainer"
    assert made_from["turns"] == sum(1 for _ in exchanges(read_talks()))


def test_no_longer_sentence_of_an_encounter_is_learnt_from() -> None:
    learnt = {sentence for talk in read_talks() for turn in talk for sentence in sentences(turn.text)}
    for split in library.SPLITS:
        turns = (turn for encounter in library.encounters(split) for turn in encounter.turns)
        told = {sentence for turn in turns for sentence in sentences(turn.say)}
        shared = {sentence for sentence in learnt & told if word_count(sentence) > MOST_WORDS_IN_COMMON}
        assert not shared, f"{split} shares {len(shared)} sentences with the talks"


def test_the_words_before_decide_whether_an_answer_is_right(tmp_path: Path) -> None:
    """No sum of what the two texts mean by themselves could tell this."""
    news = {"glad": "I passed my exam!", "sad": "My dog died yesterday."}
    answers = {"glad": "How wonderful!", "sad": "I am so sorry."}
    lines = [
        f"# desk {at}\nu: {news[told]}\nr: {answers[taken_for]} | {'' if told == taken_for else '- emotions'}".rstrip()
        for at in range(30)
        for told in news
        for taken_for in answers
    ]
    encoder = SentenceEncoder()
    examples = list(exchanges(read_talks(talks_of(tmp_path, "\n\n".join(lines)))))
    write(examples, encoder, "twins", tmp_path / "weights.npz")
    reader = ExchangeClassifier(encoder, tmp_path / "weights.npz", seen=None)
    for told, before in news.items():
        for taken_for, answer in answers.items():
            amiss = reader.read(Exchange(before=before, said=answer, opening=True)).probability[Polarity.ERROR]
            assert amiss < 1 - SURE if told == taken_for else amiss > SURE


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"made_from": np.array('{"encoder": "another", "talks": "", "turns": 0}')}, "another sentence encoder"),
        ({"logistic_1": None}, "logistic_1"),
        (b"weights: none\n", r"weights.npz cannot be read \(File is not a zip file\)"),
        (WEIGHTS.read_bytes()[:9_000], r"weights.npz cannot be read .*: learn it anew"),
    ],
    ids=["encoder", "part", "no weights", "cut short"],
)
def test_damaged_weights_are_refused(tmp_path: Path, damage: bytes | dict[str, Any], why: str) -> None:
    path = tmp_path / "weights.npz"
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        with np.load(WEIGHTS) as file:
            parts = {**file, **damage}
        np.savez(path, **{name: part for name, part in parts.items() if part is not None})
    with pytest.raises(EngineFailedError, match=why):
        ExchangeClassifier(SentenceEncoder(), path)

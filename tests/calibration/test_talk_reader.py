"""The recipe of the talk reader: what it learns from, that it learns, and that the robot reads as it was taught."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.exchange_trainer import LabelledTurn
from calibration.talk_reader.lessons import Kind, Target, TaughtTalk, misheard, read_material
from calibration.talk_reader.material import encounter_talk, invented_talks, judged_talk, written_scenes
from calibration.talk_reader.swaps import replied_lines, swaps
from calibration.talk_verdicts.talk_file import Answer, Talk
from norm_core.engines.reader.reader_setup import write_reader
from norm_core.engines.talk_reader import TURN_OUTPUTS, TalkReader, format_option, format_scene
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.json_codec import to_json
from norm_core.runtime.errors import TactfulError
from norm_monitor.context.talk_lines import talk_lines
from norm_monitor.encounters.library import encounters
from tests.norm_core.models.tiny_decoder import write_tiny_decoder

# A line that loses much where it is misheard: a pass then has fewer batches than the material.
AFTER = "Person: b... b!!! b??? b;;; b...\n"
SCENE = TaughtTalk(
    id="",
    corpus="scenes",
    lines=(*format_scene("b b", ["Ann: t"]), format_option("elel"), format_option("x t t")),
    machine=frozenset({2, 3}),
    targets={2: Target(possible=0.0, fitting=1.0), 3: Target(possible=1.0, fitting=0.0)},
    is_scene=True,
)


def test_people_are_numbered_as_they_come() -> None:
    said = [("ann", "Hi."), ("", "Hello \n there."), ("bob", "Me too."), ("ann", "x" * 2000)]
    assert list(talk_lines(said))[:3] == ["Person: Hi.\n", "Robot: Hello there.\n", "Person 2: Me too.\n"]
    assert len(list(talk_lines(said))[3]) == 800 + len("Person: \n")


def test_lessons_hold_labels_answers_and_verdicts_at_the_machines_lines() -> None:
    turns = (
        LabelledTurn(is_robot=False, text="Where is it?"),
        LabelledTurn(
            is_robot=True, text="One euro.", polarity=Polarity.ERROR, attributes=(Attribute.CONVERSATIONAL_MECHANICS,)
        ),
    )
    answer = Answer(talk="talks:0", n=1, fault=0.9, good=0.1)
    (invented,) = invented_talks([turns], {("talks:0", 1): answer})
    expected = Target(kind=Kind.ERROR, attributes=(Attribute.CONVERSATIONAL_MECHANICS,), held=0.9, good=0.1)
    assert set(invented.targets) == invented.machine == {1}
    assert invented.targets[1] == expected
    people = [
        {"by": "person", "text": "Hi"},
        {"by": "machine", "text": " "},
        {"by": "machine", "text": "Yo", "rating": [1, 5]},
    ]
    judged = judged_talk(Talk.model_validate({"id": "a", "corpus": "c-x", "turns": people}), {})
    assert judged.corpus == "c"
    assert judged.targets == {1: Target(verdict=0.5)}


def test_the_robots_lines_of_an_encounter_carry_the_coders_labels() -> None:
    encounter = next(one for one in encounters("development") if one.id.endswith("airport_gate"))
    talk = encounter_talk(encounter, "earlier")
    kinds = {talk.lines[place]: target.kind for place, target in talk.targets.items()}
    assert all(line.startswith("Robot: ") for line in kinds)
    assert kinds[next(iter(kinds))] is Kind.COMPETENCE
    assert talk.onsets_ns == tuple(sorted(talk.onsets_ns))


def test_a_scenes_options_come_in_no_order_of_their_worth() -> None:
    scenes = list(written_scenes())
    assert len({scene.writer for scene in scenes}) == 3
    best = []
    for scene in scenes:
        assert scene.is_scene
        worth = [(target.possible or 0) * (target.fitting or 0) for _, target in sorted(scene.targets.items())]
        assert worth.count(1) == 1
        best.append(worth.index(1) / (len(worth) - 1))
    assert 0.45 < sum(best) / len(best) < 0.55


def test_an_answer_to_another_question_ends_a_talk_and_is_an_error() -> None:
    lines = (
        "Person: Where is the bridge?\n",
        "Robot: Down this street to the water.\n",
        "Person: What do newspapers cost?\n",
        "Robot: They are one euro fifty.\n",
        "Person: Is the harbour far?\n",
        "Robot: The harbour is two stops away.\n",
    )
    robots = {place: Target(kind=Kind.ORDINARY) for place in (1, 3, 5)}
    talk = TaughtTalk(id="a", corpus="c", writer="w", lines=lines, machine=frozenset(robots), targets=robots)
    swapped = {len(one.lines): one for one in swaps([talk], 9)}
    assert swapped[2].lines in {(lines[0], lines[3]), (lines[0], lines[5])}
    assert swapped[6].lines in {(*lines[:5], lines[1]), (*lines[:5], lines[3])}
    assert all(one.writer == "w" for one in swapped.values())
    assert swapped[4].targets[1].kind is Kind.ORDINARY
    assert [one.targets[len(one.lines) - 1].kind for one in swapped.values()] == [Kind.ERROR] * 3
    held = replace(talk, targets=dict.fromkeys(robots, Target(kind=Kind.ERROR)))
    assert not list(swaps([held], 9))
    judged = replace(talk, targets=dict.fromkeys(robots, Target(held=0.1)))
    assert {one.targets[len(one.lines) - 1].kind for one in swaps([judged], 9)} == {None}


def test_written_replies_are_half_right_and_half_wrong() -> None:
    for line in replied_lines():
        talks = list(line.talks())
        assert [talk.targets[len(talk.lines) - 1].kind is Kind.ERROR for talk in talks] == [False, False, True, True]
        assert {talk.lines[-2].split(": ", 1)[1].strip() for talk in talks} == {" ".join(line.said.split())}
        assert len({talk.lines[-1] for talk in talks}) == len(talks)


@given(st.integers(), st.lists(st.sampled_from(["Person: a b, c d.\n", "Robot: Yes?\n", "Person: \n"]), min_size=1))
def test_mishearing_keeps_lines_and_the_robots_words(seed: int, lines: list[str]) -> None:
    machine = frozenset(place for place, line in enumerate(lines) if line.startswith("Robot"))
    heard = misheard(TaughtTalk(id="", corpus="", lines=tuple(lines), machine=machine), random.Random(seed))
    assert [line.split(": ")[0] for line in heard.lines] == [line.split(": ")[0] for line in lines]
    assert all(heard.lines[place] in {"Robot: Yes?\n", "Robot: yes\n"} for place in machine)
    assert all(line.endswith("\n") for line in heard.lines)


def _lessons(path: Path) -> Path:
    """Write talks in which "el" is an error and " t" is none, by two writers."""
    talks = [
        TaughtTalk(
            id=f"{writer}\u2028{number}",
            corpus="encounters",
            writer=writer,
            lines=("Person: a\n", f"Robot: {text}\n", AFTER),
            machine=frozenset({1}),
            targets={1: Target(kind=kind, attributes=attributes, held=held)},
        )
        for number in range(12)
        for writer in ("one", "two")
        for text, kind, attributes, held in (
            ("elel", Kind.ERROR, (Attribute.EMOTIONS,), 0.9),
            ("x t t", Kind.ORDINARY, (), 0.1),
        )
    ]
    scenes = (replace(SCENE, writer=talk.writer, id=f"scene {talk.id}") for talk in talks)
    talks += {scene.id: scene for scene in scenes}.values()
    path.write_text("".join(f"{to_json(talk)}\n" for talk in talks), encoding="utf-8")
    assert len(read_material([path])) == len(talks)
    return path


@pytest.mark.torch
def test_a_reader_is_taught_stopped_taken_up_and_read_on_the_robot(tmp_path: Path) -> None:
    """What the graph says of a line is what the model that was taught says of it."""
    from calibration.talk_reader.train import teach

    base, out = tmp_path / "tiny.gguf", tmp_path / "run"
    write_tiny_decoder(base)
    material = [_lessons(tmp_path / "lessons.jsonl")]

    def go(limit_s: float = float("inf"), folder: Path = out) -> None:
        teach(base, material, folder, ["two"], passes=6, rate=5e-3, length=96, rows=2, limit_s=limit_s, rank=4)

    go(limit_s=0.0)
    assert {path.name for path in out.iterdir()} == {"state.pt"}
    go()
    curve = (out / "curve.csv").read_text(encoding="utf-8").splitlines()
    assert len(curve) > 2
    with np.load(out / "left_out.npz") as left_out:
        names, outputs = left_out["talks"][left_out["talk"]], left_out["outputs"].astype(np.float64)
        lines = left_out["line"]
    assert all(name.startswith(("two", "scene")) for name in names)
    of_talks = np.array([not name.startswith("scene") for name in names])
    kinds = np.exp(outputs[(lines == 1) & of_talks, :3])
    error = kinds[:, 1] / kinds.sum(axis=1)
    assert error[::2].min() > 0.6  # "elel"
    assert error[1::2].max() < 0.4  # "x t t"

    write_reader(base, out / "adapter.safetensors", tmp_path / "reader")
    reader = TalkReader.open(tmp_path / "reader")
    assert json.loads(reader.manifest.adapter["without"]) == ["two"]
    read = reader.start().read(["Person: a\n", "Robot: elel\n", AFTER])
    assert read[1].turns[0].polarity[Polarity.ERROR] == pytest.approx(error[0], abs=0.03)
    before = np.exp(outputs[2, TURN_OUTPUTS : TURN_OUTPUTS + 3])
    assert read[2].turns[1].polarity[Polarity.ERROR] == pytest.approx(float(before[1] / before.sum()), abs=0.03)
    # Each option was taught beside the others, and is read on the robot after the scene alone.
    talk = reader.start()
    talk.read(SCENE.lines[:2])
    options = [[one.possible, one.fitting] for one in talk.read_options(SCENE.lines[2:])]
    assert len(talk.readings) == 2
    assert np.array(options) == pytest.approx(1 / (1 + np.exp(-outputs[~of_talks][2:4, -2:])), abs=0.03)
    assert options[0][1] > 0.6 > options[1][1]


@pytest.mark.torch
def test_nothing_to_teach_is_said(tmp_path: Path) -> None:
    from calibration.talk_reader.train import teach

    base = tmp_path / "tiny.gguf"
    write_tiny_decoder(base)
    material = [_lessons(tmp_path / "lessons.jsonl")]
    with pytest.raises(TactfulError, match="nothing is left to teach"):
        teach(base, material, tmp_path / "run", ["one", "two"])
    with pytest.raises(TactfulError, match="take longer rows"):
        teach(base, material, tmp_path / "run", length=2)

"""Facts that a person told about themselves, and whether the robot remembers them."""

import re
from collections.abc import Iterator
from functools import lru_cache

from norm_core.runtime.data_files import shipped_file
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_question, question_in, sentences, tokens
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.naming import given_names
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

# Words too common to be a fact about a person.
_COMMON = frozenset(shipped_file("norm_monitor.cues", "common_words.txt").read_text(encoding="utf-8").split())


def asking_again(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot asks what a person has already answered."""
    least = table.cues["asks_again"].value("similarity")
    for robot in scene.recent:
        question = question_in(robot.text) if robot.is_robot else ""
        if not question or meaning.match(question, "check_in") or meaning.match(question, "clarification"):
            continue
        wants_name = bool(meaning.match(question, "name_question"))
        known = scene.facts_of_addressee(robot)
        for fact in known:
            if not fact.question:
                continue
            similarity = meaning.similarity(fact.question, question)
            same = similarity >= least or (wants_name and bool(meaning.match(fact.question, "name_question")))
            if same and not meaning.match(fact.turn.text, "repair_request"):
                yield _asked_again(table, robot, fact.turn, similarity, least)
                break
        else:
            told = [fact.turn for fact in known if given_names(fact.turn.text)]
            if wants_name and told:
                yield _asked_again(table, robot, told[-1], 1.0, least)


def forgotten_facts(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot refers to a specific fact that a person told some turns before."""
    least = int(table.cues["recalls_fact"].value("turns"))
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        earlier = [u for u in scene.user_turns if u.start_ns < robot.start_ns]
        later = {word for u in earlier[-(least - 1) :] for word in _particular(u.text)} if least > 1 else set()
        own = {word for r in scene.robot_turns if r.start_ns < robot.start_ns for word in _particular(r.text)}
        lately = {u.turn_id for u in earlier[-(least - 1) :]} if least > 1 else set()
        for user in (fact.turn for fact in scene.facts_of_addressee(robot) if fact.turn.turn_id not in lately):
            shared = (_specific_words(user.text) & _particular(robot.text)) - later - own
            if shared:
                yield table.finding(
                    "recalls_fact",
                    Unit.of_turn(robot),
                    evidence=[
                        evidence_of(user, "the fact told, words", user.word_count),
                        evidence_of(robot, "words of it taken up", len(shared), 1),
                    ],
                    rationale=f"The robot came back to what the person had said earlier: {quote(robot)}.",
                )
                break


def _asked_again(table: ThresholdTable, robot: Turn, answer: Turn, similarity: float, least: float) -> Findings:
    return table.finding(
        "asks_again",
        Unit.of_turn(robot),
        evidence=[
            evidence_of(robot, "similarity of the questions", similarity, least),
            evidence_of(answer, "words of the answer", answer.word_count),
        ],
        rationale=f"The robot asked {quote(robot)}, which the person had already answered.",
    )


@lru_cache(maxsize=1024)
def _specific_words(text: str) -> frozenset[str]:
    """Return the specific words in the sentences that a person says about themselves."""
    own = {"my", "i", "i'm", "i've", "we", "our"}
    parts = [part for part in sentences(text) if own & set(tokens(part)) and not is_question(part)]
    return frozenset().union(*(_particular(part) for part in parts))


# Cached, because each window reads the turns of the last minutes again.
@lru_cache(maxsize=2048)
def _particular(text: str) -> frozenset[str]:
    return frozenset(_stem(token) for token in tokens(text) if len(token) > 3 and token not in _COMMON)


def _stem(token: str) -> str:
    return re.sub(r"('s|s|ing|ed)$", "", token)

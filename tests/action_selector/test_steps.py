"""What each step of a decision does."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from action_selector.candidates import Needs, Skill, SkillCatalogue
from action_selector.choose.abstain import select_possible
from action_selector.decider import STEPS
from action_selector.house_rules import HardRule, HouseRule, HouseRules
from action_selector.observation import convert_people
from action_selector.retrieval import Precedent, PrecedentIndex
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.decision import Decision, Duplicable, Norm, Veto, Viewpoint
from norm_core.records.presence import Engagement, Gaze, Person
from tests.action_selector.questions import BEST_EFFORT, NOW_NS, decide, list_vetoes, other, request

CATALOGUE = SkillCatalogue(
    skills=(
        Skill(action="Bring a towel.", norms=(Norm.COOPERATION,), needs=Needs(places=("bathroom",))),
        Skill(action="Say good morning.", norms=(Norm.POLITENESS,)),
        Skill(action="Carry the tray.", norms=(Norm.COOPERATION,), needs=Needs(facts=("hands free",))),
        Skill(action="Announce the ward round.", norms=(Norm.COMMUNICATION,), needs=Needs(roles=("nurse",))),
    )
)


def test_each_other_agent_vetoes_one_candidate(sentences: SentenceEncoder) -> None:
    nurse = other("measuring the patient's blood pressure", "nurse")
    asked = request("Measure the blood pressure.", "Take the patient's blood pressure.", "Bring tea.", others=(nurse,))
    vetoes = list_vetoes(decide(sentences, asked))
    assert sorted(vetoes) == sorted([Veto.SINGLETON, Veto.NONE, Veto.NONE])


def test_veto_and_avoidance_of_others_can_be_switched_off(sentences: SentenceEncoder) -> None:
    cook = other("stirring the soup", "cook")
    asked = request("Stir the pot of soup.", "Hum a tune.", situation="Soup is on the stove.", others=(cook,))

    def decided(**less: bool) -> tuple[Veto, bool]:
        first, second = decide(sentences, asked, BEST_EFFORT.model_copy(update=less)).candidates
        return first.veto, first.probability > second.probability

    assert decided() == (Veto.SINGLETON, False)
    assert decided(veto_others=False) == (Veto.NONE, False)
    assert decided(veto_others=False, avoid_others=False) == (Veto.NONE, True)


def test_shared_activity_vetoes_nothing(sentences: SentenceEncoder) -> None:
    asked = request("Applaud the singer.", "Leave.", others=(other("applauding", "guest", duplicable=Duplicable.YES),))
    assert set(list_vetoes(decide(sentences, asked))) == {Veto.NONE}


def test_people_without_known_activity_veto_nothing(sentences: SentenceEncoder) -> None:
    """And what they do with the robot itself it cannot do in their place."""
    persons = (
        Person(person_id="p1", distance_m=1.24, gaze=Gaze.AT_ROBOT, engagement=Engagement.ENGAGED),
        Person(person_id=""),
        Person(person_id="p2"),
    )
    people = convert_people(persons)
    assert [(agent.agent_id, agent.appearance, agent.doing) for agent in people] == [
        ("p1", "the person 1.2 m away, looking at the robot", "busy with the robot"),
        ("p2", "a person", ""),
    ]
    decision = decide(sentences, request("Greet the guest.", "Be busy with the robot.", others=people))
    assert set(list_vetoes(decision)) == {Veto.NONE}


def test_unmet_needs_veto_skills_of_the_catalogue(sentences: SentenceEncoder) -> None:
    asked = request(viewpoint=Viewpoint(place="kitchen", role="guide"))
    decision = decide(sentences, asked, catalogue=CATALOGUE)
    vetoes = {candidate.action: candidate.veto for candidate in decision.candidates}
    assert vetoes == {
        "Bring a towel.": Veto.PRECONDITION,
        "Say good morning.": Veto.NONE,
        "Carry the tray.": Veto.PRECONDITION,
        "Announce the ward round.": Veto.PRECONDITION,
        "": Veto.NONE,
    }
    assert decision.chosen == "Say good morning."
    freed = decide(sentences, request(facts=("hands_free",)), catalogue=CATALOGUE)
    assert freed.candidates[0].veto is freed.candidates[2].veto is Veto.NONE


@pytest.mark.parametrize("place", ["bathroom", "in the bathroom", "The bathroom, ground floor", "guest_bathroom"])
def test_place_matches_in_other_words(sentences: SentenceEncoder, place: str) -> None:
    decision = decide(sentences, request(viewpoint=Viewpoint(place=place)), catalogue=CATALOGUE)
    assert decision.candidates[0].veto is Veto.NONE


@pytest.mark.parametrize(
    "action", ["Go into the bathroom and knock.", "Follow her to the toilets.", "Enter the bathroom."]
)
def test_hard_rule_vetoes_by_word_and_by_meaning(sentences: SentenceEncoder, action: str) -> None:
    hard = HardRule(never="enter the bathroom", words=("bathroom", "toilet"), why="people undress there")
    decision = decide(sentences, request(action, "Wait outside."), rules=HouseRules(hard=(hard,)))
    assert decision.candidates[0].veto is Veto.HARD_RULE
    assert "people undress there" in decision.candidates[0].veto_reason
    assert decision.chosen_index == 1


def check_vetoes(sentences: SentenceEncoder, kind: str) -> dict[str, bool]:
    """Return whether its rule vetoes each action of a kind in the table of evasions."""
    table = yaml.safe_load(Path(__file__).with_name("rule_evasions.yaml").read_text(encoding="utf-8"))
    vetoed: dict[str, bool] = {}
    for entry in table:
        rules = HouseRules(hard=(HardRule(never=entry["never"], words=tuple(entry["words"])),))
        # Each action has a request of its own, because some differ by case alone.
        for action in entry[kind]:
            decision = decide(sentences, request(action, ""), BEST_EFFORT, rules=rules)
            vetoed[action] = decision.candidates[0].veto is Veto.HARD_RULE
    return vetoed


def test_hard_rule_finds_disguised_letters(sentences: SentenceEncoder) -> None:
    vetoed = check_vetoes(sentences, "disguised")
    assert len(vetoed) >= 40
    assert not [action for action, is_vetoed in vetoed.items() if not is_vetoed]


def test_hard_rule_spares_harmless_actions(sentences: SentenceEncoder) -> None:
    harmless, reworded = check_vetoes(sentences, "harmless"), check_vetoes(sentences, "reworded")
    assert (len(harmless), len(reworded)) == (37, 25)
    assert not [action for action, is_vetoed in harmless.items() if is_vetoed]
    assert sum(reworded.values()) >= 18


def test_house_rules_outrank_precedents(sentences: SentenceEncoder) -> None:
    scene = "A guest has dropped a glass on the floor of the dining room."
    sweep, call = "Sweep up the pieces of glass.", "Call a member of staff."
    learned = PrecedentIndex.build([Precedent(source="v", scene=scene, action=sweep)], sentences)
    rule = HouseRule(situation="A glass has broken on the floor.", do=call, dont=sweep, why="splinters need gloves")
    asked = request(sweep, call, situation=scene)
    assert decide(sentences, asked, precedents=learned).chosen == sweep
    decision = decide(sentences, asked, precedents=learned, rules=HouseRules(rules=(rule,)))
    assert decision.chosen == call
    assert "splinters need gloves" in decision.explanation


def test_house_rule_vetoes_only_what_it_advises_against(
    sentences: SentenceEncoder,
) -> None:
    rule = HouseRule(
        situation="A glass has broken on the floor.",
        do="Call a member of staff.",
        dont="Sweep up the pieces.",
        why="splinters need gloves",
    )

    def decided(*options: str) -> Decision:
        asked = request(*options, situation="A glass has broken on the floor.")
        return decide(sentences, asked, rules=HouseRules(rules=(rule,)))

    nothing = decided("Sweep up the pieces.", "")
    assert (nothing.chosen, nothing.candidates[0].veto) == ("", Veto.HOUSE_RULE)
    assert "not “Sweep up the pieces.”: a house rule advises against it: splinters" in nothing.explanation
    assert "splinters" not in decided("Sing a song.", "Play the piano.").explanation
    called = decided("Call a member of staff.", "Sing a song.")
    assert called.explanation.startswith("Call a member of staff: splinters need gloves.")


@pytest.mark.parametrize(
    ("doing", "action"),
    [
        ("carrying a table", "Help to carry the table."),
        ("looking for a seat", "Offer the woman a seat."),
        ("leaving the lift", "Wait for the lift."),
        ("shouting that there is a fire", "Warn the guests of the fire."),
        ("playing the piano", "Please applaud the pianist at the piano."),
    ],
)
def test_response_to_another_agent_is_not_vetoed(sentences: SentenceEncoder, doing: str, action: str) -> None:
    decision = decide(sentences, request(action, "Hum a tune.", others=(other(doing, "guest"),)))
    assert decision.candidates[0].veto is Veto.NONE
    same = decide(sentences, request(action, "Hum a tune.", others=(other(f"doing this: {action}", "guest"),)))
    assert same.candidates[0].veto is Veto.SINGLETON


def test_safety_skill_is_not_vetoed_by_others(sentences: SentenceEncoder) -> None:
    cook = other("switching off the stove", "cook")
    skills = SkillCatalogue(skills=(Skill(action="Switch off the stove.", norms=(Norm.SAFETY,)),))
    assert decide(sentences, request("Switch off the stove.", "", others=(cook,))).chosen == ""
    assert decide(sentences, request(others=(cook,)), catalogue=skills).chosen == "Switch off the stove."


def test_explanation_names_the_ground_of_the_choice(sentences: SentenceEncoder) -> None:
    cook = other("stirring the soup", "cook")

    def line(*options: str, **fields: Any) -> str:
        return decide(sentences, request(*options, **fields)).explanation

    assert line("Mop up the puddle.", "Hum.", situation="There is a puddle.").startswith(
        "Mop up the puddle: it is nearest to what is said of the scene."
    )
    assert "it is least like what the others do" in line("Lay the table.", "Feed the dog.", others=(cook,))
    assert line("Stir the soup.", "Lay the table.", others=(cook,)) == (
        "Lay the table: nothing else stands. (not “Stir the soup.”: the cook is doing that already)"
    )


def test_house_rule_for_another_situation_does_not_apply(sentences: SentenceEncoder) -> None:
    rule = HouseRule(situation="The fire alarm rings.", do="Leave.", dont="Serve the tea.", why="fire")
    asked = request("Serve the tea.", "Leave.", situation="It is tea time in the lounge and guests are waiting.")
    assert decide(sentences, asked, rules=HouseRules(rules=(rule,))).chosen == "Serve the tea."


def test_precedents_of_the_same_source_are_not_used(sentences: SentenceEncoder) -> None:
    scene = "A child stands before a shut door with both hands full."
    learned = PrecedentIndex.build([Precedent(source="video-1", scene=scene, action="Hum a tune.")], sentences)
    asked = request("Hum a tune.", "Open the door for the child.", situation=scene)
    assert decide(sentences, asked, precedents=learned).chosen_index == 0
    assert (
        decide(
            sentences, request(*asked.candidates, situation=scene, source="video-1"), precedents=learned
        ).chosen_index
        == 1
    )


def test_justification_fits_the_chosen_action(sentences: SentenceEncoder) -> None:
    reasons = ("A wet floor makes people slip.", "Thirsty guests are offered water.", "")
    asked = request(
        "Mop up the puddle.", "Stare at the guest.", "", situation="There is a puddle.", justifications=reasons
    )
    decision = decide(sentences, asked)
    assert (decision.chosen_index, decision.justification_index) == (0, 0)
    nothing = request("Mop it.", "", others=(other("mopping it"),), justifications=reasons[1:])
    assert decide(sentences, nothing).justification_index == 1


PROBABILITIES = st.lists(st.floats(0.001, 1), min_size=1, max_size=8).map(
    lambda weights: {index: weight / sum(weights) for index, weight in enumerate(weights)}
)


@given(PROBABILITIES, st.floats(0.01, 1))
def test_possible_candidates_are_the_smallest_sufficient_set(probabilities: dict[int, float], coverage: float) -> None:
    could_be = select_possible(probabilities, coverage)
    assert sum(probabilities[index] for index in could_be) >= coverage - 1e-6
    lowest = min(probabilities[index] for index in could_be)
    clearly_above = [probabilities[index] for index in could_be if probabilities[index] > lowest + 1e-6]
    assert sum(clearly_above) < coverage
    assert all(value <= lowest + 1e-6 for index, value in probabilities.items() if index not in could_be)


def test_latency_segments_sum_to_the_total(sentences: SentenceEncoder) -> None:
    decision = decide(sentences, request("Wave.", "Bow.", justifications=("It is kind.", "It is polite.")))
    assert [segment.name for segment in decision.provenance.latency] == list(STEPS)
    assert decision.provenance.total_ns == decision.decided_ns - NOW_NS
    assert decision.stamp_ns == decision.decided_ns
    assert len(decision.provenance.config_sha256) == 64

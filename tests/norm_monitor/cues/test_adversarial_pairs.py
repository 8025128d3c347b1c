"""Every row of the field's cue table has a cue here, and the conduct that does it well has one too."""

import pytest

from norm_core.records.flag import Polarity
from norm_monitor.cues.threshold_table import ThresholdTable

# By row: what goes wrong, and what is worth noting where it goes right.
ROWS = {
    "response delay": ({"response_delay"}, {"timely_answer", "announced_delay"}),
    "no response": ({"no_response"}, {"timely_answer"}),
    "robot cuts in": ({"robot_cuts_in"}, {"waits_for_end"}),
    "user barges in": ({"talks_over_user"}, {"yields_to_user"}),
    "overlap": ({"robot_cuts_in", "talks_over_user"}, {"waits_for_end", "yields_to_user"}),
    "user repair": ({"user_repair", "misunderstood"}, {"repairs_at_once"}),
    "repetition": ({"robot_repeats", "user_repeats"}, {"repairs_at_once"}),
    "monologue": ({"monologue"}, {"checks_in"}),
    "user reaction": ({"user_repair", "misunderstood", "protest_manners"}, {"owns_up"}),
    "looking away, leaving": ({"ignores_looking_away", "ignores_leaving"}, {"checks_in"}),
    "proxemics": ({"too_near"}, set()),
    "ritual": ({"no_greeting", "no_goodbye", "no_apology"}, {"greets", "says_goodbye", "accepts_thanks", "owns_up"}),
    "name, fact recall": ({"wrong_name", "asks_again"}, {"recalls_name", "recalls_fact"}),
}


TABLE = ThresholdTable.shipped()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_cue_table_has_its_errors_and_their_twins(row: str) -> None:
    cues = TABLE.cues
    errors, twins = ROWS[row]
    assert {name for name in errors if cues[name].polarity is Polarity.ERROR} == errors
    assert {name for name in twins if cues[name].polarity is Polarity.COMPETENCE} == twins

"""Replies of models in the forms of the suites: strict, lenient, or no answer; never a guess."""

import pytest

from norm_core.records.episode import Query
from sim_replays.suites.suite import FORMS
from sim_replays.suites.videonorms import FORMS as NORM_FORMS

OPTIONS = ("Wait for the bus.", "Board the bus.", "Sit down.")
STRICT, LENIENT = True, False


def query(form: str, options: tuple[str, ...] = OPTIONS) -> Query:
    return Query(stamp_ns=0, query_id="q", episode_id="q", task="t", style=form, options=options)


@pytest.mark.parametrize(
    ("form", "reply", "chosen", "strict"),
    [
        ("json_letter", '{"answer": "B", "rationale": "it stops"}', (1,), STRICT),
        ("json_letter", '```json\n{"answer": "B"}\n```', (1,), LENIENT),
        ("json_letter", '{"answer": "Board the bus"}', (1,), LENIENT),
        ("json_letter", '<think>{"answer": "A"}</think>{"answer": "C"}', (2,), STRICT),
        ("json_letter", "(B) Board the bus.", (1,), LENIENT),
        ("json_letter", '{"answer": "D"}', None, STRICT),
        ("json_letter", '{"answer": ["A", "B"]}', None, STRICT),
        ("json_letter", "", None, STRICT),
        ("number", "2 people wait.\n\n3", (2,), STRICT),
        ("number", "Reasons.\n**Answer: 3**", (2,), LENIENT),
        ("number", "Reasons.\n1 or 3", None, STRICT),
        ("number", "Reasons.\n4", None, STRICT),
        ("number", "It takes 2.5 minutes", None, STRICT),
        ("number_list", "Some [text].\n[1, 3]", (0, 2), STRICT),
        ("number_list", "[]", (), STRICT),
        ("number_list", "[1, 3] are sensible.", (0, 2), LENIENT),
        ("number_list", "Both.\n1 and 2", (0, 1), LENIENT),
        ("number_list", "[1, 7]", None, STRICT),
        ("number_list", "none", None, STRICT),
        ("letter", "(B)", (1,), STRICT),
        ("letter", "It is (B), I think.", (1,), LENIENT),
        ("letter", "Either (A) or (B)", None, STRICT),
        ("letter", "b", None, STRICT),
        ("number", "(2) Board the bus.", (1,), LENIENT),
        ("number", "(2)", (1,), STRICT),
        ("number", "I would board the bus.", (1,), LENIENT),
        ("letters", "A, C", (0, 2), STRICT),
        ("letters", "(A) and (C)", (0, 2), STRICT),
        ("letters", "(A) Wait for the bus, since it is late; (C) Sit down", (0, 2), LENIENT),
        ("letters", "nothing of these", None, STRICT),
        ("letter", "True", (0,), STRICT),
    ],
)
def test_a_reply_is_read_or_it_is_not(form: str, reply: str, chosen: tuple[int, ...] | None, strict: bool) -> None:
    options = ("True", "False") if "rue" in reply or "false" in reply else OPTIONS
    found = FORMS[form](query(form, options), reply)
    assert (found and found.chosen) == chosen
    assert found is None or found.strict is strict


@pytest.mark.parametrize(
    ("form", "reply", "chosen", "text"),
    [
        ("adherence", '{"label": "violation"}', (1,), ""),
        ("adherence", "遵守/违反：遵守", (0,), ""),
        ("adherence", "Timestamp Start: 3\nAdherence/Violation: [Adherence]", (0,), ""),
        ("adherence", "The norm is adhered to.", (0,), ""),
        ("adherence", "Adherence or violation?", None, ""),
        ("evidence", '{"label": "adherence", "verbal": "Hi", "nonverbal": ""}', None, ""),
        (
            "evidence",
            "Adherence/Violation: Violation\nVerbal Evidence: He shouts.\nNonVerbal Evidence: He points.",
            (1,),
            '{"verbal": "He shouts.", "nonverbal": "He points."}',
        ),
        ("norm", '{"norm": "请打招呼"}', (), '{"norm": "请打招呼"}'),
        ("norm", "Say hello.", None, ""),
    ],
)
def test_norms_are_read_with_their_evidence(form: str, reply: str, chosen: tuple[int, ...] | None, text: str) -> None:
    found = NORM_FORMS[form](query(form), reply)
    assert (found and found.chosen) == chosen
    assert found is None or found.text == text

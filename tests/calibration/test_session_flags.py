"""What the coders of a session agree on, and what is left out."""

from dataclasses import replace
from pathlib import Path

from calibration.session_flags import coded_errors
from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, Label, LabelRemoval, Opinion, SessionInfo

EMOTIONS, ENGAGEMENT = Attribute.EMOTIONS, Attribute.ENGAGEMENT


def label(coder: str, at_s: float, attribute: Attribute = EMOTIONS, polarity: Polarity = Polarity.ERROR) -> Label:
    start_ns = round(at_s * NS_PER_S)
    return Label(start_ns=start_ns, end_ns=start_ns + NS_PER_S, polarity=polarity, attribute=attribute, coder=coder)


def recording(*labels: Label, removals: tuple[LabelRemoval, ...] = ()) -> Recording:
    info = SessionInfo(study="s", session="S1")
    return Recording(
        info=info, source=Path("S1"), head="", start_ns=0, end_ns=100 * NS_PER_S, labels=labels, removals=removals
    )


def seconds(found: tuple[int, ...]) -> list[float]:
    return [at_ns / NS_PER_S for at_ns in found]


def test_one_coder_is_taken_at_their_word() -> None:
    found = coded_errors(
        recording(label("a", 5), label("a", 5, ENGAGEMENT), label("a", 9, polarity=Polarity.COMPETENCE))
    )
    assert [one.attributes for one in found.errors] == [(EMOTIONS, ENGAGEMENT)]
    assert found.contested_ns == ()


def test_what_one_of_two_coders_lacks_is_contested() -> None:
    found = coded_errors(recording(label("a", 5), label("b", 6), label("a", 20), label("b", 40, ENGAGEMENT)))
    assert seconds(tuple(one.onset_ns for one in found.errors)) == [5]
    assert seconds(found.contested_ns) == [20, 40]


def test_a_coder_who_found_nothing_contests_all_of_the_other() -> None:
    coded = recording(label("a", 5), label("b", 50, polarity=Polarity.COMPETENCE))
    assert seconds(coded_errors(coded).contested_ns) == [5, 50]


def test_a_consensus_settles_what_coders_disagreed_on() -> None:
    settled, dropped = label("a", 20), label("b", 40)
    opinions = [
        Opinion(coder=one.coder, start_ns=one.start_ns, end_ns=one.end_ns, polarity=one.polarity, attribute=EMOTIONS)
        for one in (settled, dropped)
    ]
    agreed = replace(settled, coder=CONSENSUS, label_id="e1", opinions=(opinions[0],))
    removal = LabelRemoval(coder=CONSENSUS, label_id="e2", opinions=(opinions[1],))
    found = coded_errors(recording(settled, dropped, agreed, removals=(removal,)))
    assert (seconds(tuple(one.onset_ns for one in found.errors)), found.contested_ns) == ([20], ())


def test_an_error_that_is_a_competence_too_is_left_out() -> None:
    found = coded_errors(recording(label("a", 5), label("a", 5, polarity=Polarity.COMPETENCE), label("a", 30)))
    assert seconds(tuple(one.onset_ns for one in found.errors)) == [30]
    assert seconds(found.contested_ns) == [5]

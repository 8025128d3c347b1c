"""Privacy: names out, what was not consented to withheld, erasure that leaves a sound chain, pictures without faces."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, Polarity, SocialFlag, Verdict
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Person, Presence, PresenceState
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log import writer as log_module
from norm_monitor.session_log.key_file import KeyFile, KeyFileError
from norm_monitor.session_log.live_log import log_bag, name_bag
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.redact import NAME, WITHHELD, NamesToRemove, RedactionPolicy, Redactor
from norm_monitor.session_log.schema import Label, Participant, Review, Tombstone
from norm_monitor.session_log.session_config import make_redactor
from norm_monitor.session_log.writer import StudyLog
from norm_monitor.view.pictures import OtherBagError, check_bag
from study_desk.study.erase import erase, plan_erasure
from tests.study_session import START_NS, info, records, write_bag, write_log

DAY_NS = 86_400 * NS_PER_S


def said(text: str, speaker_id: str = "", speaker: Speaker = Speaker.USER, at_s: float = 1) -> Utterance:
    at_ns = START_NS + round(at_s * NS_PER_S)
    return Utterance(
        stamp_ns=at_ns, utterance_id=f"u-{text}", speaker=speaker, speaker_id=speaker_id, text=text, start_ns=at_ns,
        end_ns=at_ns + NS_PER_S,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Hello Ana, and anagram stays", "Hello P-1, and anagram stays"),
        ("ANA's book", "P-1's book"),
        ("李雷在吗", "P-2在吗"),
        ("My name is Zoltan. Zoltan it is.", f"My name is {NAME}. {NAME} it is."),
        ("I'm Bo, hello", f"I'm {NAME}, hello"),
        ("I'm tired, hello", "I'm tired, hello"),
        ("我叫小明，你好小明", f"我叫{NAME}，你好{NAME}"),
        ("Please call me a taxi. A taxi it is.", "Please call me a taxi. A taxi it is."),
        ("My name is on the list. On we go.", "My name is on the list. On we go."),
        ("CALL ME A TAXI, A TAXI", "CALL ME A TAXI, A TAXI"),
        ("Ich heiße Sie willkommen, sie alle", "Ich heiße Sie willkommen, sie alle"),
        ("我叫你来，你好", "我叫你来，你好"),
        ("Call me P. Now P-1 and P-2 are here", f"Call me {NAME}. Now P-1 and P-2 are here"),
        ("Zebulon Quartermaine: zebulon, QUARTERMAINE's", "P-3: P-3, P-3's"),
        ("Dr. Will met Ana Will", "Dr. P-4 met P-1 P-4"),
        ("Will you come? I will. Thanks, Will! Will, will you?", "Will you come? I will. Thanks, P-4! P-4, will you?"),
        ("I'm Zebulon, hello", "I'm P-3, hello"),
        ("My name is Bela Kovacs. Kovacs, I said.", f"My name is {NAME}. {NAME}, I said."),
        ("Smith it was, by a smith", "[name] it was, by a [name]"),
    ],
)
def test_names_are_replaced_in_text(text: str, clean: str) -> None:
    names = (
        ("Ana", "P-1"), ("Ana Smith", "P-1"), ("Dr Bob Will", "P-4"), ("Lee Smith", "P-3"),
        ("Zebulon Quartermaine", "P-3"), ("李雷", "P-2"),
    )  # fmt: skip
    assert Redactor(names=NamesToRemove(by_name=names)).clean_text(text) == clean


def test_an_introduced_name_is_removed_from_flags(session: Recording) -> None:
    redactor = Redactor()
    redactor.clean(said("My name is Zoltan"))
    flag: SocialFlag = redactor.clean(replace(session.flags[0], rationale="Zoltan waited", correction="Tell Zoltan."))
    assert (flag.rationale, flag.correction) == (f"{NAME} waited", f"Tell {NAME}.")


def test_utterances_without_consent_keep_their_times_alone(session: Recording) -> None:
    quiet = Participant(pseudonym="P-1", person_ids=("p1",), transcript=False)
    redactor = Redactor(
        RedactionPolicy(known_only=True), participants=(quiet, Participant(pseudonym="P-2", person_ids=("p2",)))
    )
    utterances = [redactor.clean(said("secret", who)) for who in ("p1", "p2", "passer_by")]
    assert [u.text for u in utterances] == [WITHHELD, "secret", WITHHELD]
    assert utterances[0].start_ns == START_NS + NS_PER_S
    fact = replace(session.flags[0].evidence[0], utterance_id="u-secret", quote="secret")
    flag = redactor.clean(replace(session.flags[0], evidence=(fact,), rationale="They said “secret”."))
    assert (flag.evidence[0].quote, flag.rationale) == (WITHHELD, f"They said “{WITHHELD}”.")


def quoting(session: Recording, rationale: str, quote: str = "") -> SocialFlag:
    """A flag whose evidence names no utterance."""
    fact = replace(session.flags[0].evidence[0], utterance_id="", quote=quote)
    return replace(session.flags[0], evidence=(fact,), rationale=rationale)


def test_flags_do_not_quote_withheld_words(session: Recording) -> None:
    redactor = Redactor(participants=(Participant(pseudonym="P-1", person_ids=("p1",), transcript=False),))
    redactor.clean(said("Thank you so much. Yes, my dog died yesterday!", "p1"))
    redactor.clean(said("You are most welcome, here as everywhere else in this house.", speaker=Speaker.ROBOT))
    flag = redactor.clean(
        quoting(
            session,
            "Thanked with “Thank you so much.”, after “Yes,”, the robot said “You are most welcome, here as …”. "
            "Yes, my dog died yesterday, they said.",
            "Thank you so much. / You are most welcome",
        )
    )
    assert flag.rationale == (
        f"Thanked with “{WITHHELD}”, after “{WITHHELD}”, the robot said “You are most welcome, here as …”. "
        f"{WITHHELD}, they said."
    )
    assert flag.evidence[0].quote == WITHHELD


@pytest.mark.parametrize(
    ("secret", "repeated", "clean"),
    [
        ("My dog died yesterday.", "You said: my dog died yesterday.", f"You said: {WITHHELD}."),
        ("我奶奶去年死了。", "你说我奶奶去年死了吗", f"你说{WITHHELD}吗"),
        ("Thank you.", "Thank you too.", "Thank you too."),
    ],
)
def test_a_withheld_sentence_is_removed_from_robot_speech(secret: str, repeated: str, clean: str) -> None:
    redactor = Redactor(participants=(Participant(pseudonym="P-1", person_ids=("p1",), transcript=False),))
    redactor.clean(said(secret, "p1"))
    assert redactor.clean(said(repeated, speaker=Speaker.ROBOT)).text == clean


def test_a_policy_without_words_withholds_robot_speech() -> None:
    spoken = RobotSpeech(stamp_ns=1, speech_id="s", state=SpeechEdge.START, text="Hello Ana")
    assert Redactor(RedactionPolicy(words=False)).clean(spoken).text == WITHHELD


def test_an_unknown_voice_is_withheld_where_someone_refused() -> None:
    quiet = Participant(pseudonym="P-1", person_ids=("mistyped",), transcript=False)
    other = Participant(pseudonym="P-2", person_ids=("p2",))
    for participants in ((quiet,), (quiet, other)):
        redactor = Redactor(participants=participants)
        assert [redactor.clean(said("secret", who)).text for who in ("p1", "")] == [WITHHELD] * 2
    assert redactor.clean(said("free", "p2")).text == "free"


def test_a_key_file_lies_outside_logs_and_is_private(tmp_path: Path) -> None:
    write_log(tmp_path / "log", length_s=20, flags=0)
    with pytest.raises(KeyFileError, match="name a file outside it"):
        KeyFile(tmp_path / "log/keys.json")
    keys = KeyFile(tmp_path / "keys.json")
    drawn = keys.add(("Ana", "Anna"))
    assert (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600
    again = KeyFile(tmp_path / "keys.json")
    assert again.names().by_name == (("Ana", drawn), ("Anna", drawn))
    with pytest.raises(KeyFileError, match="stands for someone already"):
        again.add(("Bo",), pseudonym=drawn)
    assert again.forget(drawn)
    assert "Ana" not in (tmp_path / "keys.json").read_text()


def test_a_key_file_refuses_names_without_letters_and_names_as_pseudonyms(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    for names in ((), ("",), ("Ana", " - ")):
        with pytest.raises(KeyFileError, match="needs at least one letter"):
            keys.add(names)
    with pytest.raises(KeyFileError, match="bo is a real name there"):
        keys.add(("Bo",), pseudonym="bo")
    keys.add(("Ana",), pseudonym="P-1")
    with pytest.raises(KeyFileError, match="Ana is a real name there"):
        keys.add(("Bo",), pseudonym="Ana")
    with pytest.raises(KeyFileError, match="Ana is a real name there"):
        make_redactor(tmp_path / "keys.json", (Participant(pseudonym="Ana"),))
    (tmp_path / "keys.json").write_text('{"participants": {"P-1": {"names": [""]}}}')
    with pytest.raises(KeyFileError, match="P-1 has the name '', without a letter"):
        KeyFile(tmp_path / "keys.json").names()
    with pytest.raises(ValueError, match="match pattern"):
        RedactionPolicy(also=("",))


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def two_people(folder: Path) -> Path:
    people = (Participant(pseudonym="P-1", person_ids=("p1",)), Participant(pseudonym="P-2", person_ids=("p2",)))
    flags = [r for _, r in records() if isinstance(r, SocialFlag)][:2]
    with StudyLog.begin(folder, info(participants=people), ReplayClock(START_NS)) as log:
        for who in ("p1", "p2", ""):
            log.append(said(f"words of {who or 'nobody'}", who), START_NS)
        log.append(said("the robot", speaker=Speaker.ROBOT), START_NS)
        for flag, who in zip(flags, ("p1", "p2"), strict=True):
            log.append(replace(flag, person_id=who), START_NS)
    return folder


SECRET = "My dog died yesterday. Stop it."
P_2S_FLAG = replace(next(record for _, record in records() if isinstance(record, SocialFlag)), person_id="p2")
# Entries that are not P-1's own and tell of P-1 nonetheless.
OTHERS_WHO_TELL = [
    said("It is mine", "voice_9"),
    said("You said my dog died yesterday?", speaker=Speaker.ROBOT),
    RobotSpeech(stamp_ns=1, speech_id="s", state=SpeechEdge.START, text="Hello P-1!"),
    said("I saw P-1 there", "p2"),
    replace(P_2S_FLAG, event_id="quoted", rationale="They said “Stop it.” to the robot."),
    replace(P_2S_FLAG, event_id="unmapped", person_id="person_9"),
    Decision(stamp_ns=1, decided_ns=1, decision_id="d", outcome=Outcome.ABSTAINED, explanation="My dog died yesterday"),
    Label(start_ns=1, end_ns=2, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS, coder="A", comment="P-1 winced"),
    Review(event_id="kept", coder="Bo", verdict=Verdict.ACCEPT, note="P-1 again"),
    Presence(stamp_ns=1, source_topic="/p", state=PresenceState.PRESENT, persons=(Person(person_id="p1"),)),
]


def test_an_erasure_removes_repetitions_and_mentions_of_a_participant(tmp_path: Path) -> None:
    folder = two_people(tmp_path / "log")
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(said(SECRET, "p1"), START_NS)
        before = len(read(folder).entries)
        for record in OTHERS_WHO_TELL:
            log.append(record, START_NS)
    erase(folder, plan_erasure(folder, "P-1"), ReplayClock(START_NS))
    *left, copy, _ = [entry.record for entry in read(folder).entries[before:]]
    assert left == [None] * len(OTHERS_WHO_TELL)
    assert copy.text == f"You said {WITHHELD}?"
    assert read(folder).faults == ()


def test_an_erasure_keeps_what_others_said_themselves(tmp_path: Path, session: Recording) -> None:
    folder = two_people(tmp_path / "log")
    flag = replace(quoting(session, "They said “Stop it.”"), person_id="p2", event_id="mine")
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        for record in (said(SECRET, "p1"), said(SECRET, "p2", at_s=3), said("P-10 came", "p2"), flag):
            log.append(record, START_NS)
    erase(folder, plan_erasure(folder, "P-1"), ReplayClock(START_NS))
    left = open_recording(folder)
    assert (len(left.flags), len(left.utterances), "mine" in {flag.event_id for flag in left.flags}) == (2, 4, True)
    assert left.utterances[-1].text == f"{WITHHELD}."


def test_an_interrupted_erasure_is_reported_and_finished_by_the_next(tmp_path: Path) -> None:
    folder = two_people(tmp_path / "log")
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(Tombstone(participant="P-1", seqs=(1,), reason="wish"), 0)
    assert "was to be erased and is still there" in read(folder).faults[0].what
    shown = open_recording(folder)
    assert "words of p1" not in {utterance.text for utterance in shown.utterances}
    assert any("an erasure was interrupted: 1 of these" in note for note in shown.notes)
    assert erase(folder, plan_erasure(folder, "P-1"), ReplayClock(START_NS)) == 3
    assert read(folder).faults == ()
    assert b"words of p1" not in everything(folder)


@pytest.mark.parametrize("step", ["the tombstone", "the bodies"])
def test_an_erasure_on_a_full_disk_reports_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    folder = two_people(tmp_path / "log")

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        if step == "the tombstone":
            full.setattr(StudyLog, "write_line", no_room)
        else:
            full.setattr(log_module, "remove_bodies", no_room)
        said_so = "Nothing is erased yet" if step == "the tombstone" else "an erasure is not finished"
        with pytest.raises(TactfulError, match=said_so):
            erase(folder, plan_erasure(folder, "P-1"), ReplayClock(START_NS))
    assert erase(folder, plan_erasure(folder, "P-1"), ReplayClock(START_NS)) == 3
    assert read(folder).faults == ()
    assert b"words of p1" not in everything(folder)


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags") / "bag"
    write_bag(path, length_s=30, flags=3)
    return path


@pytest.fixture
def of_bag(bag: Path, tmp_path: Path) -> Recording:
    """The log of the bag."""
    log_bag(bag, tmp_path / "log", info(), ReplayClock(START_NS), Redactor())
    assert "jpeg" not in everything(tmp_path / "log").decode("utf-8", "replace")
    return open_recording(tmp_path / "log")


def test_pictures_come_only_from_the_bag_that_the_log_names(tmp_path: Path, bag: Path, of_bag: Recording) -> None:
    write_bag(tmp_path / "other", length_s=29)
    with pytest.raises(OtherBagError, match=r"is not the bag that .* is of, which is bag"):
        check_bag(of_bag, tmp_path / "other")
    with pytest.raises(OtherBagError, match="does not say which bag"):
        check_bag(replace(of_bag, info=replace(of_bag.info, bag=None)), bag)
    name_bag(tmp_path / "log", tmp_path / "other", ReplayClock(START_NS))
    check_bag(open_recording(tmp_path / "log"), tmp_path / "other")

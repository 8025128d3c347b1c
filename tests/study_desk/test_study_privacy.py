"""Privacy: names out, what was not consented to withheld, erasure that leaves a sound chain, pictures without faces."""

import errno
from dataclasses import replace
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, Polarity, SocialFlag, Verdict
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Face, Person, Presence, PresenceState
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, ReplayClock
from sim_replays.examples.study_session import START_NS, info, records, write_log
from study_desk.log import writer as log_module
from study_desk.log.import_bag import log_bag, name_bag
from study_desk.log.reader import LogError, read
from study_desk.log.recording import Recording, open_recording
from study_desk.log.schema import Label, Participant, Review, Tombstone
from study_desk.log.session_config import redactor_of
from study_desk.log.writer import StudyLog
from study_desk.privacy.blur import blur_faces
from study_desk.privacy.erase import erase, expire
from study_desk.privacy.inventory import inventory
from study_desk.privacy.key_file import KeyFile, KeyFileError
from study_desk.privacy.redact import NAME, WITHHELD, NamesToRemove, RedactionPolicy, Redactor
from study_desk.privacy.sound import RATE_HZ, audible_spans, muted_sound
from study_desk.report import clips
from study_desk.report.clips import ClipError, check_bag, clip, thumbnails

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
def test_names_are_taken_out(text: str, clean: str) -> None:
    names = (
        ("Ana", "P-1"), ("Ana Smith", "P-1"), ("Dr Bob Will", "P-4"), ("Lee Smith", "P-3"),
        ("Zebulon Quartermaine", "P-3"), ("李雷", "P-2"),
    )  # fmt: skip
    assert Redactor(names=NamesToRemove(by_name=names)).text(text) == clean


@given(st.text(max_size=40))
def test_a_known_name_never_passes(text: str) -> None:
    assert "Zoltan" not in Redactor(names=NamesToRemove(by_name=(("Zoltan", "P-1"),))).text(f"{text} Zoltan {text}")


def test_a_name_said_once_is_out_of_flags_too(session: Recording) -> None:
    redactor = Redactor()
    redactor.clean(said("My name is Zoltan"))
    flag: SocialFlag = redactor.clean(replace(session.flags[0], rationale="Zoltan waited", correction="Tell Zoltan."))
    assert (flag.rationale, flag.correction) == (f"{NAME} waited", f"Tell {NAME}.")


def test_who_did_not_consent_keeps_the_time_and_not_the_words(session: Recording) -> None:
    quiet = Participant(pseudonym="P-1", person_ids=("p1",), transcript=False)
    redactor = Redactor(
        RedactionPolicy(known_only=True), participants=(quiet, Participant(pseudonym="P-2", person_ids=("p2",)))
    )
    kept = [redactor.clean(said("secret", who)) for who in ("p1", "p2", "passer_by")]
    assert [u.text for u in kept] == [WITHHELD, "secret", WITHHELD]
    assert kept[0].start_ns == START_NS + NS_PER_S
    fact = replace(session.flags[0].evidence[0], utterance_id="u-secret", quote="secret")
    flag = redactor.clean(replace(session.flags[0], evidence=(fact,), rationale="They said “secret”."))
    assert (flag.evidence[0].quote, flag.rationale) == (WITHHELD, f"They said “{WITHHELD}”.")


def quoting(session: Recording, rationale: str, quote: str = "") -> SocialFlag:
    """A flag whose evidence names no utterance."""
    fact = replace(session.flags[0].evidence[0], utterance_id="", quote=quote)
    return replace(session.flags[0], evidence=(fact,), rationale=rationale)


def test_withheld_words_are_quoted_by_no_flag_whatever_its_evidence(session: Recording) -> None:
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


def test_a_quote_within_a_withheld_quote_does_not_end_it(session: Recording) -> None:
    redactor = Redactor(participants=(Participant(pseudonym="P-1", person_ids=("p1",), transcript=False),))
    redactor.clean(said("she said “hi” to me", "p1"))
    for text in ("Hello there.", "And you?", "Fine."):
        redactor.clean(said(text, speaker=Speaker.ROBOT))
    flag = redactor.clean(
        quoting(session, "Asked “she said “hi” to me”, the robot said “Hello there. And you? Fine.”.")
    )
    assert flag.rationale == f"Asked “{WITHHELD}”, the robot said “Hello there. And you? Fine.”."


@pytest.mark.parametrize(
    ("secret", "repeated", "clean"),
    [
        ("My dog died yesterday.", "You said: my dog died yesterday.", f"You said: {WITHHELD}."),
        ("我奶奶去年死了。", "你说我奶奶去年死了吗", f"你说{WITHHELD}吗"),
        ("Thank you.", "Thank you too.", "Thank you too."),
    ],
)
def test_a_withheld_sentence_that_the_robot_repeats_goes_too(secret: str, repeated: str, clean: str) -> None:
    redactor = Redactor(participants=(Participant(pseudonym="P-1", person_ids=("p1",), transcript=False),))
    redactor.clean(said(secret, "p1"))
    assert redactor.clean(said(repeated, speaker=Speaker.ROBOT)).text == clean


def test_a_policy_without_words_keeps_none_of_the_robots_either() -> None:
    spoken = RobotSpeech(stamp_ns=1, speech_id="s", state=SpeechEdge.START, text="Hello Ana")
    assert Redactor(RedactionPolicy(words=False)).clean(spoken).text == WITHHELD


def test_an_unknown_voice_is_withheld_where_someone_refused() -> None:
    quiet = Participant(pseudonym="P-1", person_ids=("mistyped",), transcript=False)
    other = Participant(pseudonym="P-2", person_ids=("p2",))
    for participants in ((quiet,), (quiet, other)):
        redactor = Redactor(participants=participants)
        assert [redactor.clean(said("secret", who)).text for who in ("p1", "")] == [WITHHELD] * 2
    assert redactor.clean(said("free", "p2")).text == "free"


def test_keys_lie_apart_and_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
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


def test_a_name_has_letters_and_is_no_pseudonym(tmp_path: Path) -> None:
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
        redactor_of(None, tmp_path / "keys.json", (Participant(pseudonym="Ana"),))
    (tmp_path / "keys.json").write_text('{"participants": {"P-1": {"names": [""]}}}')
    with pytest.raises(KeyFileError, match="P-1 has the name '', without a letter"):
        KeyFile(tmp_path / "keys.json").names()
    with pytest.raises(ValueError, match="match pattern"):
        RedactionPolicy(also=("",))


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_erasing_a_sole_participant_leaves_nothing_and_a_sound_chain(tmp_path: Path) -> None:
    write_log(tmp_path / "log", flags=8)
    before = read(tmp_path / "log")
    done = erase(tmp_path / "log", "P-7K3MX", ReplayClock(START_NS))
    assert done.sole
    contents = read(tmp_path / "log")
    assert contents.faults == ()
    assert {e.kind for e in contents.entries if e.record is not None} == {"session", "closed", "tombstone"}
    assert contents.entries[: len(before.entries)][0] == before.entries[0]
    for trace in (b"whales", b"grandmother", "几点".encode(), b"person said"):
        assert trace not in everything(tmp_path / "log")
    assert open_recording(tmp_path / "log").flags == ()


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


def test_erasing_one_of_two_keeps_the_other(tmp_path: Path) -> None:
    done = erase(two_people(tmp_path / "log"), "P-1", ReplayClock(START_NS))
    assert (done.sole, done.unattributed, done.others) == (False, 1, ("P-2",))
    left = open_recording(tmp_path / "log")
    assert [u.text for u in left.utterances] == ["the robot", "words of p2"]
    assert [flag.person_id for flag in left.flags] == ["p2"]
    assert read(tmp_path / "log").faults == ()
    assert b"words of p1" not in everything(tmp_path / "log")


SECRET = "My dog died yesterday. Stop it."


def others_who_tell(session: Recording) -> dict[str, object]:
    """Entries that are not P-1's own and tell of P-1 nonetheless."""
    flag = replace(quoting(session, "fine"), person_id="p2")
    decision = Decision(
        stamp_ns=1, decided_ns=1, decision_id="d", outcome=Outcome.ABSTAINED, explanation="My dog died yesterday: wait."
    )  # fmt: skip
    label = Label(
        start_ns=1, end_ns=2, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS, coder="Ana", comment="P-1 winced"
    )
    return {
        "an unmapped voice": said("It is mine", "voice_9"),
        "the robot repeats": said("You said my dog died yesterday?", speaker=Speaker.ROBOT),
        "the robot's speech": RobotSpeech(stamp_ns=1, speech_id="s", state=SpeechEdge.START, text="Hello P-1!"),
        "another names them": said("I saw P-1 there", "p2"),
        "a quote": replace(flag, event_id="quoted", rationale="They said “Stop it.” to the robot."),
        "an unmapped flag": replace(flag, event_id="unmapped", person_id="person_9"),
        "a decision": decision,
        "a comment": label,
        "a verdict": Review(event_id="kept", reviewer="Bo", verdict=Verdict.ACCEPT, note="P-1 again"),
        "seen": Presence(stamp_ns=1, source_topic="/p", state=PresenceState.PRESENT, persons=(Person(person_id="p1"),)),
    }


@pytest.mark.parametrize(
    "what",
    ["an unmapped voice", "the robot repeats", "the robot's speech", "another names them", "a quote",
     "an unmapped flag", "a decision", "a comment", "a verdict", "seen"],
)  # fmt: skip
def test_what_repeats_or_names_a_participant_is_erased_with_them(tmp_path: Path, session: Recording, what: str) -> None:
    folder = two_people(tmp_path / "log")
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(said(SECRET, "p1"), START_NS)
        before = len(read(folder).entries)
        log.append(others_who_tell(session)[what], START_NS)
    erase(folder, "P-1", ReplayClock(START_NS))
    assert read(folder).entries[before].record is None
    assert read(folder).faults == ()


def test_what_others_say_and_do_of_their_own_accord_stays_and_is_listed(tmp_path: Path, session: Recording) -> None:
    folder = two_people(tmp_path / "log")
    flag = replace(quoting(session, "They said “Stop it.”"), person_id="p2", event_id="mine")
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        for record in (said(SECRET, "p1"), said(SECRET, "p2", at_s=3), said("P-10 came", "p2"), flag):
            log.append(record, START_NS)
    done = erase(folder, "P-1", ReplayClock(START_NS))
    assert done.left == {"flag": 2, "utterance": 4}
    assert [u.text for u in open_recording(folder).utterances][-1] == SECRET


def test_what_names_nobody_may_be_kept(tmp_path: Path) -> None:
    done = erase(two_people(tmp_path / "log"), "P-1", ReplayClock(START_NS), keep_unattributed=True)
    assert done.unattributed == 0
    assert b"words of nobody" in everything(tmp_path / "log")


def test_no_file_of_a_log_is_readable_by_others(tmp_path: Path) -> None:
    folder = two_people(tmp_path / "log")
    with (folder / "events-000001.jsonl").open("ab") as file:
        file.write(b'{"half')
    for step in (
        lambda: StudyLog.resume(folder, ReplayClock(START_NS)).close(),
        lambda: erase(folder, "P-1", ReplayClock(1)),
    ):
        step()
        modes = {path.name: path.stat().st_mode & 0o007 for path in folder.iterdir()}
        assert set(modes.values()) == {0}, modes


def test_an_interrupted_erasure_is_said_and_finished_by_another(tmp_path: Path) -> None:
    folder = two_people(tmp_path / "log")
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(Tombstone(participant="P-1", seqs=(1,), reason="wish"), 0)
    assert "was to be erased and is still there" in read(folder).faults[0].what
    shown = open_recording(folder)
    assert "words of p1" not in {utterance.text for utterance in shown.utterances}
    assert any("an erasure broke off: 1 of these are left out" in note for note in shown.notes)
    assert erase(folder, "P-1", ReplayClock(START_NS)).entries == 3
    assert read(folder).faults == ()
    assert b"words of p1" not in everything(folder)


def test_any_next_writer_finishes_an_erasure(tmp_path: Path) -> None:
    folder = two_people(tmp_path / "log")
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(Tombstone(participant="P-1", seqs=(1,), reason="wish"), 0)
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(said("later"), START_NS)
    assert read(folder).faults == ()
    assert b"words of p1" not in everything(folder)


@pytest.mark.parametrize("step", ["the tombstone", "the bodies"])
def test_an_erasure_on_a_full_disk_says_how_far_it_came(
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
            erase(folder, "P-1", ReplayClock(START_NS))
    assert erase(folder, "P-1", ReplayClock(START_NS)).entries == 3
    assert read(folder).faults == ()
    assert b"words of p1" not in everything(folder)


def test_why_entries_were_erased_is_told(tmp_path: Path) -> None:
    write_log(tmp_path / "log", length_s=30, flags=2)
    count = expire(tmp_path / "log", ReplayClock(START_NS + 366 * DAY_NS))
    told = f"{count} entries erased: kept for the 365 days that were agreed"
    assert told in open_recording(tmp_path / "log").notes


def test_an_unknown_participant_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="has no participant P-9; it has P-1, P-2"):
        erase(two_people(tmp_path / "log"), "P-9", ReplayClock(START_NS))


def test_a_log_empties_when_its_time_is_over(tmp_path: Path) -> None:
    write_log(tmp_path / "log", length_s=30, flags=2)
    assert expire(tmp_path / "log", ReplayClock(START_NS + 364 * DAY_NS)) == 0
    assert expire(tmp_path / "log", ReplayClock(START_NS + 366 * DAY_NS)) > 0
    assert open_recording(tmp_path / "log").flags == ()
    assert read(tmp_path / "log").faults == ()
    assert expire(tmp_path / "log", ReplayClock(START_NS + 367 * DAY_NS)) == 0


def test_the_inventory_names_every_file_and_every_kind(tmp_path: Path) -> None:
    write_log(tmp_path / "log", length_s=30, flags=2)
    (tmp_path / "log/holiday.mp4").write_bytes(b"x")
    found = inventory([tmp_path / "log"])
    files = {Path(entry.place).name: entry for entry in found.stored if entry.kind == "file"}
    assert set(files) == {"events-000001.jsonl", "holiday.mp4"}
    assert "look into it" in files["holiday.mp4"].why
    assert {entry.kind for entry in found.stored if not entry.personal} == {"session", "closed"}
    assert found.participants == ("P-7K3MX",)
    assert found.retention == ("S07: 365 days",)


def picture_bag(path: Path, length_s: int = 30) -> Path:
    chance = np.random.default_rng(1)
    with BagWriter(path) as bag:
        for second in range(length_s):
            image = chance.integers(0, 255, (180, 320, 3), dtype=np.uint8)
            stamp_ns = START_NS + second * NS_PER_S
            jpeg = cv2.imencode(".jpg", image)[1].tobytes()
            frame = Frame(
                stamp_ns=stamp_ns, source_topic="/camera", source_encoding="jpeg", source_width_px=320,
                source_height_px=180, payload_sha256="0" * 64, tile_width_px=320, tile_height_px=180, tile_jpeg=jpeg,
            )  # fmt: skip
            bag.write("/tactful/frames", frame, stamp_ns)
        for _, record in records(length_s=length_s, flags=3):
            if isinstance(record, SocialFlag | Utterance):
                bag.write(
                    "/tactful/flags" if isinstance(record, SocialFlag) else "/tactful/said", record, record.stamp_ns
                )
    return path


def test_a_bag_becomes_a_log_without_its_pictures(tmp_path: Path) -> None:
    bag = picture_bag(tmp_path / "bag")
    count, unreadable = log_bag(bag, tmp_path / "log", info(), ReplayClock(START_NS), Redactor())
    recording = open_recording(tmp_path / "log")
    assert len(recording.flags) == 3
    assert (count, unreadable) == (len(read(tmp_path / "log").entries), 0)
    assert recording.info.bag
    assert recording.info.bag.name == "bag"
    assert len(recording.info.bag.sha256) == 64
    assert recording.info.bag.offset_ns == START_NS
    assert "tile_jpeg" not in everything(tmp_path / "log").decode("utf-8", "replace")
    assert open_recording(bag).flags == recording.flags


def test_a_person_id_that_the_bag_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    bag = picture_bag(tmp_path / "bag")
    mistyped = Participant(pseudonym="P-1", person_ids=("person_1", "nobody_there"), transcript=False)
    with pytest.raises(LogError, match="the person id nobody_there; it has person_1: mend"):
        log_bag(bag, tmp_path / "log", info(participants=(mistyped,)), ReplayClock(START_NS), Redactor())
    assert not (tmp_path / "log").exists()


def test_faces_are_gone_and_the_rest_is_not() -> None:
    image = np.random.default_rng(0).integers(0, 255, (200, 200, 3), dtype=np.uint8)
    face = Face(left_ratio=0.4, top_ratio=0.4, width_ratio=0.2, height_ratio=0.2, confidence=1)
    out = blur_faces(image, [face])
    assert np.array_equal(out[:60], image[:60])
    inside, before = out[80:120, 80:120].astype(float), image[80:120, 80:120].astype(float)
    assert abs(np.corrcoef(inside.ravel(), before.ravel())[0, 1]) < 0.35
    assert inside.std() < before.std() / 2
    assert blur_faces(image, None)[:60].astype(float).std() < image[:60].astype(float).std() / 2


def test_thumbnails_need_consent_are_few_and_within_the_budget(tmp_path: Path) -> None:
    bag = picture_bag(tmp_path / "bag")
    log_bag(bag, tmp_path / "log", info(), ReplayClock(START_NS), Redactor())
    recording = open_recording(tmp_path / "log")
    found, left_out = thumbnails(recording, bag, None)
    assert left_out == 0
    assert found
    assert all(1 <= len(pictures) <= 3 for pictures in found.values())
    total = sum(len(p) for pictures in found.values() for p in pictures)
    fewer, left_out = thumbnails(recording, bag, None, budget_bytes=total - 1)
    assert left_out == 1
    assert sum(len(p) for pictures in fewer.values() for p in pictures) < total
    refused = Participant(pseudonym="P-7K3MX", clips=False)
    without = replace(recording, info=replace(recording.info, participants=(refused,)))
    with pytest.raises(ClipError, match="P-7K3MX did not consent"):
        thumbnails(without, bag, None)
    assert clips.reason_against_clips(replace(recording, info=replace(recording.info, participants=())))


def test_pictures_come_from_no_bag_but_the_one_that_the_log_names(tmp_path: Path) -> None:
    bag, other = picture_bag(tmp_path / "bag"), picture_bag(tmp_path / "other", length_s=29)
    log_bag(bag, tmp_path / "log", info(), ReplayClock(START_NS), Redactor())
    recording = open_recording(tmp_path / "log")
    with pytest.raises(ClipError, match=r"is not the bag that .* is of, which is bag"):
        thumbnails(recording, other, None)
    with pytest.raises(ClipError, match="does not say which bag"):
        check_bag(replace(recording, info=replace(recording.info, bag=None)), bag)
    name_bag(tmp_path / "log", other, ReplayClock(START_NS))
    check_bag(open_recording(tmp_path / "log"), other)


def test_only_consented_voices_are_heard() -> None:
    people = (
        Participant(pseudonym="P-1", person_ids=("p1",), clips=True),
        Participant(pseudonym="P-2", person_ids=("p2",), clips=False),
    )
    utterances = (
        said("robot", speaker=Speaker.ROBOT, at_s=0), said("one", "p1", at_s=2), said("two", "p2", at_s=4),
        said("late", "p1", at_s=6), said("over it", "p2", at_s=6.5),
    )  # fmt: skip
    recording = replace(empty_recording(), info=info(participants=people), utterances=utterances)
    spans = audible_spans(recording, START_NS, START_NS + 60 * NS_PER_S)
    assert [((a - START_NS) / 1e9, (b - START_NS) / 1e9) for a, b in spans] == [(0, 1), (2, 3), (6, 6.5)]


def empty_recording() -> Recording:
    return Recording(info=info(), source=Path("x"), head="", start_ns=START_NS, end_ns=START_NS)


def test_a_clip_holds_pictures_and_muted_sound(tmp_path: Path) -> None:
    bag = picture_bag(tmp_path / "bag")
    log_bag(bag, tmp_path / "log", info(), ReplayClock(START_NS), Redactor())
    recording = open_recording(tmp_path / "log")
    data, kind = clip(recording, recording.flags[0].event_id, bag, None)
    (tmp_path / "clip.webm").write_bytes(data)
    with av.open(str(tmp_path / "clip.webm")) as opened:
        assert kind == "video/webm"
        assert len(list(opened.decode(video=0))) >= 8
    with pytest.raises(ClipError, match="there is no flag"):
        clip(recording, "nothing", bag, None)


def sound_bag(path: Path, seconds: int = 12) -> Path:
    """A tone all through, as naoqi's AudioBuffer at 48 kHz."""
    name = "naoqi_bridge_msgs/msg/AudioBuffer"
    definition = "std_msgs/Header header\nuint16 frequency\nuint8[] channel_map\nint16[] data"
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(definition, name))
    tone = (8000 * np.sin(np.arange(48_000) * 0.06)).astype(np.int16)
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/audio", name, typestore=store)
        for second in range(seconds):
            stamp_ns = START_NS + second * NS_PER_S
            stamp = make("builtin_interfaces/msg/Time", {"sec": stamp_ns // NS_PER_S, "nanosec": 0})
            message = store.types[name](
                header=make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": ""}),
                frequency=48_000,
                channel_map=np.array([0], np.uint8),
                data=tone,
            )
            writer.write(connection, stamp_ns, store.serialize_cdr(message, name))
    return path


def test_a_clips_sound_is_silent_but_where_consented_people_speak(tmp_path: Path) -> None:
    people = (Participant(pseudonym="P-1", person_ids=("p1",), clips=True),)
    utterances = (said("heard", "p1", at_s=3), said("muted", "passer_by", at_s=6))
    recording = replace(empty_recording(), info=info(participants=people), utterances=utterances)
    sound = muted_sound(recording, sound_bag(tmp_path / "bag"), START_NS, START_NS + 10 * NS_PER_S)
    assert sound is not None
    loud = [bool(np.abs(sound[s * RATE_HZ + 100 : (s + 1) * RATE_HZ - 100]).max() > 1000) for s in range(10)]
    assert loud == [second == 3 for second in range(10)]
    flag = replace(
        next(r for _, r in records(length_s=60, flags=1) if isinstance(r, SocialFlag)),
        onset_ns=START_NS + 4 * NS_PER_S,
        offset_ns=START_NS + 5 * NS_PER_S,
    )
    data, kind = clip(replace(recording, flags=(flag,)), flag.event_id, tmp_path / "bag", None)
    assert kind == "audio/webm"
    (tmp_path / "a.webm").write_bytes(data)
    with av.open(str(tmp_path / "a.webm")) as opened:
        assert sum(frame.samples for frame in opened.decode(audio=0)) == pytest.approx(11 * 48_000, rel=0.02)

"""`tactful items make`: bags of foreign code become items that two people label and `bench run` scores.

The pictures are composed: drawn rooms with a face of the public domain, of NASA's photograph in scikit-image.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.records.flag import Attribute
from norm_core.records.presence import Face
from scoring.agreement_coefficients import cohen_kappas
from sim_replays.own_items.annotation import AnnotationDesk
from sim_replays.own_items.item_run import ItemRun, RunFile
from sim_replays.own_items.sampling import find_sources, sample
from sim_replays.suites.hsri_segments import draw_questions, read
from tests import foreign_bag
from tests.acceptance.test_study_coding import study
from tests.command_line import tactful
from tests.face_pictures import room, with_face
from tests.patience import PATIENCE_S
from tests.study_desk.browser import Browser, faults, needs_chromium, text
from tests.study_session import START_NS, write_log

ALLOWED = ("--licence", "public domain", "--consent", "nobody's: composed pictures")
_NOUNS = "door table lamp window ladder basket kettle blanket mirror drawer bucket carpet shelf candle hammer pillow"
_VERBS = "open carry polish photograph repair admire measure paint lift empty cover borrow wrap weigh hide count"
NOUNS = _NOUNS.split()
VERBS = _VERBS.split()


def people(seed: int, shift: int = 0) -> Any:
    """A drawn room with two faces."""
    picture = with_face(room(seed), 130, 350, 300, 0, 1.0)
    return cv2.resize(with_face(picture, 120, 850 + shift, 320, 5, 0.9), (640, 360), interpolation=cv2.INTER_AREA)


def bag(path: Path, pictures: list[Any], times_s: Sequence[int] = range(100)) -> Path:
    """A bag of one picture a second, or at other times, by the rosbags library alone."""
    make = foreign_bag.Maker({})
    messages = []
    for second, picture in zip(times_s, pictures, strict=False):
        stamp_ns = START_NS + second * 1_000_000_000
        data = np.frombuffer(cv2.imencode(".jpg", picture)[1].tobytes(), np.uint8)
        values = {"header": make.header(stamp_ns), "format": "jpeg", "data": data}
        messages.append((stamp_ns, "/eye", make("sensor_msgs/msg/CompressedImage", values)))
    return foreign_bag.write(path, make, messages)


def option(number: int) -> str:
    return f"{VERBS[number % 16]} the {NOUNS[number * 5 % 16]} beside the {NOUNS[(number * 7 + number // 16) % 16]}"


class Service:
    """Answers the requests of a batch that have no answer yet, by their step alone."""

    def __init__(self, run: Path, **changes: Any) -> None:
        self.run, self.changes, self.count = run, changes, 0

    def answer(self) -> int:
        folder = self.run / "batch"
        requests = [json.loads(line) for file in sorted(folder.glob("requests-*")) for line in file.open()]
        answers = folder / "answers.jsonl"
        known = {json.loads(line)["custom_id"] for line in answers.open()} if answers.exists() else set()
        open_ids = [each["custom_id"] for each in requests if each["custom_id"] not in known]
        with answers.open("a") as file:
            for custom_id in open_ids:
                said = json.dumps(self.says(custom_id.rpartition("_")[0]))
                body = {"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}
                line = {"custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}
                file.write(f"{json.dumps(line)}\n")
        return len(open_ids)

    def options(self, count: int) -> list[str]:
        self.count += count
        return [option(self.count - place) for place in range(count)]

    def says(self, step: str) -> Any:
        if step in self.changes:
            return self.changes[step]
        scene = {
            "activity": f"cleaning {self.count}",
            "place": "hall",
            "verb": "wipe",
            "description": "Two people clean.",
        }
        if step == "scene_egonormia":
            self.count += 1
            return scene
        if step == "scene_egogapbench":
            about = {"role": "cleaner", "appearance": "left", "doing": "wiping", "one_alone": True}
            return scene | {"people": [about | {"option": text} for text in self.options(2)]}
        [action, reason] = self.options(2)
        return {
            "corrupt": {"situations": [f"It is {word}." for word in ("night", "Sunday", "raining")]},
            "act_egonormia": {"action": action, "justification": reason, "norms": ["politeness"]},
            "act_egogapbench": {"direct": [action], "indirect": [reason], "off_vantage": self.options(1)},
            "verdict": {"can_be_done": True, "always_harmful": False},
            "singleton": {"others_can_too": False},
            "blind": {"number": 0},
        }[step]


def make(suite: str, sources: Path, run: Path, service: Service | None = None, *options: str, code: int = 0) -> str:
    """Call `items make` until the service has nothing more to answer; return what it wrote."""
    while True:
        ended = tactful("items", "make", suite, sources, "--out", run, *ALLOWED, *options, "--pictures-may-leave")
        assert ended.returncode == code, ended.stderr
        if service is None or not (run / "batch").is_dir() or not service.answer():
            return ended.stdout + ended.stderr


def score(suite: str, items: Path, setting: str, limit: int = 0) -> Any:
    """Call `bench run` with the sentence encoder."""
    options = (
        "--out",
        items.parent / "scored",
        "--setting",
        setting,
        "--transport",
        "direct",
        "--limit",
        limit,
        "--json",
    )
    ended = tactful("bench", "run", suite, "--data", items, *options)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def phases(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "run.json").read_text())["phases"]
    return found


DESK = ("--annotator", "Ana", "--annotator", "Bo", "--reconciler", "Cy", "--expert", "Di")


@contextmanager
def desk(run: Path, *people: str) -> Iterator[dict[str, str]]:
    """Serve the annotation desk, and yield the link of each person."""
    command = [sys.executable, "-m", "tactful_cli", "items", "annotate", str(run), *people]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield dict(process.stdout.readline().split() for _ in range(len(people) // 2))
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


# By worked item, the answers that it asks for.
WORKED = [
    {"singleton": "yes", "direct_0": "pass", "direct_1": "discard", "off_vantage_0": "off_vantage"},
    {"singleton": "no", "direct_0": "pass", "off_vantage_0": "off_vantage"},
    {"singleton": "yes", "direct_0": "pass", "indirect_0": "pass", "direct_1": "discard"},
]


def submit(browser: Browser, answers: dict[str, str], seen: str) -> None:
    """Choose answers, save them, and wait for what the page then shows."""
    for name, value in answers.items():
        browser.run(f'document.querySelector(\'input[name="{name}"][value="{value}"]\').click()')
    browser.run("document.querySelector('#questions button').click()")
    browser.until(seen)


def label_all(browser: Browser, link: str, discards: int) -> None:
    """Pass the worked items, and label each scene; a first wrong answer does not open the gate."""
    browser.open(link)
    assert "Worked item 1 of 3" in text(browser, "#title")
    submit(
        browser, WORKED[0] | {"direct_1": "pass"}, "document.getElementById('notes')?.innerText.startsWith('Not yet')"
    )
    for number, answers in enumerate(WORKED, 1):
        submit(browser, answers, f"document.getElementById('title')?.innerText !== 'Worked item {number} of 3'")
    browser.until("document.getElementById('title')?.innerText.startsWith('Item 1 of')")
    browser.run("['next', 'previous', 'next', 'previous'].forEach((id) => document.getElementById(id).click())")
    browser.until("document.querySelector('#pictures figure:last-child img')?.naturalWidth > 0")
    assert browser.run("document.querySelectorAll('#pictures img').length") == 1  # however fast one goes on
    count = browser.run("JSON.parse(document.getElementById('data').textContent).scenes.length")
    for number in range(1, count + 1):
        chosen = {"singleton": "yes", "direct_0": "discard" if number <= discards else "pass", "indirect_0": "pass"}
        ended = f"document.getElementById('meta')?.innerText.startsWith('{number} of')"
        submit(browser, chosen | {"off_vantage_0": "off_vantage"}, ended)
    assert faults(browser) == []


@needs_chromium
def test_two_bags_of_foreign_code_become_twelve_items_that_the_encoder_is_scored_on(tmp_path: Path) -> None:
    for number in range(2):
        pictures = [people(3 * number + second // 12, second % 12 * 6) for second in range(36)]
        bag(tmp_path / f"bags/hall{number}", pictures)
    run = tmp_path / "run"
    told = make("egogapbench", tmp_path / "bags", run, Service(run))
    assert "items annotate" in told
    assert cv2.imread(str(run / "contact_sheet.png")) is not None
    assert phases(run)["filter"] == {"kept": 6, "open": 0, "dropped": {}}
    with desk(run, *DESK) as links, Browser(tmp_path / "profile") as browser:
        label_all(browser, links["Ana"], discards=0)
        label_all(browser, links["Bo"], discards=1)
        assert "Ana" not in browser.run("document.getElementById('data').textContent")
        browser.open(links["Cy"])  # decides the one scene on which they differ
        assert "Item 1 of 1" in text(browser, "#title")
        assert "discard" in text(browser, "#question-direct_0 .opinion:nth-of-type(2)")
        chosen = {"singleton": "yes", "direct_0": "pass", "indirect_0": "pass", "off_vantage_0": "off_vantage"}
        submit(browser, chosen, "document.getElementById('meta')?.innerText.startsWith('1 of')")
        browser.open(links["Di"])
        assert "(direct)" in text(browser, "#description")
        for number in range(1, 7):
            passes = {"difficult": "yes", "varied": "yes"}
            submit(browser, passes, f"document.getElementById('meta')?.innerText.startsWith('{number} of 6')")
    with desk(run, *DESK) as again:
        assert again == links
    rows = {row["question"]: row for row in json.loads((run / "agreement.json").read_text())["agreement"]}
    units = {("pass", "pass"): 11, ("pass", "discard"): 1, ("off_vantage", "off_vantage"): 6}
    [kappa] = cohen_kappas({unit: np.array([float(count)]) for unit, count in units.items()})
    assert rows["label"]["kappa"] == pytest.approx(kappa)
    assert (rows["label"]["n"], rows["label"]["equal"], rows["singleton"]["kappa"]) == (18, 17, None)
    assert "read it with" in make("egogapbench", tmp_path / "bags", run)
    items = run / "items"
    sheet = (items / "datasheet.md").read_text()
    assert "12 items" in sheet
    assert "| hall0 | 6 | public domain | nobody's: composed pictures |" in sheet
    ids = [(items / f"splits/{name}.txt").read_text().split() for name in ("development", "test")]
    assert sorted({item.split("-m_")[0] for item in split} for split in ids) == [{"hall0"}, {"hall1"}]
    result = score("egogapbench", items, "images")
    assert (result["n"], result["outcomes"]["failed"]) == (12, 0)
    checked = json.loads(tactful("items", "check", items, "--json").stdout)
    assert checked["rows"]["chance"]["n4"]["value"] == 25


def test_clips_become_items_of_egonormia_with_what_two_people_say(tmp_path: Path) -> None:
    """Ana and Bo agree on a corrupted context's action in one scene, differ in the second, reconciled by nobody."""

    bag(tmp_path / "bags/hall", [people(second // 12, second % 12 * 6) for second in range(24)])
    run = tmp_path / "run"
    make("egonormia", tmp_path / "bags", run, Service(run))
    people_asked = AnnotationDesk(ItemRun(run), ["Ana", "Bo"])
    first, second = people_asked.scenes
    with pytest.raises(ValueError, match="worked items first"):
        people_asked.save("Ana", first, {})
    for name, others in (("Ana", "c2"), ("Bo", "none")):
        for number, best in enumerate((["c0"], ["c0"], ["none"])):
            sensible, happens = (["c0"], ["c0", "c1"], [])[number], (["cannot_tell"], ["yes"], ["cannot_tell"])[number]
            answers = {"best": best, "sensible": sensible, "happens": happens}
            assert people_asked.check_worked(name, number, answers)["wrong"] == []
        assert not people_asked.sees_after(name, first)
        seen = people_asked.save(name, first, {"best": ["c2"], "sensible": ["c1"]})
        assert seen["after"].endswith("005.jpg")  # once they have chosen, and cannot change it
        happens = ["yes" if name == "Ana" else "cannot_tell"]  # on which nobody needs to decide
        people_asked.save(name, first, {"best": ["c1"], "sensible": [], "happens": happens})
        assert people_asked.given(name)[first] == {"best": ["c2"], "sensible": ["c1"], "happens": happens}
        people_asked.save(name, second, {"best": [others], "sensible": []})
        people_asked.save(name, second, {"happens": ["no"]})
    with (run / "annotations/Ana.jsonl").open("a") as file:
        file.write('{"scene": "cut')  # as a full disk leaves it
    people_asked.finish()
    assert phases(run)["annotate"]["dropped"] == {"annotators differ on the best action": 1}
    third = AnnotationDesk(ItemRun(run), ["Ana", "Bo"], "Cy", "Di")
    assert third.given("Ana") == people_asked.given("Ana")
    own = {"best": ["own"], "own": ["<b>", "Why."], "sensible": [], "happens": ["no"]}
    with pytest.raises(ValueError, match="without markup"):
        third.save("Cy", second, own)
    third.save("Cy", second, own | {"own": ["Fetch a cloth.", "It is wet."]})
    assert "- Fetch a cloth. It is wet. (best)" in third.page_data("Di")["scenes"][1]["description"]
    third.save("Di", first, {"difficult": ["yes"], "varied": ["yes"]})
    assert third.finish().open == 1
    third.save("Di", second, {"difficult": ["no"], "varied": ["yes"]})
    third.finish()
    assert AnnotationDesk(ItemRun(run), ["Bo", "Ana"], "Cy", "Di").given("Di") == third.given("Di")
    assert phases(run)["annotate"] == {"kept": 1, "open": 0, "dropped": {"the expert: too easy": 1}}
    assert json.loads((run / "agreement.json").read_text())["happens"] == {"yes": 1, "no": 2, "cannot_tell": 1}
    make("egonormia", tmp_path / "bags", run)
    assert "in the recording: yes 1, no 2, cannot_tell 1." in (run / "items/datasheet.md").read_text()
    [(name, item)] = json.loads((run / "items/egonormia.json").read_text()).items()
    proposed = {each["id"]: each for each in people_asked.scenes[first].model_dump()["candidates"]}
    assert item["behaviors"][item["correct"]] == proposed["c2"]["action"]
    assert {item["behaviors"][place] for place in item["sensibles"]} == {
        proposed[key]["action"] for key in ("c1", "c2")
    }
    assert len(list((run / "items/frames" / name).glob("*.jpg"))) == 5  # and not the second after
    assert score("egonormia", run / "items", "video")["n"] == 1
    lines = (run / "filter.jsonl").read_text()
    (run / "filter.jsonl").write_text(lines.replace(proposed["c2"]["action"], "Sing."))
    assert AnnotationDesk(ItemRun(run), ["Ana", "Bo"]).given("Ana") == {}  # both scenes, which share it, ask anew


def test_clips_with_subtitles_become_items_of_videonorms_as_three_people_correct_them(tmp_path: Path) -> None:
    """Bo and Cy keep the first norm of a clip, Ana changes its label; each words the second their own way."""
    said = "Thanks for the coffee!"
    video = cv2.VideoWriter(str(tmp_path / "office.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 1, (640, 360))
    for at_s in range(47):
        video.write(people(1) if at_s < 30 else cv2.resize(room(at_s), (640, 360)))
    video.release()
    cues = "".join(f"\n00:00:{s:02}.000 --> 00:00:{s + 2:02}.500\n<v Ann>{said}\n" for s in (3, 33, 46))
    (tmp_path / "office.vtt").write_text(f"WEBVTT\n{cues}")
    about = {"context": "at work", "subject": "a guest", "verbal": "says it warmly", "nonverbal": "smiles"}
    norms: list[dict[str, Any]] = [
        {"start_s": 2.5, "category": "Thanks", "norm": text, "label": "adherence", **about}
        for text in ("Thank who  serves you.", "Thank who serves you!", "Look at whom you thank.", "Do {{this}}.")
    ]
    norms[2]["start_s"] = 3
    run = tmp_path / "run"
    told = make("videonorms", tmp_path, run, Service(run, scene_videonorms={"norms": norms}))
    assert "--annotator C" in told
    assert phases(run)["sample"] == {
        "kept": 1,
        "open": 0,
        "dropped": {"no words": 1, "nobody seen": 1, "shorter than 15 s": 1},
    }
    assert phases(run)["filter"] == {"kept": 2, "open": 0, "dropped": {"near twin": 1, "markup": 1}}
    names = ("Ana", "Bo", "Cy")
    people_asked = AnnotationDesk(ItemRun(run), names)
    first, second = people_asked.scenes
    for name in names:
        for place, right in enumerate(("adherence", "violation", "none")):
            assert people_asked.check_worked(name, place, {"label": [right]})["wrong"] == []
        [shown, other] = people_asked.page_data(name)["scenes"]
        assert (len(shown["pictures"]), f"Ann: {said}" in shown["description"]) == (15, True)
        answers = {key: [question["value"]] for key, question in shown["questions"].items()}
        people_asked.save(name, first, answers | ({"label": ["violation"], "start_s": ["9"]} if name == "Ana" else {}))
        own = {key: [question["value"]] for key, question in other["questions"].items()}
        people_asked.save(name, second, own | ({"label": ["none"]} if name == "Cy" else {"norm": [f"{name} looks."]}))
    for wrong in ({"start_s": ["15"]}, {"norm": [""]}, {"norm": ["`"]}, {"label": ["maybe"]}):
        with pytest.raises(ValueError, match=r"Write what is asked|Choose an answer"):
            people_asked.save("Cy", first, answers | wrong)
    people_asked.finish()
    rows = {row["question"]: row for row in json.loads((run / "agreement.json").read_text())["agreement"]}
    assert (rows["label"]["n"], rows["label"]["equal"]) == (2, 0)
    assert (rows["norm"]["changed"], rows["category"]["changed"]) == (round(2 / 6, 3), 0)
    make("videonorms", tmp_path, run)
    items = [json.loads(line) for line in (run / "items/annotations.jsonl").open()]
    assert [(each["norm"], each["label"]) for each in items] == [
        ("Thank who serves you.", "adherence"), ("Ana looks.", "adherence"), ("Bo looks.", "adherence"),
    ]  # fmt: skip
    assert (items[0]["start_s"], items[1]["other_norms"]) == (2.5, ["Bo looks."])
    assert {(each["transcript"], each["culture"], each["clip"]) for each in items} == {
        (f"Ann: {said}", "us", "office-m_0")
    }
    result = score("videonorms", run / "items", "transcript-given")
    assert (result["n"], result["outcomes"]["failed"]) == (3, 0)


@needs_chromium
def test_a_chinese_norm_is_corrected_in_the_browser(tmp_path: Path) -> None:
    bag(tmp_path / "office", [people(1)] * 15)
    (tmp_path / "office.srt").write_text("1\r\n00:00:03,000 --> 00:00:04,000\r\n谢谢你\r\n不客气\r\n")
    about = {"start_s": 2.5, "context": "工作", "subject": "客人", "verbal": "说得亲切", "nonverbal": "微笑"}
    norm = {"category": "感谢", "norm": "应该感谢别人", "label": "adherence", **about}
    run = tmp_path / "run"
    make("videonorms", tmp_path / "office", run, Service(run, scene_videonorms={"norms": [norm]}), "--culture", "cn")
    with desk(run, *DESK[:4], "--annotator", "Cy") as links, Browser(tmp_path / "profile") as browser:
        browser.open(links["Ana"])
        for number, label in enumerate(("adherence", "violation", "none"), 1):
            ended = f"document.getElementById('title')?.innerText !== 'Worked item {number} of 3'"
            submit(browser, {"label": label}, ended)
        browser.until("document.querySelectorAll('#pictures img')[14]?.naturalWidth > 0")
        assert "谢谢你 不客气" in text(browser, "#description")
        browser.run("document.querySelector('textarea[name=norm]').value = '应该 \\n 感谢朋友'")
        submit(browser, {"label": "violation"}, "document.getElementById('meta')?.innerText.startsWith('1 of 1')")
        assert faults(browser) == []
    saved = json.loads((run / "annotations/Ana.jsonl").read_text().splitlines()[-1])["answers"]
    assert (saved["norm"], saved["label"], saved["verbal"]) == (["应该 感谢朋友"], ["violation"], ["说得亲切"])


@pytest.mark.parametrize(
    ("suite", "times_s", "kept", "dropped"),
    [
        ("videonorms", range(0, 30, 2), [], {"the camera pauses": 1}),
        ("egonormia", (*range(3), *range(60, 63)), [1, 61], {}),  # and not 2, before the largest change
        ("egonormia", range(0, 12, 3), [], {"the camera pauses": 1}),
    ],
)
def test_no_clip_spans_a_pause_of_the_camera(
    tmp_path: Path, suite: str, times_s: Sequence[int], kept: list[int], dropped: dict[str, int]
) -> None:
    bag(tmp_path / "hall", [cv2.resize(room(int(at_s > 9)), (320, 180)) for at_s in times_s], times_s)
    (tmp_path / "hall.srt").write_text("1\n00:00:03,000 --> 00:00:04,000\nThanks\n")
    sources = find_sources([tmp_path / "hall"], "CC0", "nobody's", suite)
    begins = RunFile.model_validate({"suite": suite, "faces": "kept", "sources": sources})
    run = ItemRun(tmp_path / "run", begins)
    faces = [Face(left_ratio=0.4, top_ratio=0.3, width_ratio=0.2, height_ratio=0.3, confidence=1)] * 2
    assert sample(run, lambda pixels: faces, lambda name: None).dropped == dropped
    assert [scene.at_s for scene in run.scenes("sample")] == kept if kept else not run.file.phases["sample"].kept


def test_a_hostile_folder_is_refused_source_by_source(tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    bag(folder / "single", [people(1)])
    bag(folder / "empty_room", [cv2.resize(room(second), (320, 180)) for second in range(3)])
    (folder / "broken.mp4").write_bytes(b"\0\0\0\x18ftypmp42 and then nothing")
    (folder / "torn.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "notes.txt").write_text("no recording")
    told = make("egonormia", folder, tmp_path / "run", code=1)
    for line in (
        "single: fewer than three frames",
        "empty_room: fewer than two people seen",
        "broken: cannot be read",
        "torn: cannot",
    ):
        assert line in told
    for options, problem in (((), "--licence, --consent"), (ALLOWED, "holds no recording")):
        source = folder if not options else folder.parent / "run"
        ended = tactful("items", "make", "egonormia", source, "--out", tmp_path / "other", *options)
        assert (ended.returncode, problem in ended.stderr) == (2, True), ended.stderr
    assert "begin with" in tactful("items", "propose", tmp_path / "other").stderr


@pytest.mark.parametrize(
    ("step", "answer", "dropped"),
    [
        ("act_egogapbench", {"direct": ["<b>Wipe</b>"], "indirect": [], "off_vantage": []}, "too few candidates left"),
        ("act_egogapbench", {"direct": "Wipe."}, "act_egogapbench: unparsed"),
        ("singleton", {"others_can_too": True}, "too few candidates left"),
        ("verdict", {"can_be_done": True, "always_harmful": True}, "too few candidates left"),
        ("blind", {"number": 1}, ""),
    ],
)
def test_what_makes_no_good_item_is_dropped_with_its_reason(
    tmp_path: Path, step: str, answer: Any, dropped: str
) -> None:
    cv2.imwrite(str(tmp_path / "hall.png"), people(1))
    run = tmp_path / "run"
    service = Service(run, **{step: answer})
    while True:
        ended = tactful(
            "items", "make", "egogapbench", tmp_path / "hall.png", "--out", run, *ALLOWED, "--pictures-may-leave"
        )
        if ended.returncode or not service.answer():
            break
    reasons = {name: count["dropped"] for name, count in phases(run).items()}
    assert (dropped in {why for of_phase in reasons.values() for why in of_phase}) == bool(dropped), reasons


def test_a_coded_study_becomes_the_eight_tasks_of_hsri(tmp_path: Path) -> None:
    """An error is asked about with its label's WHY => BETTER; one without is dropped and counted."""
    folder, log, run = tmp_path / "library-2026", tmp_path / "S1", tmp_path / "run"
    study("init", folder, "--condition", "apology", "--coder", "C-1")
    study("participant", folder, "P-7K3MX")
    write_log(log, session="S1", length_s=600, flags=0)
    study("add", folder, log)
    lines = ["polarity,attribute,start_s,end_s,comment"]
    for number in range(24):
        kind, attribute = ("error", "competence")[number % 2], list(Attribute)[number % 7].value
        why = f"It was wrong {number}. => Say {number} instead." if kind == "error" and number else ""
        lines.append(f"{kind},{attribute},{25 * number},{25 * number + 12},{why}")
    (tmp_path / "c.csv").write_text("\n".join(lines))
    study("import", folder / "sessions/S1", tmp_path / "c.csv", "--coder", "C-1")
    ended = tactful("items", "make", "hsri", folder, "--out", run, "--licence", "CC BY 4.0")
    assert ended.returncode == 0, ended.stderr
    assert phases(run)["assemble"]["dropped"] == {"an error without WHY => BETTER as its comment": 1}
    segments = [json.loads(line) for line in (run / "items/segments.jsonl").open()]
    assert Counter(each["kind"] for each in segments)["error"] == 11
    tasks = {*re.findall(r"(\w+): \d+", ended.stdout.splitlines()[-1])}
    assert tasks == {"error3", "units", "error2", "attributes", "multi", "pre", "post", "rationale", "correction"}
    assert score("hsri", run / "items", "text", limit=2)["outcomes"]["failed"] == 0
    drawn = draw_questions(read(run / "items"))
    by_text = {each.get("rationale", ""): each.get("attributes") for each in segments}
    for question in drawn:
        if question.task == "rationale":
            own, *others = (by_text[question.options[place]] for place in (*question.right, *range(5)))
            assert [each for place, each in enumerate(others) if (place,) != question.right and each == own] == []
    none = [each["transcript"] for each in segments if each["kind"] == "none"]
    assert max(after["start_s"] - before["end_s"] for before, after in none) < 12  # over no coded segment
    for name in ("S1-m_0/000.jpg", "S1-m_2-m_0/000.jpg"):  # as another suite has them
        ItemRun(run).write(f"pictures/{name}", b"")
    tactful("study", "withdraw", folder, "P-7K3MX", "--words")
    for more, out, problem in (((), run, "S1: no consent"), ((folder,), tmp_path / "later", "a run for each study")):
        refused = tactful("items", "make", "hsri", folder, *more, "--out", out, "--licence", "CC BY 4.0")
        assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr
    assert phases(run) == {}  # each verb asks for consent again
    assert not (run / "items").exists()
    assert [path.name for path in (run / "pictures").iterdir()] == ["S1-m_2-m_0"]

"""`tactful items make`: bags of foreign code become items that two people label and `bench run` scores.

The pictures are composed: drawn rooms with a face of the public domain, of NASA's photograph in scikit-image.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import cv2
import numpy as np
import pytest

from norm_core.records.flag import Attribute
from norm_core.records.presence import Face
from scoring.agreement_coefficients import cohen_kappas
from sim_replays.own_items.item_run import ItemRun, RunFile
from sim_replays.own_items.sampling import find_sources, sample
from sim_replays.suites.hsri_segments import draw_questions, read
from tests import foreign_bag
from tests.acceptance.test_study_coding import study
from tests.command_line import tactful
from tests.face_pictures import room, with_face
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
        answered = {json.loads(line)["custom_id"] for line in answers.open()} if answers.exists() else set()
        open_ids = [request["custom_id"] for request in requests if request["custom_id"] not in answered]
        with answers.open("a") as file:
            for custom_id in open_ids:
                reply = json.dumps(self.says(custom_id.rpartition("_")[0]))
                body = {"choices": [{"message": {"content": reply}, "finish_reason": "stop"}]}
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


BEGUN: dict[Path, tuple[object, ...]] = {}  # the command of each run


def make(suite: str, sources: Path, run: Path, service: Service | None = None, *options: str, code: int = 0) -> str:
    """Call `items make` until the service has nothing more to answer; return what it wrote."""
    BEGUN[run] = ("items", "make", suite, sources, "--out", run, *ALLOWED, *options, "--pictures-may-leave")
    while True:
        ended = tactful(*BEGUN[run])
        assert ended.returncode == code, ended.stderr
        if service is None or not (run / "batch").is_dir() or not service.answer():
            return ended.stdout + ended.stderr


def score(suite: str, items: Path, setting: str, limit: int = 0) -> Any:
    """Call `bench run` with the sentence encoder."""
    pytest.importorskip("inspect_ai")
    options = ("--out", items.parent / "scored", "-T", f"setting={setting}", "--limit", limit, "--json")
    ended = tactful("bench", "run", suite, "--data", items, *options)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def phases(run: Path) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads((run / "run.json").read_text())["phases"]
    return counts


PEOPLE = ("--annotator", "Ana", "--annotator", "Bo", "--reconciler", "Cy", "--expert", "Di")
Labels = dict[str, Any]


def annotate(run: Path, *people: str, answers: Sequence[Path] = (), code: int = 0) -> str:
    """Repeat the command of a run with people and their exports; return what it wrote."""
    exports = [option for path in answers for option in ("--answers", path)]
    ended = tactful(*BEGUN[run], *people, *exports)
    assert ended.returncode == code, ended.stderr
    return ended.stdout + ended.stderr


def tasks_of(run: Path, project: str) -> list[dict[str, Any]]:
    """The tasks of a project, after a look at whether its configuration names what they hold."""
    folder = run / "label_studio" / project
    tasks: list[dict[str, Any]] = json.loads((folder / "tasks.json").read_text())
    assert (folder / "instructions.md").read_text()
    used = {
        attribute.removeprefix("$")
        for tag in ElementTree.parse(folder / "config.xml").iter()
        for attribute in tag.attrib.values()
        if attribute.startswith("$")
    }
    for task in tasks:
        assert used <= task["data"].keys()  # Label Studio refuses a task that lacks one
        for picture in task["data"]["pictures"]:
            assert (run / picture.removeprefix("/data/local-files/?d=")).is_file()
    return tasks


def export(run: Path, project: str, *labels: Labels, as_text: bool = False, completed_by: int = 10) -> Path:
    """A JSON export of Label Studio in the form of its documentation (guide: Label Studio JSON format), by task.

    Choices are those of the alias that the task gives, or of its text. A text is a list, a choice another.
    """
    folder = run / "label_studio" / project
    config = {tag.get("name"): tag.tag for tag in ElementTree.parse(folder / "config.xml").iter()}
    exported = []
    for number, (task, answers) in enumerate(zip(tasks_of(run, project), labels, strict=False), 1):
        result = list[Labels]()
        for name, values in answers.items():
            options = {option["alias"]: option["value"] for option in task["data"].get(name, ())}
            key = "text" if config[name] == "TextArea" else "choices"
            texts = [options[value] for value in values] if as_text and options else list(values)
            if texts:  # a control without an answer has no result
                kind = {"text": "textarea", "choices": "choices"}[key]
                shared = {"id": f"r{len(result)}", "from_name": name, "to_name": "pictures", "origin": "manual"}
                result.append({**shared, "type": kind, "value": {key: texts}})
        times = {"created_at": "2026-11-28T21:52:49.513742Z", "updated_at": "2026-11-28T22:16:08.746926Z"}
        annotation = {
            "id": 1000 + number, "completed_by": completed_by, "result": result, "was_cancelled": False,
            "ground_truth": False, "lead_time": 4.288, "task": number, **times,
        }  # fmt: skip
        skipped = {**annotation, "was_cancelled": True, "result": [], "updated_at": "2026-11-28T23:00:00.000000Z"}
        exported.append(
            {"id": number, "data": task["data"], "annotations": [annotation, skipped], "predictions": [], "project": 83}
            | times
        )
    unanswered = {"id": 0, "data": tasks_of(run, project)[0]["data"], "annotations": [], "predictions": []}
    path = folder / "export.json"
    path.write_text(json.dumps([*exported, unanswered], ensure_ascii=False))
    return path


def test_two_bags_of_foreign_code_become_twelve_items_that_the_encoder_is_scored_on(tmp_path: Path) -> None:
    for number in range(2):
        pictures = [people(3 * number + second // 12, second % 12 * 6) for second in range(36)]
        bag(tmp_path / f"bags/hall{number}", pictures)
    run = tmp_path / "run"
    begun = make("egogapbench", tmp_path / "bags", run, Service(run))
    assert "--annotator A --annotator B --reconciler C" in begun
    assert cv2.imread(str(run / "contact_sheet.png")) is not None
    assert phases(run)["filter"] == {"kept": 6, "open": 0, "dropped": {}}
    printed = annotate(run, *PEOPLE)
    assert [path.name for path in sorted((run / "label_studio").iterdir())] == ["Ana-label", "Bo-label"]
    assert "6 open" in printed
    passes = {"singleton": ["yes"], "direct_0": ["pass"], "indirect_0": ["pass"], "off_vantage_0": ["off_vantage"]}
    assert "The dive is what the keeper does" in (run / "label_studio/Ana-label/instructions.md").read_text()
    ana = export(run, "Ana-label", *[passes] * 6)
    bo = export(run, "Bo-label", passes | {"direct_0": ["discard"]}, *[passes] * 5, as_text=True, completed_by=11)
    assert "Cy-decide" in annotate(run, *PEOPLE, answers=[ana, bo])
    [differing] = tasks_of(run, "Cy-decide")  # decides the one scene on which they differ
    assert "discard" in differing["data"]["about"]
    assert "Ana" not in differing["data"]["about"]
    assert len(tasks_of(run, "Di-expert")) == 5
    annotate(run, *PEOPLE, answers=[export(run, "Cy-decide", passes)])
    expert_tasks = tasks_of(run, "Di-expert")
    assert "(direct)" in expert_tasks[0]["data"]["about"]
    annotate(run, *PEOPLE, answers=[export(run, "Di-expert", *[{"difficult": ["yes"], "varied": ["yes"]}] * 6)])
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
    annotators, exports = PEOPLE[:4], []
    annotate(run, *annotators)
    for name, best in (("Ana", "c2"), ("Bo", "none")):
        tasks = tasks_of(run, f"{name}-label")
        assert "happens" not in tasks[0]["data"]
        assert not any(picture.endswith("005.jpg") for picture in tasks[0]["data"]["pictures"])
        first, second = (task["data"]["scene"] for task in tasks)
        labels = ({"best": ["c2"], "sensible": ["c1"]}, {"best": [best], "sensible": []})
        exports.append(export(run, f"{name}-label", *labels))
    annotate(run, *annotators, answers=exports)
    changed = export(run, "Ana-label", {"best": ["c1"], "sensible": []})
    annotate(run, *annotators, answers=[changed])  # what was chosen does not change once the second after is shown
    assert tasks_of(run, "Ana-after")[0]["data"]["pictures"][-1].endswith("005.jpg")
    happens = [
        export(run, "Ana-after", {"happens": ["yes"]}, {"happens": ["no"]}),  # on which nobody needs to decide
        export(run, "Bo-after", {"happens": ["cannot_tell"]}, {"happens": ["no"]}),
    ]
    annotate(run, *annotators, answers=happens)
    assert phases(run)["annotate"]["dropped"] == {"annotators differ on the best action": 1}
    annotate(run, *PEOPLE)
    [task] = tasks_of(run, "Cy-decide")
    assert task["data"]["scene"] == second
    own = {"best": ["own"], "own_action": ["<b>"], "own_reason": ["Why."], "sensible": [], "happens": ["no"]}
    refused = annotate(run, *PEOPLE, answers=[export(run, "Cy-decide", own)], code=1)
    assert f"Cy, {second}: Your own words: Write what is asked, without markup" in refused
    own |= {"own_action": ["Fetch a cloth."], "own_reason": ["It is wet."]}
    annotate(run, *PEOPLE, answers=[export(run, "Cy-decide", own)])
    tasks = tasks_of(run, "Di-expert")
    assert "- Fetch a cloth. It is wet. (best)" in tasks[1]["data"]["about"]
    yes = {"difficult": ["yes"], "varied": ["yes"]}
    annotate(run, *PEOPLE, answers=[export(run, "Di-expert", yes)])
    assert phases(run)["annotate"]["open"] == 1
    annotate(run, *PEOPLE, answers=[export(run, "Di-expert", yes | {"difficult": ["no"]})])
    assert phases(run)["annotate"] == {"kept": 1, "open": 0, "dropped": {"the expert: too easy": 1}}
    assert json.loads((run / "agreement.json").read_text())["happens"] == {"yes": 1, "no": 2, "cannot_tell": 1}
    make("egonormia", tmp_path / "bags", run)
    assert "in the recording: yes 1, no 2, cannot_tell 1." in (run / "items/datasheet.md").read_text()
    [(name, item)] = json.loads((run / "items/egonormia.json").read_text()).items()
    scenes = [json.loads(line) for line in (run / "filter.jsonl").open()]
    [proposed] = [{option["id"]: option for option in scene["candidates"]} for scene in scenes if scene["id"] == first]
    assert item["behaviors"][item["correct"]] == proposed["c2"]["action"]
    assert {item["behaviors"][place] for place in item["sensibles"]} == {
        proposed[key]["action"] for key in ("c1", "c2")
    }
    assert len(list((run / "items/frames" / name).glob("*.jpg"))) == 5  # and not the second after
    assert score("egonormia", run / "items", "video")["n"] == 1
    lines = (run / "filter.jsonl").read_text()
    (run / "filter.jsonl").write_text(lines.replace(proposed["c2"]["action"], "Sing."))
    refused = annotate(run, *annotators, answers=exports, code=1)  # both scenes, which share it, ask anew
    assert refused.count("was asked otherwise since") == 3  # the export of one answer took the place of Ana's two
    assert len(tasks_of(run, "Ana-label")) == 2


def test_hostile_exports_are_refused(tmp_path: Path) -> None:
    bag(tmp_path / "bags/hall", [people(second // 12, second % 12 * 6) for second in range(12)])
    run = tmp_path / "run"
    make("egonormia", tmp_path / "bags", run, Service(run))
    annotate(run, *PEOPLE)
    file = export(run, "Bo-label", {"best": ["c1"], "sensible": []})
    tasks = json.loads(file.read_text())
    of_two = [{**task, "annotations": [{"result": [], "completed_by": place} for place in range(2)]} for task in tasks]
    of_others = [{**tasks[0], "data": tasks[0]["data"] | {"person": "Eve"}}]
    for content, problem in (
        ("{", "is no JSON export"),
        ('[{"id": 1, "image": "x.jpg", "choice": "a"}]', "is no JSON export"),  # JSON-MIN
        (json.dumps(of_two), "more than one person"),
        (json.dumps(of_others), "Eve"),
    ):
        file.write_text(content)
        assert problem in annotate(run, *PEOPLE, answers=[file], code=2)


@pytest.mark.parametrize(
    ("suite", "times_s", "moments_s", "dropped"),
    [
        ("egonormia", (*range(3), *range(60, 63)), [1, 61], {}),  # and not 2, before the largest change
        ("egonormia", range(0, 12, 3), [], {"the camera pauses": 1}),
    ],
)
def test_no_clip_spans_a_pause_of_the_camera(
    tmp_path: Path, suite: str, times_s: Sequence[int], moments_s: list[int], dropped: dict[str, int]
) -> None:
    bag(tmp_path / "hall", [cv2.resize(room(int(at_s > 9)), (320, 180)) for at_s in times_s], times_s)
    sources = find_sources([tmp_path / "hall"], "CC0", "nobody's", suite)
    begins = RunFile.model_validate({"suite": suite, "faces": "kept", "sources": sources})
    run = ItemRun(tmp_path / "run", begins)
    faces = [Face(left_ratio=0.4, top_ratio=0.3, width_ratio=0.2, height_ratio=0.3, confidence=1)] * 2
    assert sample(run, lambda pixels: faces, lambda name: None).dropped == dropped
    assert (
        [scene.at_s for scene in run.scenes("sample")] == moments_s if moments_s else not run.file.phases["sample"].kept
    )


def test_a_hostile_folder_is_refused_source_by_source(tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    bag(folder / "single", [people(1)])
    bag(folder / "empty_room", [cv2.resize(room(second), (320, 180)) for second in range(3)])
    (folder / "broken.mp4").write_bytes(b"\0\0\0\x18ftypmp42 and then nothing")
    (folder / "torn.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "notes.txt").write_text("no recording")
    printed = make("egonormia", folder, tmp_path / "run", code=1)
    for line in (
        "single: fewer than three frames",
        "empty_room: fewer than two people seen",
        "broken: cannot be read",
        "torn: cannot",
    ):
        assert line in printed
    for options, problem in (((), "--licence, --consent"), (ALLOWED, "holds no recording")):
        source = folder if not options else folder.parent / "run"
        ended = tactful("items", "make", "egonormia", source, "--out", tmp_path / "other", *options)
        assert (ended.returncode, problem in ended.stderr) == (2, True), ended.stderr


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
    assert Counter(segment["kind"] for segment in segments)["error"] == 11
    tasks = {*re.findall(r"(\w+): \d+", ended.stdout.splitlines()[-1])}
    assert tasks == {"error3", "error2", "attributes", "multi", "pre", "post", "rationale", "correction"}
    assert score("hsri", run / "items", "text", limit=2)["outcomes"]["failed"] == 0
    drawn = draw_questions(read(run / "items"))
    by_text = {segment.get("rationale", ""): segment.get("attributes") for segment in segments}
    for question in drawn:
        if question.task == "rationale":
            own, *others = (by_text[question.options[place]] for place in (*question.right, *range(5)))
            assert [other for place, other in enumerate(others) if (place,) != question.right and other == own] == []
    none = [segment["transcript"] for segment in segments if segment["kind"] == "none"]
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

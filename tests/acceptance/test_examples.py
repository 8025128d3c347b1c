"""Each example in examples/ does what its header says, run as a user runs it."""

import ast
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from norm_monitor.replay.node_process import NodeProcess, NodeProcessError
from tests.acceptance.conversation_bag import robot, user, write_talk
from tests.acceptance.test_open_goals import undecided_selector
from tests.foreign_interfaces import MARKERS, build_once, environment
from tests.observer import Observer
from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORDS_ALONE = {"monitor": {"windows": {"sources": ["utterances"]}}}


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A bag of a question that waits nine seconds for its answer, and of the quiet until its flag is closed."""
    return write_talk(
        tmp_path / "bag",
        [user(1, 3, "Where can I buy a ticket?"), robot(12, 14, "You can buy it at the counter.")],
        60,
    )


def play(bag: Path) -> None:
    """Play a bag ten times as fast as it was recorded."""
    command = [sys.executable, "-m", "tactful_cli", "bag", "play", str(bag), "--rate", "10"]
    subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)


@contextmanager
def running(name: str, *arguments: str) -> Iterator[Callable[[str], str]]:
    """Run an example until Ctrl-C; give a function that waits for a line by the pattern of its beginning."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as example:
        printed: list[str] = []

        def await_line(pattern: str) -> str:
            assert example.stdout
            for line in example.stdout:
                printed.append(line)
                if re.match(pattern, line):
                    return line
            pytest.fail(f"{name} ended without {pattern!r}: {''.join(printed)}")

        try:
            yield await_line
        finally:
            example.send_signal(signal.SIGINT)
            rest, _ = example.communicate(timeout=PATIENCE_S)
    assert example.returncode == 0, "".join(printed) + rest


def run(name: str, *arguments: str) -> str:
    """Run an example to its end; return what it printed."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_short_names_its_command_and_has_syntax_of_humbles_python() -> None:
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert f'\neval "$(./tactful env)" && python examples/{path.name}' in text.split('"""')[1]
        assert len(text.splitlines()) < 200
        ast.parse(text, path.name, feature_version=(3, 10))


@pytest.mark.ros
def test_an_installed_cue_flags_in_its_test_in_a_bag_and_in_the_node(
    tmp_path: Path, domain_id: int, observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from norm_interfaces.msg import SocialFlag

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    package, site = tmp_path / "package", tmp_path / "site"
    shutil.copytree(EXAMPLES / "custom_cue", package)
    offline = ("--no-build-isolation", "--no-deps", "--no-index", "--quiet")
    python("pip", "install", *offline, "--target", str(site), str(package))
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    python("pytest", "-q", str(package))
    talk = [user(1, 3, "Where is it?"), robot(4, 6, "It is at the counter behind the stairs on your left before noon.")]
    bag = write_talk(tmp_path / "talk", talk, 60)
    assert "at 6.5 words a second" in python("tactful_cli", "flags", str(bag), "--cue", "speaks_too_fast")
    flags = observer.collect(SocialFlag, "/tactful/flags", 10)
    with NodeProcess(["monitor"], {"monitor": {"cues": ["speaks_too_fast"], **WORDS_ALONE["monitor"]}}, domain_id):
        observer.meet("monitor")
        play(bag)
        observer.until(lambda: "speaks_too_fast" in [flag.cue_id for flag in flags], "the cue's flag")


# Prints each marker: its frame, whether it is added, whether it is red, and its text.
MARKER_READER = """
import rclpy
from visualization_msgs.msg import Marker, MarkerArray

def show(array):
    for m in array.markers:
        print(m.header.frame_id, m.action == Marker.ADD, m.color.r > m.color.g, m.text.splitlines(), flush=True)

rclpy.init()
node = rclpy.create_node("reader")
node.create_subscription(MarkerArray, "/tactful/markers", show, 50)
rclpy.spin(node)
"""


@pytest.mark.ros
def test_markers_show_open_flags_over_the_people_whom_they_concern(
    domain_id: int, observer: Observer, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(build_once(tmp_path_factory, MARKERS)).items():
        monkeypatch.setenv(name, value)
    from norm_interfaces.msg import Person, Presence, SocialFlag

    lines: list[str] = []
    presences, flags = (
        observer.node.create_publisher(type_, f"/tactful/{name}", 50)
        for type_, name in ((Presence, "presence"), (SocialFlag, "flags"))
    )
    presence = Presence(persons=[Person(person_id="ann")])
    unnamed = SocialFlag(event_id="e1", polarity=SocialFlag.POLARITY_ERROR, rationale="It waited for nine seconds.")
    praise = SocialFlag(event_id="e2", polarity=SocialFlag.POLARITY_COMPETENCE, rationale="A bow.", person_id="ann")

    def await_markers(flag: Any, *wanted: str) -> None:
        """Send a state of a flag, until the latest message has the wanted markers."""

        def has_come() -> bool:
            presences.publish(presence)
            flags.publish(flag)
            return lines[-len(wanted) :] == list(wanted)

        observer.until(has_come, f"{wanted}, not {lines[-2:]}")

    command = [sys.executable, "-c", MARKER_READER]
    with (
        running("flag_markers.py") as await_line,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader,
    ):
        assert reader.stdout
        thread = Thread(target=lambda output: lines.extend(map(str.strip, output)), args=[reader.stdout])
        thread.start()
        try:
            await_line("publishing /tactful/markers")
            await_markers(unnamed, "base_link True True ['It waited for nine seconds.']")
            over_both = "base_link True True ['It waited for nine seconds.']", "person_ann True False ['A bow.']"
            await_markers(praise, *over_both)
            unnamed.state = SocialFlag.STATE_CLOSED
            await_markers(unnamed, "base_link False False []", over_both[1])
        finally:
            reader.kill()
            thread.join()


@pytest.mark.ros
def test_behaviour_tree_chooses_and_checks(domain_id: int) -> None:
    pytest.importorskip("py_trees", reason="py_trees is not installed")
    with NodeProcess(["selector", "monitor"], WORDS_ALONE, domain_id):
        shown = run("behaviour_tree.py")
    assert "SUCCESS: Lay plates on the table" in shown
    assert "the cook is doing that already" in shown
    assert "SUCCESS: " in shown.splitlines()[1]


@pytest.fixture
def leaves(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The leaves of py_trees."""
    pytest.importorskip("py_trees", reason="py_trees is not installed")
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("behaviour_tree")


@pytest.mark.ros
def test_goal_leaf_never_waits_and_cancels_on_halt(
    leaves: Any, domain_id: int, observer: Observer, own_models: Path
) -> None:
    """The model never answers, and nobody spins the leaf's node in a tick: a tick that waits would never return."""
    from norm_interfaces.action import SelectAction
    from py_trees.common import Status

    def make_goal() -> Any:
        return SelectAction.Goal(candidates=["Greet.", "Wave."], others_given=True)

    leaf, hasty = leaves.SelectActionLeaf("ask", make_goal, PATIENCE_S), leaves.SelectActionLeaf("ask", make_goal, 1.0)
    tree = leaves.BehaviourTree(leaves.Sequence("root", memory=True, children=[leaf]))

    def tick() -> Status:
        tree.tick()
        return Status(tree.root.status)

    for each in (leaf, hasty):
        each.setup(node=observer.node)
    assert (tick(), leaf.feedback_message) == (Status.FAILURE, "tactful/select_action: no node serves it")
    with undecided_selector("events", domain_id, own_models, "--autostart") as (selector, server):
        observer.watch_status()
        observer.until(lambda: tick() is Status.RUNNING, "the leaf to find the server")
        tree.root.stop(Status.INVALID)  # before the goal is accepted
        observer.until(lambda: observer.counted("decisions_cancelled") == 1, "the first goal to be cancelled")
        assert {tick() for _ in range(3)} == {Status.RUNNING}
        observer.until(lambda: tick() is Status.RUNNING and server.reached.is_set(), "the model to be asked")
        tree.root.stop(Status.INVALID)
        observer.until(lambda: observer.counted("decisions_cancelled") == 2, "the second goal to be cancelled")
        os.kill(selector.pid, signal.SIGSTOP)
        observer.until(lambda: (hasty.tick_once(), hasty.status)[1] is Status.FAILURE, "the leaf to give up")
        assert hasty.feedback_message == "tactful/select_action: no answer came in time"
        os.kill(selector.pid, signal.SIGCONT)
    tree.shutdown()
    hasty.shutdown()


@pytest.mark.ros
def test_goal_leaf_takes_an_abort_without_a_result_as_failure(leaves: Any, observer: Observer) -> None:
    from norm_interfaces.action import SelectAction
    from py_trees.common import Status
    from rclpy.action import ActionServer

    def abort(handle: Any) -> Any:
        handle.abort()
        return SelectAction.Result()

    leaf = leaves.SelectActionLeaf("ask", SelectAction.Goal, PATIENCE_S)
    leaf.setup(node=observer.node)
    server = ActionServer(observer.node, SelectAction, "/tactful/select_action", abort)
    observer.until(lambda: (leaf.tick_once(), leaf.result)[1], "the end of the goal")
    assert (leaf.status, leaf.feedback_message) == (Status.FAILURE, "tactful/select_action: its node gave no result")
    leaf.shutdown()
    server.destroy()


@pytest.mark.ros
def test_condition_leaf_follows_flags_and_monitor(
    leaves: Any, domain_id: int, observer: Observer, tmp_path: Path
) -> None:
    from norm_interfaces.msg import SocialFlag
    from py_trees.common import Status
    from std_srvs.srv import Trigger

    question = "Where can I buy a ticket"
    talk = write_talk(tmp_path / "bag", [user(1, 3, f"{question}?"), robot(12, 14, "At the counter.")], 30)

    def load(if_unknown: str) -> Any:
        leaf = leaves.SocialErrorOpen("e", SocialFlag.ATTRIBUTE_CONVERSATIONAL_MECHANICS, PATIENCE_S, if_unknown)
        leaf.setup(node=observer.node)
        return leaf

    def await_answer(leaf: Any, status: Status, words: str = "") -> None:
        def is_there() -> bool:
            leaf.tick_once()
            return leaf.status is status and (words in leaf.feedback_message if words else not leaf.feedback_message)

        observer.until(is_there, f"{status} {words}")

    def await_unknown(words: str) -> None:
        await_answer(cautious, Status.SUCCESS, words)
        await_answer(calm, Status.FAILURE, words)

    cautious, calm = load("open"), load("calm")
    await_unknown("no status of the monitor")
    with suppress(NodeProcessError), NodeProcess(["monitor"], WORDS_ALONE, domain_id) as monitor:
        observer.meet("monitor")
        await_answer(cautious, Status.FAILURE)
        play(talk)
        await_answer(calm, Status.SUCCESS, question)
        await_answer(load("calm"), Status.SUCCESS, question)  # of a tree that is loaded late
        assert observer.call(Trigger, "/tactful/forget").success  # which closes the flag
        await_answer(cautious, Status.FAILURE)
        os.kill(monitor.pid, signal.SIGKILL)
        await_unknown("no status of the monitor")
    with NodeProcess(["monitor"], {"monitor": {**WORDS_ALONE["monitor"], "shadow": True}}, domain_id):
        await_unknown("no list of open flags")


@pytest.mark.ros
def test_flag_listener_prints_flags_and_corrects(domain_id: int, observer: Observer, talk: Path) -> None:
    from std_msgs.msg import String

    hints = observer.collect(String, "/dialogue/hint", 10)
    with NodeProcess(["monitor"], WORDS_ALONE, domain_id), running("flag_listener.py") as await_line:
        await_line("listening")
        observer.until(lambda: observer.node.count_subscribers("/tactful/flags"), "the listener")
        observer.meet("monitor")
        play(talk)
        line = await_line(r"(opened|updated|closed) error no_response")
        observer.until(lambda: hints, "a correction")
    assert re.search(r"no_response \(0\.\d\d\): The person said", line)
    assert hints[0].data.startswith("Answer, or say that you did not understand")

"""How ears find what tells of the robot's speech, over real DDS."""

from dataclasses import replace
from typing import Any

import pytest

from norm_core.records.messages import from_message
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.records.text_limits import MAX_SPEECH_CHARACTERS
from norm_monitor.replay.node_process import NodeProcess
from tests.norm_monitor.senses.speech_path import START_NS
from tests.observer import Observer

pytestmark = pytest.mark.ros


class Session:
    """What ears publish of the robot, and what their status says."""

    def __init__(self, observer: Observer) -> None:

        self._observer = observer
        self._edges = observer.records(RobotSpeech, "robot_speech")
        observer.watch_status()

    @property
    def edges(self) -> list[RobotSpeech]:
        return [from_message(RobotSpeech, message) for message in self._edges]

    def reasons(self) -> str:
        own = [status for status in self._observer.statuses if status.node == "/tactful/ears"]
        return " ".join(own[-1].reasons) if own else ""

    def publisher(self, type_: Any, topic: str) -> Any:
        """A publisher that is made while ears run, once they have found it."""
        publisher = self._observer.node.create_publisher(type_, topic, 50)
        self._observer.until(publisher.get_subscription_count, f"ears to find {topic}")
        return publisher


@pytest.fixture
def session(observer: Observer) -> Session:
    return Session(observer)


def test_robot_speech_on_another_topic_reaches_every_node(domain_id: int, observer: Observer, session: Session) -> None:
    from norm_nodes.base.convert import record_class, to_ros

    speech = RobotSpeech(stamp_ns=START_NS, speech_id="s", state=SpeechEdge.START, text="Hello")
    with NodeProcess(["ears"], {"ears": {"robot_speech_topic": "/robot/edges"}}, domain_id):
        observer.meet("ears")
        observer.until(lambda: "/robot/edges: nobody publishes it" in session.reasons(), "the missing topic to be told")
        robot = session.publisher(record_class(RobotSpeech), "/robot/edges")
        robot.publish(to_ros(speech))
        observer.until(lambda: session.edges == [speech], "the same on robot_speech")
        observer.until(lambda: "nobody publishes" not in session.reasons(), "the topic to be found")
        robot.publish(to_ros(replace(speech, text="word " * 2_000_000)))
        observer.until(lambda: len(session.edges) == 2, "the long text on robot_speech")
        assert len(session.edges[1].text) == MAX_SPEECH_CHARACTERS
        observer.until(lambda: "texts: some that came were too long" in session.reasons(), "the cut to be told")
        assert observer.counted("texts_cut") == 1


def test_an_action_is_named_as_the_robots_speech(domain_id: int, observer: Observer, session: Session) -> None:
    from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
    from std_msgs.msg import String

    def status(state: int) -> Any:
        return GoalStatusArray(status_list=[GoalStatus(goal_info=GoalInfo(), status=state)])

    ears = {"robot_speech_topic": "/say", "robot_speaking_topic": "/said"}
    with NodeProcess(["ears"], {"ears": ears}, domain_id):
        observer.meet("ears")
        words = session.publisher(String, "/said")
        goals = session.publisher(GoalStatusArray, "/say/_action/status")
        goals.publish(status(GoalStatus.STATUS_EXECUTING))
        observer.until(lambda: session.edges, "the start")
        words.publish(String(data="Hello"))
        observer.until(lambda: len(session.edges) == 2, "the words")
        goals.publish(status(GoalStatus.STATUS_SUCCEEDED))
        observer.until(lambda: session.edges[-1].state is SpeechEdge.STOP, "the stop")
        assert [edge.text for edge in session.edges] == ["", "Hello", "Hello"]
        assert not any(edge.estimated for edge in session.edges)


def test_a_missing_topic_names_its_own_parameter(domain_id: int, observer: Observer, session: Session) -> None:
    ears = {"robot_speech_topic": "/says", "robot_speaking_topic": "/is_speaking"}
    words = "/says: nobody publishes it, so nothing is heard of the robot; start the robot's speech, or correct "
    times = "/is_speaking: nobody publishes it, so the times of the robot's words are estimated"
    with NodeProcess(["ears"], {"ears": ears}, domain_id):
        observer.until(lambda: f"{words}robot_speech_topic of ears" in session.reasons(), "the words to be missed")
        observer.until(lambda: times in session.reasons(), "the times to be missed")
        assert session.reasons().endswith("or correct robot_speaking_topic of ears")


def test_wrong_type_and_rival_publisher_are_stated(domain_id: int, observer: Observer, session: Session) -> None:
    from norm_nodes.base.convert import to_ros
    from std_msgs.msg import String

    ears = {"robot_speech_topic": "/said", "robot_speech_type": "std_msgs/msg/Bool"}
    observer.node.create_publisher(String, "/said", 10)
    rival = observer.publisher(RobotSpeech, "robot_speech")
    wrong = "/said: is published as std_msgs/msg/String and read as std_msgs/msg/Bool; correct robot_speech_type"
    with NodeProcess(["ears"], {"ears": ears}, domain_id):
        observer.until(lambda: wrong in session.reasons(), "the wrong type to be told")
        observer.meet("ears")
        observer.until(rival.get_subscription_count, "ears to meet the rival")
        assert "beside ears" not in session.reasons()  # DDS lists one that was killed, too
        rival.publish(to_ros(RobotSpeech(stamp_ns=START_NS, speech_id="s", state=SpeechEdge.START)))
        observer.until(lambda: "has a publisher beside ears" in session.reasons(), "the rival to be told")

"""`tactful up`: start every node of a profile and keep it running, or write a profile from the published topics."""

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.markup import escape
from rich.table import Table

from norm_core.files.atomic_file import write_atomic
from norm_core.records.record import record
from norm_core.records.topics import full_topic
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.judge.deployment_context import DeploymentContext
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.up.access import TOOLS, enclave_environment, policy_of
from tactful_cli.up.input_check import (
    BOOL_TYPE,
    IMAGE_TYPES,
    ROBOT_SPEECH_TYPE,
    STRING_TYPE,
    CheckedInput,
    InputVerdict,
    check_inputs,
    describe,
    is_microphone,
)
from tactful_cli.up.profile import (
    Profile,
    Survey,
    Topic,
    effective_parameters,
    load,
    shipped,
    survey_topics,
)
from tactful_cli.up.run import run
from tactful_cli.verb import single

_ROBOT_WORDS = ("say", "tts", "speech", "speak", "caption")
_PEOPLE_WORDS = ("transcri", "asr", "stt", "speech_to_text", "recogni", "heard", "user", "person", "people", "human")
_VOICE_WORDS = ("speak", "talk", "voice", "vad", "say", "tts", "speech")
_ROBOT_TYPES = (ROBOT_SPEECH_TYPE, "hri_actions_msgs/msg/ClosedCaption", "sound_play/msg/SoundRequest")
_OWN = full_topic("")
_VOICES, _PEOPLE = "/voices/tracked", "/persons/tracked"


@record
class TopicCandidate:
    """A topic or an action that may play a part, with its type; an action's type is left empty."""

    name: str
    type_name: str
    remark: str
    is_reliable: bool = True
    is_likely: bool = True  # whether its type or its name says that it plays the part


def cameras(survey: Survey) -> list[TopicCandidate]:
    """List pictures, compressed ones first: raw ones are often lost."""
    order = tuple(IMAGE_TYPES.values())
    cameras_on_graph = _of(survey, lambda name, type_name: type_name in order and "depth" not in name)
    return sorted(cameras_on_graph, key=lambda topic: order.index(topic.type_name))


def recognizers(survey: Survey) -> list[TopicCandidate]:
    """List the texts of a recognizer of the robot's own: its type first, then strings, the likely ones first."""
    topics = _of(survey, lambda _, type_name: type_name.endswith("/LiveSpeech"))
    return topics + _of(survey, _is_string, _is_about_people)


def robot_speech(survey: Survey) -> list[TopicCandidate]:
    """List what tells what the robot says: known types first, then actions, then strings, the likely ones first."""
    topics = _of(survey, lambda _, type_name: type_name in _ROBOT_TYPES)
    actions = [
        TopicCandidate(name=name, type_name="", remark=f"action {', '.join(types)}")
        for name, types in survey.actions.items()
        if _names(name, ("say", "tts", "speak", "speech")) and not name.startswith(_OWN)
    ]
    strings = _of(survey, _is_string, lambda name: _names(name, _ROBOT_WORDS) and not _is_about_people(name))
    others = sorted(strings + actions, key=lambda topic: not topic.is_likely)
    return sorted(topics, key=lambda topic: _ROBOT_TYPES.index(topic.type_name)) + others


def people_voices(survey: Survey, recognizer: TopicCandidate) -> list[TopicCandidate]:
    """List Bools that may be true while people speak, first that of a LiveSpeech's own voice (REP-155)."""
    own = f"{recognizer.name.rpartition('/')[0]}/is_speaking" if recognizer.type_name != STRING_TYPE else ""
    topics = _of(survey, _is_bool, lambda name: name == own or (_names(name, _VOICE_WORDS) and _is_about_people(name)))
    return sorted(topics, key=lambda topic: topic.name != own)


def robot_voices(survey: Survey) -> list[TopicCandidate]:
    """List Bools that may be true while the robot speaks."""
    return _of(survey, _is_bool, lambda name: _names(name, _VOICE_WORDS) and not _is_about_people(name))


def tracked(survey: Survey, ending: str) -> list[TopicCandidate]:
    """List topics of tracked voices or people as REP-155 names them."""
    return _of(survey, lambda name, type_name: type_name.endswith("/IdsList") and name.endswith(ending))


def _of(
    survey: Survey, fits: Callable[[str, str], bool], is_likely: Callable[[str], bool] = lambda _: True
) -> list[TopicCandidate]:
    """List the topics of others whose name and type fit, the likely ones first."""
    candidates = [
        TopicCandidate(
            name=topic.name,
            type_name=type_name,
            remark=describe(topic),
            is_reliable=topic.reliable,
            is_likely=is_likely(topic.name),
        )
        for topic in survey.topics
        for type_name in topic.types
        if fits(topic.name, type_name) and not _is_own(topic, type_name)
    ]
    return sorted(candidates, key=lambda candidate: not candidate.is_likely)


def _is_own(topic: Topic, type_name: str) -> bool:
    """Whether Tactful itself publishes a topic; the robot's own speech under this name may come from a robot."""
    if topic.publishers:
        return all(_OWN in node for node in topic.publishers)
    return topic.name.startswith(_OWN) and type_name != ROBOT_SPEECH_TYPE


def _is_string(_: str, type_name: str) -> bool:
    return type_name == STRING_TYPE


def _is_bool(_: str, type_name: str) -> bool:
    return type_name == BOOL_TYPE


def _is_about_people(name: str) -> bool:
    return _names(name, _PEOPLE_WORDS)


def _names(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)


_NOTHING_HEARD = (
    "# Nothing was found of people's words: set audio_topic and audio_type, or words_from, words_topic and words_type."
)


@record
class InitChoices:
    """What plays which part; None where nothing does."""

    camera: TopicCandidate | None
    microphone: TopicCandidate | None
    voices: TopicCandidate | None
    recognizer: TopicCandidate | None
    people_voice: TopicCandidate | None
    robot: TopicCandidate | None
    robot_voice: TopicCandidate | None
    people: TopicCandidate | None
    context: DeploymentContext

    @property
    def chosen(self) -> tuple[TopicCandidate, ...]:
        """What plays a part."""
        parts = [getattr(self, field.name) for field in fields(self)]
        return tuple(part for part in parts if isinstance(part, TopicCandidate))


def chosen_parts(survey: Survey, context: DeploymentContext) -> InitChoices:
    """Choose which topic plays which part by its type or its name; each plays one part at most."""
    taken: set[str] = set()

    def first(candidates: Sequence[TopicCandidate]) -> TopicCandidate | None:
        likely = next(
            (candidate for candidate in candidates if candidate.name not in taken and candidate.is_likely), None
        )
        if likely:
            taken.add(likely.name)
        return likely

    voices = first(tracked(survey, _VOICES))
    recognizer = None if voices else first(recognizers(survey))
    people_voice = first(people_voices(survey, recognizer)) if recognizer else None
    microphone = None if voices or recognizer else first(_of(survey, is_microphone))
    robot = first(robot_speech(survey))
    times_itself = robot is not None and robot.type_name == ROBOT_SPEECH_TYPE
    return InitChoices(
        voices=voices,
        recognizer=recognizer,
        people_voice=people_voice,
        microphone=microphone,
        robot=robot,
        robot_voice=None if times_itself else first(robot_voices(survey)),
        camera=first(cameras(survey)),
        people=first(tracked(survey, _PEOPLE)),
        context=context,
    )


def unused(choices: InitChoices, survey: Survey) -> list[TopicCandidate]:
    """List the topics that could play a part and play none."""
    parts = [part(survey) for part in (recognizers, robot_speech, robot_voices, cameras)]
    parts = [tracked(survey, _VOICES), *parts[:3], _of(survey, is_microphone), parts[3], tracked(survey, _PEOPLE)]
    taken = {topic.name for topic in choices.chosen}
    unused_topics = {topic.name: topic for part in parts for topic in part if topic.name not in taken}
    voice = choices.voices.name.removesuffix("tracked") if choices.voices else "//"  # no topic is named so
    return [candidate for name, candidate in unused_topics.items() if not name.startswith(voice)]


def profile_of(choices: InitChoices, survey: Survey) -> dict[str, dict[str, Any]]:
    """Return the parameters of each node that the choices call for."""
    nodes: dict[str, dict[str, Any]] = {}
    if choices.camera:
        transport = next(name for name, type_name in IMAGE_TYPES.items() if type_name == choices.camera.type_name)
        nodes["camera"] = {"topic": choices.camera.name, "transport": transport}
    if choices.people:
        nodes["people"] = {"humans": choices.people.name.removesuffix(_PEOPLE)}
        nodes.get("camera", {})["faces"] = False  # nobody counts twice
    nodes["ears"] = {**_heard(choices, survey), **_robot(choices)}
    sources = ["utterances"]
    sources += ["frames"] if choices.camera else []
    sources += ["presence"] if choices.camera or choices.people else []
    nodes["monitor"] = {
        "windows": {"sources": sorted(sources)},
        "judge": {"deployment_context": choices.context.value},
    }
    nodes["selector"] = {}
    return nodes


def profile_text(nodes: Mapping[str, Any], choices: InitChoices, survey: Survey) -> str:
    """Return the profile as YAML, with what was found beside it."""
    lines = [f"# Written by {PROGRAM} up --init from the topics that were published then."]
    remarks = {
        "camera": choices.camera,
        "ears": choices.voices or choices.recognizer or choices.microphone,
        "people": choices.people,
    }
    for node, parameters in nodes.items():
        lines.append("")
        if chosen := remarks.get(node):
            lines.append(f"# {chosen.name}: {chosen.remark}")
        if node == "ears":
            if not chosen:
                lines.append(_NOTHING_HEARD)
            lines += [_robot_remark(choices.robot or choices.robot_voice)]
        section = {full_topic(node): {"ros__parameters": parameters}}
        lines.append(yaml.safe_dump(section, sort_keys=False, allow_unicode=True).rstrip("\n"))
    if others := unused(choices, survey):
        lines += ["", "# Not used:", *(f"# {other.name}: {other.remark}" for other in others)]
    return "\n".join(lines) + "\n"


def _heard(choices: InitChoices, survey: Survey) -> dict[str, Any]:
    if choices.voices:
        return {"words_from": "voices", "humans": choices.voices.name.removesuffix(_VOICES)}
    if choices.recognizer:
        return {
            "words_from": "topic",
            "words_topic": choices.recognizer.name,
            "words_type": choices.recognizer.type_name,
            "is_speaking_topic": choices.people_voice.name if choices.people_voice else "",
        }
    if not choices.microphone:
        return {}
    heard = {"audio_topic": choices.microphone.name, "audio_type": choices.microphone.type_name}
    infos = [topic for topic in survey.topics if topic.types == ("audio_common_msgs/msg/AudioInfo",)]
    if infos:
        heard["audio_info_topic"] = infos[0].name
    return heard


def _robot(choices: InitChoices) -> dict[str, Any]:
    robot = choices.robot or choices.robot_voice
    if robot is None:
        return {}
    parameters: dict[str, Any] = {"robot_speech_topic": robot.name}
    if choices.robot and choices.robot_voice:
        parameters["robot_speaking_topic"] = choices.robot_voice.name
    if robot.type_name:
        parameters["robot_speech_type"] = robot.type_name
    if robot.type_name == ROBOT_SPEECH_TYPE and not robot.is_reliable:
        parameters["qos_overrides"] = {robot.name: {"subscription": {"reliability": "best_effort"}}}
    return parameters


def _robot_remark(robot: TopicCandidate | None) -> str:
    if robot is None:
        return "# Nothing was found of the robot's own speech, so nothing it says is flagged: set robot_speech_topic."
    return f"# {robot.name}: {robot.remark}"


app = single()

EXIT_NOT_WELL, EXIT_BAD_INPUT = 1, 2
UNSPECIFIED_CONTEXT = (
    "deployment_context: is unspecified, so no model infers emotions from pictures; home, public or health permits it. "
    "Without a judge that sees pictures, flags do not depend on it."
)


@app.command()
def up(  # noqa: PLR0917
    profile: Annotated[
        str, typer.Argument(metavar="[PROFILE]", help="A shipped profile, or the file of one; none: list them.")
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(help="Namespace of the robot, where several share a ROS domain: its nodes and topics lie in it."),
    ] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Start nothing; say which topics bring what the profile reads.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write the file PROFILE from the topics that are published now.")
    ] = False,
    policy: Annotated[
        bool, typer.Option("--policy", help="Start nothing; print the least access of these nodes as SROS2 policy.")
    ] = False,
    context: Annotated[
        DeploymentContext, typer.Option(help="With --init: where the robot works.")
    ] = DeploymentContext.UNSPECIFIED,
    as_json: Annotated[bool, typer.Option("--json", help="With --check: print only JSON.")] = False,
    apart: Annotated[bool, typer.Option("--apart", help="Give each node a process of its own.")] = False,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log of all nodes; default: tactful-up.log among ROS's logs.")
    ] = None,
) -> None:
    """Start all nodes of a profile and keep them running, until Ctrl-C."""
    if check + init + policy > 1:
        raise TactfulError("up: --check, --init and --policy exclude each other; give one of them")
    if not profile:
        _list_profiles()
        complain("up: name a profile, or the file of one")
        raise typer.Exit(EXIT_BAD_INPUT)
    if importlib.util.find_spec("norm_nodes") is None:
        raise TactfulError("up: the nodes are not installed; run it in a checkout, or source your workspace")
    if init:
        if code := _init(Path(profile), context):
            raise typer.Exit(code)
        return
    loaded = replace(load(profile, namespace), is_apart=apart)
    os.environ |= enclave_environment(loaded.node_namespace, TOOLS)  # of what looks at the graph, before the nodes run
    if policy:
        print(policy_of(loaded), end="")
        _complain_of_security()
        return
    if check:
        if not as_json:
            err.print("Looking at the topics for some seconds.")
        code = _check(loaded, survey_topics(), as_json=as_json)
    else:
        code = run(loaded, log)
    if code:
        raise typer.Exit(code)


def _complain_of_security() -> None:
    """Say why a policy is not enforced, if it is not."""
    if importlib.util.find_spec("sros2") is None:
        complain("policy: not enforced: sros2 is not installed; install it with apt install ros-jazzy-sros2")
    elif os.environ.get("ROS_SECURITY_ENABLE") != "true" or os.environ.get("ROS_SECURITY_STRATEGY") != "Enforce":
        complain("policy: not enforced: set ROS_SECURITY_ENABLE=true and ROS_SECURITY_STRATEGY=Enforce")


def _list_profiles() -> None:
    table = Table("profile", "what for")
    for name, about in shipped().items():
        table.add_row(name, escape(about))
    print_table(table)


def _check(profile: Profile, survey: Survey, *, as_json: bool = False) -> int:
    """Print which topics bring what; return 2 for a bad profile, 1 for an input that cannot be read."""
    effective = effective_parameters(profile)
    for problem in effective.problems:
        complain(f"{profile.source}: {problem}")
    if effective.problems:
        return EXIT_BAD_INPUT
    checked = check_inputs(effective, survey, profile.node_namespace)
    faults = sum(row.is_fault for row in checked)
    absent_models = profile.model_problems()  # with these the nodes start all the same, with less
    unusable = absent_models
    for problem in unusable:
        complain(f"{profile.source}: {problem}")
    for warning in effective.warnings:
        complain(f"{profile.source}: {warning}")
    if as_json:
        print_json([asdict(row) for row in checked])
    else:
        _print_inputs(profile, checked, faults)
    return EXIT_BAD_INPUT if unusable else EXIT_NOT_WELL if faults or effective.warnings else 0


def _print_inputs(profile: Profile, checked: Sequence[CheckedInput], faults: int) -> None:
    table = Table("node", "brings", "topic", "", "found")
    colours = {
        InputVerdict.OK: "green",
        InputVerdict.QUIET: "yellow",
        InputVerdict.MISSING: "yellow",
        InputVerdict.WRONG: "bold red",
    }
    for row in checked:
        remedy = f"\n[bold]fix:[/] {escape(row.remedy)}" if row.remedy else ""
        verdict = f"[{colours[row.verdict]}]{row.verdict}[/]"
        table.add_row(row.input.node, row.input.brings, row.input.topic, verdict, escape(row.found) + remedy)
    if checked:
        print_table(table)
    well = f"all {len(checked)} inputs can be read" if checked else "its nodes read no topic of the robot"
    how = f"{count_of(faults, 'input')} of {len(checked)} not well" if faults else well
    out.print(f"{profile.source}: {how}")


def _init(path: Path, context: DeploymentContext) -> int:
    """Write a profile, and check it; return what the check does."""
    if path.suffix not in {".yaml", ".yml"}:
        raise TactfulError(f"up: {path}: name the file to write, such as my_robot.yaml")
    if path.exists():
        raise TactfulError(f"{path}: exists already; name another file, or remove it")
    err.print("Looking at the topics for some seconds.")
    survey = survey_topics()
    choices = chosen_parts(survey, context)
    write_atomic(path, profile_text(profile_of(choices, survey), choices, survey))
    code = _check(load(str(path)), survey)
    if others := unused(choices, survey):
        out.print(f"{count_of(len(others), 'topic')} not used, listed at the end of {path}")
    if choices.context is DeploymentContext.UNSPECIFIED:
        out.print(UNSPECIFIED_CONTEXT)
    step = "fix what the table names in it or on the robot, and run --check on it" if code else "read it"
    out.print(f"{path} is written: {step}; then run {PROGRAM} up {path}")
    return code

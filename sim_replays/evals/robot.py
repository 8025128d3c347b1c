"""The robot as a solver: an item is played to its nodes, and their decision is the answer."""

from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Literal

import anyio
from inspect_ai.solver import Generate, Solver, TaskState, solver

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import to_plain
from sim_replays.evals.samples import (
    ANSWERS,
    AskedSample,
    SampleAnswer,
    map_to_dataset,
    read_asked_sample,
    register_as_tactful,
)
from sim_replays.items.dataset_files import hash_files
from sim_replays.items.item_bag import write_item_bag
from sim_replays.items.target import Prediction, SuiteError
from sim_replays.runs.players import Player, RobotAnswer, open_players
from sim_replays.runs.robot_config import AnswererConfig, make_answerer_config, make_control_config

SelectorMode = Literal["steps", "random", "none"]


@solver(name="tactful/robot")
@register_as_tactful
def robot(  # noqa: PLR0917
    engine: str = "encoder",
    selector: SelectorMode = "steps",
    transport: Literal["direct", "dds"] = "direct",
    hosts: int = 1,
    without: str = "",
    precedents: str = "",
) -> Solver:
    """Play each item to the nodes of the robot: in this process, or over DDS with `hosts` processes of them.

    `engine` names a model as `tactful models` lists it. The controls keep the steps: `selector=random` asks a model
    that answers at random, and `selector=none` asks none. `without` lists steps to leave out, with commas.
    """
    if selector not in {"steps", "random", "none"} or transport not in {"direct", "dds"}:
        raise SuiteError(
            f"selector={selector}, transport={transport}: is unknown; name steps, random or none, and direct or dds"
        )
    steps = tuple(filter(None, without.split(",")))
    players: SimpleQueue[Player] = SimpleQueue()
    opened_configs: list[AnswererConfig] = []
    lock = anyio.Lock()
    limiter = anyio.CapacityLimiter(hosts)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asked = read_asked_sample(state.metadata)
        async with lock:
            run_config = asked.asking
            full_config = make_answerer_config(engine, run_config, asked.rules, steps, precedents)
            config = make_control_config(full_config, selector)
            if not opened_configs:
                opening = anyio.to_thread.run_sync(open_players, config, transport, hosts, run_config.seed)
                for player in await opening:
                    players.put(player)
                opened_configs.append(config)
        if config != opened_configs[0]:
            raise SuiteError("robot: the samples ask for different settings of the nodes; run one suite at a time")
        robot_answers, bag_sha256 = await anyio.to_thread.run_sync(_play_item, asked, players, limiter=limiter)
        state.store.set(ANSWERS, [to_plain(_make_sample_answer(asked, answer)) for answer in robot_answers])
        state.store.set("bag_sha256", bag_sha256)
        state.store.set("node_settings", config.model_dump(mode="json"))
        state.store.set("encoder_sha256", SentenceEncoder().weights_sha256)
        return state

    return solve


def _play_item(asked: AskedSample, players: SimpleQueue[Player]) -> tuple[list[RobotAnswer], str]:
    """Return the answers of the robot to an item, and the hash of its bag."""
    player = players.get()
    try:
        with TemporaryDirectory(prefix="tactful-") as folder:
            bag = Path(folder) / "item"
            write_item_bag(bag, asked.asking, [asked.item])
            return list(player.play(bag)), hash_files(sorted(bag.glob("*.mcap")))
    finally:
        players.put(player)


def _make_sample_answer(asked: AskedSample, robot_answer: RobotAnswer) -> SampleAnswer:
    """Return an answer of the robot in the dataset's own order of options, with what led to it."""
    answer = robot_answer.answer
    prediction = Prediction(
        id=asked.item.item or asked.item.id,
        task=answer.task,
        outcome=answer.outcome,
        chosen=map_to_dataset(asked.item, answer.query_id, answer.chosen),
        text=answer.text,
        reason=answer.reason,
    )
    details = {"answer": to_plain(answer), "took_s": robot_answer.took_s}
    if robot_answer.decision:
        details["decision"] = to_plain(robot_answer.decision)
    return SampleAnswer(prediction=prediction, details=details)

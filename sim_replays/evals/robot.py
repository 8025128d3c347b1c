"""The robot as a solver: an item is played to its nodes, and what they decide is the answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Literal

import anyio
from inspect_ai.solver import Generate, Solver, TaskState, solver

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import to_plain
from sim_replays.evals.samples import ANSWERS, AskedSample, SampleAnswer, asked_in, in_dataset_order, tactful
from sim_replays.items.dataset_files import sha256_of_files
from sim_replays.items.item_bag import build
from sim_replays.items.target import Prediction, SuiteError
from sim_replays.runs.players import Player, RobotAnswer, open_players
from sim_replays.runs.robot_config import AnswererConfig, config_of, controlled

Selector = Literal["steps", "random", "none"]


@solver(name="tactful/robot")
@tactful
def robot(  # noqa: PLR0917
    engine: str = "encoder",
    selector: Selector = "steps",
    transport: Literal["direct", "dds"] = "direct",
    hosts: int = 1,
    without: str = "",
    precedents: str = "",
) -> Solver:
    """Play each item to the robot's nodes: in this process, or over DDS with `hosts` processes of them.

    `engine` names a model as `tactful models` lists it. The controls keep the steps: `selector=random` asks a model
    that answers at random, and `selector=none` asks none. `without` lists steps to leave out, by commas.
    """
    if selector not in {"steps", "random", "none"} or transport not in {"direct", "dds"}:
        raise SuiteError(f"selector={selector}, transport={transport}: name steps, random or none, and direct or dds")
    steps = tuple(filter(None, without.split(",")))
    players: SimpleQueue[Player] = SimpleQueue()
    opened: list[AnswererConfig] = []
    lock, limit = anyio.Lock(), anyio.CapacityLimiter(hosts)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asked = asked_in(state.metadata)
        async with lock:
            config = controlled(config_of(engine, asked.asking, asked.rules, steps, precedents), selector)
            if not opened:
                for player in await anyio.to_thread.run_sync(open_players, config, transport, hosts, asked.asking.seed):
                    players.put(player)
                opened.append(config)
        if config != opened[0]:
            raise SuiteError("robot: the samples ask for different settings of the nodes; run one suite at a time")
        robot_answers = await anyio.to_thread.run_sync(_play, asked, players, limiter=limit)
        answers, digest = robot_answers
        state.store.set(ANSWERS, [to_plain(_in_order(asked, answer)) for answer in answers])
        state.store.set("bag_sha256", digest)
        state.store.set("node_settings", config.model_dump(mode="json"))
        state.store.set("encoder_sha256", SentenceEncoder().weights_sha256)
        return state

    return solve


def _play(asked: AskedSample, players: SimpleQueue[Player]) -> tuple[list[RobotAnswer], str]:
    with _one_of(players) as player, TemporaryDirectory(prefix="tactful-") as folder:
        bag = Path(folder) / "item"
        build(bag, asked.asking, [asked.item])
        wanted = {query.query_id for query in asked.item.queries}
        return list(player.play(bag, wanted)), sha256_of_files(sorted(bag.glob("*.mcap")))


@contextmanager
def _one_of(players: SimpleQueue[Player]) -> Iterator[Player]:
    player = players.get()
    try:
        yield player
    finally:
        players.put(player)


def _in_order(asked: AskedSample, given: RobotAnswer) -> SampleAnswer:
    answer = given.answer
    prediction = Prediction(
        id=asked.item.item or asked.item.id,
        task=answer.task,
        outcome=answer.outcome,
        chosen=in_dataset_order(asked.item, answer.query_id, answer.chosen),
        text=answer.text,
        reason=answer.reason,
    )
    details = {"answer": to_plain(answer), "took_s": given.took_s}
    if given.decision:
        details["decision"] = to_plain(given.decision)
    if given.requests:
        details["requests"] = [to_plain(request) for request in given.requests]
    return SampleAnswer(prediction=prediction, details=details)

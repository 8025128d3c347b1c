"""Share a run among processes of this machine or of a Ray cluster, episode by episode.

Episodes are independent, so the number of processes changes no answer.
"""

import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, get_args

from norm_core.bags.reader import BagReader
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import from_json, to_json
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.extras import install_command
from norm_monitor.replay.node_driver import TransportError
from sim_replays.items.item_bag import EPISODES, QUERIES
from sim_replays.runs.asked_model import ModelOptions
from sim_replays.runs.transport import AnswererConfig, Dds, Direct, TimedAnswer

END_TIMEOUT_S = 10.0
DIRECT, DDS = "direct", "dds"
# Episodes per block. On Ray a block is a task, and the next run repeats the task of a lost machine.
EPISODES_A_BLOCK = 8


@record
class Block:
    """Wanted queries of episodes that follow one another, and the time in the bag from the first to the last."""

    query_ids: tuple[str, ...]
    span_ns: tuple[int, int] | None  # None for the whole bag, which then is one episode


@dataclass(frozen=True)
class Shards:
    """Play each share in its own process. The next run asks again what a share leaves unanswered."""

    config: AnswererConfig
    count: int
    how: str = DIRECT
    options: ModelOptions = field(default_factory=ModelOptions)

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Yield all answers as they come. Reports a failed share after the others are done."""
        dealt = shares(bag, wanted, self.count)
        settings, context = settings_of(self.config, self.how, self.options), _context()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tactful-")))
            workers: dict[Connection, tuple[BaseProcess, Path]] = {}
            for number, share in enumerate(dealt):
                answers, sender = context.Pipe(duplex=False)
                log = folder / f"{number}.log"
                log.touch()
                # A forked worker would hold the ends of those before it, and so hide that their reader is gone.
                others = (*workers, answers) if context.get_start_method() == "fork" else ()
                worker = context.Process(target=_work, args=(settings, bag, share, sender, log, others), daemon=True)
                worker.start()
                sender.close()
                stack.callback(_end, worker, answers)
                workers[answers] = worker, log
            open_ends = list(workers)
            while open_ends:
                for answers in wait(open_ends):
                    assert isinstance(answers, Connection)
                    try:
                        line = answers.recv()
                    except (EOFError, OSError):  # it ended, or was killed within an answer
                        open_ends.remove(answers)
                        continue
                    yield from_json(TimedAnswer, line)
            failed = [words for started in workers.values() if (words := _last_words(*started))]
            if failed:
                raise TransportError(f"{len(failed)} of {len(workers)} shards failed: {'; '.join(failed)}")


def _context() -> Any:
    """Return how processes begin: as copies of this one with what it has loaded, where no other thread is in it."""
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        return multiprocessing.get_context("spawn")
    SentenceEncoder().encode(["What is loaded here is loaded in no copy."])
    return multiprocessing.get_context("fork")


def blocks(bag: Path, wanted: Collection[str], size: int | None = None, *, shares: int = 1) -> list[Block]:
    """Return the wanted queries in blocks of `size` whole episodes; by default of a size that few shares share well."""
    episodes: dict[str, list[str]] = {}
    edges_ns: list[int] = []  # the begin and the end of each episode
    begins: list[int] = []  # where those of wanted episodes stand in these
    with BagReader(bag) as reader:
        for message in reader.messages({topic.topic for topic in reader.topics} & {EPISODES} | {QUERIES}):
            if message.topic == EPISODES:
                edges_ns.append(message.stamp_ns)
                continue
            query = reader.decode(message)
            if query.query_id in wanted:
                if query.episode_id not in episodes:
                    begins.append(len(edges_ns) - 1)
                episodes.setdefault(query.episode_id, []).append(query.query_id)
    size = size or max(1, min(EPISODES_A_BLOCK, -(-len(episodes) // (4 * shares))))
    names, blocks = list(episodes.values()), []
    for first in range(0, len(names), size):
        begin, end = begins[first], begins[first : first + size][-1] + 1
        span_ns = (edges_ns[begin], edges_ns[end] + 1) if begin >= 0 and end < len(edges_ns) else None
        blocks.append(Block(query_ids=tuple(chain(*names[first : first + size])), span_ns=span_ns))
    return blocks


def shares(bag: Path, wanted: Collection[str], count: int) -> list[list[Block]]:
    """Deal whole episodes out to non-empty shares."""
    dealt: list[list[Block]] = [[] for _ in range(count)]
    for number, block in enumerate(blocks(bag, wanted, shares=count)):
        dealt[number % count].append(block)
    return [share for share in dealt if share]


def transport(config: AnswererConfig, how: str, options: ModelOptions | None = None) -> Dds | Direct:
    """Create the transport of one share."""
    return Dds(config) if how == DDS else Direct(config, options=options)


def settings_of(config: AnswererConfig, how: str, options: ModelOptions) -> dict[str, Any]:
    """The settings of a share, for another process."""
    return {
        "kind": type(config).__name__,
        "config": config.model_dump(mode="json"),
        "how": how,
        "options": options.model_dump(mode="json"),
    }


def transport_of(settings: dict[str, Any]) -> Dds | Direct:
    """Create the transport of a share from its settings."""
    kind = next(kind for kind in get_args(AnswererConfig) if kind.__name__ == settings["kind"])
    config = check_config(kind, settings["config"], "shard")
    options = check_config(ModelOptions, settings["options"], "shard")
    return transport(config, settings["how"], options)


def play_share(share: Dds | Direct, bag: Path, parts: Sequence[Block]) -> Iterator[str]:
    """Yield the answers as lines, because records travel only between equal Python versions."""
    wanted = frozenset(name for block in parts for name in block.query_ids)
    spans_ns = [block.span_ns for block in parts if block.span_ns]
    if isinstance(share, Direct) and len(spans_ns) == len(parts):
        yield from map(to_json, share.play(bag, wanted, spans_ns))
    else:
        yield from map(to_json, share.play(bag, wanted))


def _work(  # noqa: PLR0917
    settings: dict[str, Any], bag: Path, parts: Sequence[Block], answers: Connection, log: Path,
    others: Sequence[Connection],
) -> None:  # fmt: skip
    """Play one share in a process of its own, which leaves what it has to say in a log."""
    os.setsid()
    for other in others:
        other.close()
    sys.stdout = sys.stderr = log.open("w", encoding="utf-8")
    for stream in (1, 2):
        os.dup2(sys.stderr.fileno(), stream)
    status = 1
    try:
        for line in play_share(transport_of(settings), bag, parts):
            answers.send(line)
        status = 0
    except TransportError as error:
        print(error)
        status = error.exit_code
    except BrokenPipeError:  # the reader is gone, and has the earlier answers
        pass
    except BaseException:  # noqa: BLE001  nothing of the process that was copied may run on
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status)


def _last_words(worker: BaseProcess, log: Path) -> str:
    worker.join(END_TIMEOUT_S)
    if not worker.exitcode:
        return ""
    words = " ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:])
    return words or f"it ended with {worker.exitcode} and said nothing"


def _end(worker: BaseProcess, answers: Connection) -> None:
    answers.close()
    worker.terminate()
    worker.join(END_TIMEOUT_S)
    worker.kill()
    worker.join()


LOCAL = "local"


@dataclass(frozen=True)
class RayShards:
    """Actors that load the model once and answer a few episodes at a time."""

    config: AnswererConfig
    address: str
    count: int
    how: str
    options: ModelOptions = field(default_factory=ModelOptions)

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Yield the answers as tasks finish."""
        try:
            import ray  # noqa: PLC0415
            from ray.util import ActorPool  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(f"ray is not installed here; install it with {install_command('ray')}") from error
        began = not ray.is_initialized()
        if began:
            address = None if self.address == LOCAL else self.address
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        try:
            tasks = blocks(bag, wanted, EPISODES_A_BLOCK)
            actor_class, settings = ray.remote(_Actor), settings_of(self.config, self.how, self.options)
            pool: Any = ActorPool([actor_class.remote(settings) for _ in range(min(self.count, len(tasks)))])

            def submit(actor: Any, block: Block) -> Any:
                return actor.play.remote(str(bag.resolve()), to_json(block))

            for lines in pool.map_unordered(submit, tasks):
                yield from (from_json(TimedAnswer, line) for line in lines)
        except ray.exceptions.RayError as error:
            raise TransportError(f"the Ray cluster failed: {error}") from error
        finally:
            if began:
                ray.shutdown()


class _Actor:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._transport = transport_of(settings)

    def play(self, bag: str, block: str) -> list[str]:
        """Return the answers to a block's queries as lines."""
        return list(play_share(self._transport, Path(bag), [from_json(Block, block)]))

"""Share a run among processes of this machine or of a Ray cluster, episode by episode.

Episodes are independent, so the number of processes changes no answer.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, get_args

from norm_core.bags.reader import BagReader
from norm_core.records.json_codec import from_json, to_json
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.extras import install_command
from sim_replays.drivers.node_driver import TransportError
from sim_replays.drivers.node_process import end_process
from sim_replays.runs.asked_model import ModelOptions
from sim_replays.runs.items.item_bag import QUERIES
from sim_replays.runs.transport import (
    AnswererConfig,
    Dds,
    Direct,
    TimedAnswer,
)

END_TIMEOUT_S, LOOK_S = 10.0, 0.2
DIRECT, DDS = "direct", "dds"


class Shards:
    """Play each share in its own process. The next run asks again what a share leaves unanswered."""

    def __init__(
        self,
        config: AnswererConfig,
        count: int,
        how: str = DIRECT,
        options: ModelOptions | None = None,
    ) -> None:
        self._config, self._count = config, count
        self._settings = settings_of(config, how, options or ModelOptions())

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Yield all answers as they come. Reports a failed share after the others are done."""
        lines: SimpleQueue[str] = SimpleQueue()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tactful-")))
            (folder / "asked.json").write_text(json.dumps(self._settings), encoding="utf-8")
            listeners: list[Thread] = []
            workers: list[tuple[subprocess.Popen[str], IO[str]]] = []
            for number, share in enumerate(shares(bag, wanted, self._count)):
                path = folder / f"wanted-{number}.json"
                path.write_text(json.dumps(share), encoding="utf-8")
                log = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
                command = [sys.executable, "-m", "sim_replays.runs.shards", str(bag), str(path)]
                worker = subprocess.Popen(
                    [*command, str(folder / "asked.json")],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
                stack.callback(_end, worker)
                workers.append((worker, log))
                listeners.append(Thread(target=_listen, args=(worker, lines), daemon=True))
                listeners[-1].start()
            while any(listener.is_alive() for listener in listeners) or not lines.empty():
                try:
                    yield from_json(TimedAnswer, lines.get(timeout=LOOK_S))
                except Empty:
                    continue
            failed = [_last_words(*started) for started in workers if started[0].wait(END_TIMEOUT_S)]
            if failed:
                raise TransportError(f"{len(failed)} of {len(workers)} shards failed: {'; '.join(failed)}")


def shares(bag: Path, wanted: Collection[str], count: int) -> list[list[str]]:
    """Deal whole episodes out to non-empty shares of queries."""
    episodes: dict[str, list[str]] = {}
    with BagReader(bag) as reader:
        for message in reader.messages([QUERIES]):
            query = reader.decode(message)
            if query.query_id in wanted:
                episodes.setdefault(query.episode_id, []).append(query.query_id)
    dealt: list[list[str]] = [[] for _ in range(min(count, len(episodes)))]
    for number, queries in enumerate(episodes.values()):
        dealt[number % len(dealt)] += queries
    return dealt


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


def main(arguments: Sequence[str]) -> int:
    """Play one share: the bag, the file of its queries and the file of settings. Prints the answers."""
    bag, wanted, asked = map(Path, arguments)
    share = transport_of(json.loads(asked.read_text(encoding="utf-8")))
    queries = frozenset(json.loads(wanted.read_text(encoding="utf-8")))
    try:
        for timed in share.play(bag, queries):
            print(to_json(timed), flush=True)
    except TransportError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader is gone, and has the earlier answers
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _listen(worker: subprocess.Popen[str], lines: SimpleQueue[str]) -> None:
    assert worker.stdout
    for line in worker.stdout:
        if line.endswith("\n"):  # otherwise the process was killed in the middle of a line
            lines.put(line)


def _last_words(worker: subprocess.Popen[str], log: IO[str]) -> str:
    log.seek(0)
    words = " ".join(log.read().strip().splitlines()[-3:])
    return words or f"it ended with {worker.returncode} and said nothing"


def _end(worker: subprocess.Popen[str]) -> None:
    end_process(worker, END_TIMEOUT_S)
    if worker.stdout:
        worker.stdout.close()


LOCAL = "local"
# Episodes per task. The next run repeats the task of a lost machine.
EPISODES_A_TASK = 8


class RayShards:
    """Actors that load the model once and answer a few episodes at a time."""

    def __init__(
        self, config: AnswererConfig, address: str, count: int, how: str, options: ModelOptions | None = None
    ) -> None:
        self._address, self._count = address, count
        self._settings = settings_of(config, how, options or ModelOptions())

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Yield the answers as tasks finish."""
        try:
            import ray  # noqa: PLC0415
            from ray.util import ActorPool  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(f"ray is not installed here; install it with {install_command('ray')}") from error
        began = not ray.is_initialized()
        if began:
            address = None if self._address == LOCAL else self._address
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        try:
            tasks = shares(bag, wanted, max(self._count, -(-len(wanted) // EPISODES_A_TASK)))
            made = ray.remote(_Actor)
            pool: Any = ActorPool([made.remote(self._settings) for _ in range(min(self._count, len(tasks)))])

            def submit(actor: Any, share: list[str]) -> Any:
                return actor.play.remote(str(bag.resolve()), share)

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

    def play(self, bag: str, share: list[str]) -> list[str]:
        """Return lines, because records travel only between equal Python versions."""
        return [to_json(timed) for timed in self._transport.play(Path(bag), frozenset(share))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

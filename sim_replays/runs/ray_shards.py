"""Share a run among the machines of a Ray cluster, which see run folder and model at the same paths."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from norm_core.records.json_codec import from_json, to_json
from norm_core.runtime.config import ConfigError
from norm_core.runtime.extras import install_command
from sim_replays.drivers.node_driver import TransportError
from sim_replays.runs.answerers import AnswererConfig
from sim_replays.runs.shards import files_of, plain_of, shares, transport
from sim_replays.runs.transport import TimedAnswer

LOCAL = "local"
# Episodes per task. The next run repeats the task of a lost machine.
EPISODES_A_TASK = 8


class RayShards:
    """Actors that load the model once and answer a few episodes at a time."""

    def __init__(self, config: AnswererConfig, address: str, count: int, how: str) -> None:
        self._config, self._address, self._count, self._how = config, address, count, how

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
            plain = plain_of(self._config)
            made = ray.remote(_Actor)
            pool: Any = ActorPool([made.remote(plain, self._how) for _ in range(min(self._count, len(tasks)))])

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
    def __init__(self, config: dict[str, Any], how: str) -> None:
        self._transport = transport(files_of(config), how)

    def play(self, bag: str, share: list[str]) -> list[str]:
        """Return lines, because records travel only between equal Python versions."""
        return [to_json(timed) for timed in self._transport.play(Path(bag), frozenset(share))]

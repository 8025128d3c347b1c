"""Run the monitor on many bags side by side, by Ray Data."""

import os
import sys
import warnings
from collections.abc import Generator, Mapping
from contextlib import redirect_stdout
from pathlib import Path

from norm_core.records.json_codec import from_json, to_json
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import ExtraMissingError, format_install_command, is_installed
from norm_monitor.replay.flag_runs import BagFlags
from tactful_cli.flag_watch import BagRun, FlagOptions, run_bag

THIS_MACHINE = "auto"
# Memory of a worker: the models of sentences and talk, and Whisper.
_WORKER_MEMORY_BYTES = 1_500_000_000
# A bag whose worker is lost as often is left out, because the bag itself may end its worker.
_MAX_RETRIES = 3
_RAY_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_LOG_LEVEL": "ERROR", "RAY_BACKEND_LOG_LEVEL": "fatal"}


class RayWorker:
    """An actor of Ray Data, whose process loads each model once."""

    def __init__(self, options: FlagOptions) -> None:
        self._options = options

    def __call__(self, bag: dict[str, str]) -> dict[str, str]:
        """Run the monitor on a bag."""
        return {"name": bag["name"], "run": to_json(run_bag(self._options, bag["name"], Path(bag["path"])))}


def run_bags_on_ray(bags: Mapping[str, Path], options: FlagOptions, address: str) -> Generator[BagRun]:
    """Yield the runs of bags in order. Ray starts lost workers again, and runs their bags again."""
    if not is_installed("ray"):
        raise ExtraMissingError(f"flags: --ray: the package ray is missing; run {format_install_command('ray')}")
    os.environ.update(_RAY_ENVIRONMENT)
    import ray.data  # noqa: PLC0415  of the extra

    try:
        ray.init(
            address="local" if address == THIS_MACHINE else address,
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise TactfulError(
            f"--ray {address}: cannot be used: {error}; name a running cluster, or {THIS_MACHINE}"
        ) from error
    try:
        resources = ray.cluster_resources()
        worker_count = int(min(resources["CPU"], resources["memory"] // _WORKER_MEMORY_BYTES))
        if not worker_count:
            raise TactfulError(
                f"--ray {address}: has no room for a worker, which needs a core and "
                f"{_WORKER_MEMORY_BYTES / 1e9:.1f} GB; add machines, or leave --ray out"
            )
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        context.max_errored_blocks = -1
        waiting = iter(bags)
        rows = [{"name": name, "path": str(path.resolve())} for name, path in bags.items()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # up to Ray 2.64 there is no other way to limit retries
            runs = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                RayWorker,
                fn_constructor_args=(options,),
                compute=ray.data.ActorPoolStrategy(min_size=1, max_size=worker_count),
                num_cpus=1,
                memory=_WORKER_MEMORY_BYTES,
                max_task_retries=_MAX_RETRIES,
            )
        tables = iter(runs.iter_batches(batch_size=None, prefetch_batches=0, batch_format="pyarrow"))
        while True:
            with redirect_stdout(sys.stderr):  # where Ray prints that a worker was lost
                table = next(tables, None)
            if table is None:
                break
            for row in table.to_pylist():
                while (name := next(waiting)) != row["name"]:
                    yield _report_lost(name)
                yield from_json(BagRun, row["run"])
        yield from map(_report_lost, waiting)
    finally:
        ray.shutdown()


def _report_lost(name: str) -> BagRun:
    problem = f"its worker ended {_MAX_RETRIES + 1} times; run this bag alone, without --ray, to see why"
    return BagRun(result=BagFlags(bag=name, problem=problem))

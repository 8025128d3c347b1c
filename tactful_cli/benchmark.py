"""`tactful benchmark`: measure what is claimed about speed, each figure beside a peer of the same run."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from tactful_cli.extras import ROOT
from tactful_cli.verb import AsJson, single

app = single()


@app.command()
def benchmark(  # noqa: PLR0917
    quick: Annotated[bool, typer.Option("--quick", help="What fits into five minutes, with fewer runs.")] = False,
    gpu: Annotated[bool, typer.Option("--gpu", help="Measure models on this GPU: four minutes, no network.")] = False,
    tiny: Annotated[bool, typer.Option("--tiny", help="With --gpu: try it on the CPU, in four minutes.")] = False,
    wheels: Annotated[
        Path | None, typer.Option(exists=True, help="With --gpu: folder of wheels to use without installing them.")
    ] = None,
    only: Annotated[str, typer.Option(metavar="PARTS", help="Some parts, with commas; a wrong name lists them.")] = "",
    out: Annotated[Path | None, typer.Option(help="Folder of results [scratch/benchmark].")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the product's speed, each figure beside that of a peer in the same run.

    A part is one thing that is measured, such as `camera` or `decision`. A ratio is a figure over that of its peer.
    """
    if not (ROOT / "benchmarks").is_dir():
        raise TactfulError("benchmark: this is an installed package; run it in a checkout")
    if wrong := [name for name, is_given in (("--tiny", tiny), ("--wheels", wheels)) if is_given and not gpu]:
        raise TactfulError(f"{wrong[0]}: is for --gpu alone; add that, or leave it out")
    if gpu and quick:
        raise TactfulError("--quick: the benchmark of a GPU takes four minutes anyway; leave it out")
    python = sys.executable
    tested = Path(os.environ.get("TACTFUL_TRANSFORMERS_VENV", ROOT / ".venv-transformers"), "bin", "python")
    if tiny and find_spec("torch") is None and tested.is_file():
        python = str(tested)  # that of the tests has torch, without CUDA
    command = [python, "-m", "benchmarks.gpu" if gpu else "benchmarks"]
    command += [option for option, is_given in (("--quick", quick), ("--tiny", tiny), ("--json", as_json)) if is_given]
    for option, value in (("--wheels", wheels), ("--only", only), ("--out", out)):
        command += [option, str(value.absolute() if isinstance(value, Path) else value)] if value else []
    os.chdir(ROOT)
    os.execv(python, command)  # an interrupt then ends the steps, and not this process alone

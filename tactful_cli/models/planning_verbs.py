"""`tactful models choose` and `setup`: what fits a machine, and how a model gets there."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.models.arguments import Name
from tactful_cli.verb import AsJson


def choose_models(
    gpu_memory: Annotated[
        float | None, typer.Option(min=0.5, metavar="GB", help="As if the GPU had so much memory, all of it free.")
    ] = None,
    machine: Annotated[
        Path | None, typer.Option(exists=True, help="Description of another machine, as --json prints it.")
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Also show what cannot run here, and why.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rank the models that fit this machine, best first."""
    from tactful_cli.models.choose import describe, machine_of, plain_ranking, rank, table_of  # noqa: PLC0415  as above

    found = machine_of(machine, gpu_memory)
    choices = rank(found)
    if as_json:
        print_json(plain_ranking(found, choices))
        return
    err.print(describe(found), soft_wrap=True)
    for fault in found.faults:
        complain(fault)
    print_table(table_of(choices, show_all))
    hidden = sum(not choice.runs for choice in choices)
    err.print(
        f"~ estimated; ?: not known; {PROGRAM} models setup MODEL measures. "
        + (f"{count_of(hidden, 'model')} cannot run here; --all shows why." if hidden and not show_all else ""),
        soft_wrap=True,
    )


def setup_model(
    name: Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False,
    machine: Annotated[
        Path | None, typer.Option(exists=True, help="With --dry-run: description of another machine.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Install, pull, ask and measure a model, or the variant that fits. Steps that are done are skipped."""
    from tactful_cli.models.choose import describe, machine_of  # noqa: PLC0415  as above
    from tactful_cli.models.judge_unit import describe_judge  # noqa: PLC0415  as above
    from tactful_cli.models.set_up import better_variant, pick_variant, profile_lines, set_up, steps_of  # noqa: PLC0415  as above
    from tactful_cli.up.profile import SHIPPED  # noqa: PLC0415  as above

    if machine and not dry_run:
        raise ConfigError("--machine: only with --dry-run; a model is set up on this machine")
    found = machine_of(machine)
    if (fitting := pick_variant(name, found)) != name:
        err.print(f"{name} cannot run here as it is; taking {fitting}")
        name = fitting
    choice, steps = steps_of(name, found)
    if choice.caution and not choice.obstacle:
        better = better_variant(choice, found)
        err.print(f"{name}: {choice.caution}{f'; or take {better}' if better else ''}", soft_wrap=True)
    if dry_run:
        if as_json:
            print_json({"machine": asdict(found), "choice": asdict(choice), "steps": [asdict(step) for step in steps]})
            return
        out.print(describe(found), soft_wrap=True)
        for fault in found.faults:
            complain(fault)
        free = f" of {choice.free_mb:.0f} MB free" if choice.free_mb else ""
        peak = f"{'about ' if choice.is_estimate else ''}{choice.peak_mb:.0f} MB{free}" if choice.peak_mb else "unknown"
        out.print(
            f"{name}: {choice.engine}, {choice.quantization}, on the {choice.device}; memory at its peak: {peak}",
            soft_wrap=True,
        )
        if choice.obstacle:
            complain(f"{name}: {choice.obstacle}")
            raise typer.Exit(1)
        for number, step in enumerate(steps, 1):
            size = f", {step.size_mb:.0f} MB to download" if step.size_mb and not step.done else ""
            done = ", done" if step.done else ""
            out.print(f"{number}. {step.title}{size}{done}\n   {step.command}", soft_wrap=True, markup=False)
        return
    measured = set_up(name, found)
    if as_json:
        print_json(measured)
        return
    out.print(
        f"{name} on {measured['on']}: loads in {measured['load_s']:.1f} s, first answer in "
        f"{measured['first_answer_s']:.2f} s, {measured['questions_per_s']:.1f} questions a second",
        soft_wrap=True,
    )
    out.print(f"takes {measured['load_mb']:.0f} MB loaded, at most {measured['peak_mb']:.0f} MB")
    for each in measured["answers"]:
        out.print(f"{each['question']} {each['answer']} ({'right' if each['right'] else 'wrong'})", markup=False)
    out.print(describe_judge(measured["judge"]), soft_wrap=True, markup=False)
    out.print(f"manifest: {measured['manifest_path']}", soft_wrap=True)
    out.print(f"In your profile:\n{profile_lines(name)}", markup=False)
    err.print(
        "Where the profile has a section /tactful/monitor, add the inner lines to it. "
        f"{PROGRAM} up my_robot.yaml --init writes a profile; the shipped ones to copy are in {SHIPPED}",
        soft_wrap=True,
    )
    if found.gpu_environment:
        bound = " ".join(f"{name}={value}" for name, value in found.gpu_environment.items())
        err.print(f"The model was put on one of several GPUs. Start Tactful with: export {bound}", soft_wrap=True)

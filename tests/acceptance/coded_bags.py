"""A study whose coders mind cheer after bad news and do not mind a robot that stays silent, in bags of its own."""

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from norm_core.runtime.errors import TactfulError
from tactful_cli.main import app
from tests.acceptance.conversation_bag import Said, robot, user, write_talk

SESSION_S = 110.0
SORROWS = (
    "My mother died last week, I am only here for her picture.",
    "I lost my job this morning and I do not know what to do.",
    "My dog was run over yesterday, I cannot stop crying.",
)
# When the robot answers each with cheer, in seconds; the coders mark these.
CHEER_S = (11, 41, 71)
CHEER = "".join(f"error,emotions,{at_s},{at_s + 3}\n" for at_s in CHEER_S)


def run(*arguments: object) -> str:
    """Run a command that succeeds, and return what it prints."""
    result: Any = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    return str(result.stdout)


def refusal(*arguments: object) -> str:
    """Run a command that is refused, and return what `main` prints to the user."""
    result: Any = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, TactfulError), result.output
    return str(result.exception)


def talk() -> list[Said]:
    """Three times cheer after bad news, and then a question that nobody answers."""
    turns = [robot(0, 2, "Hello, welcome to the museum.")]
    for sorrow, at_s in zip(SORROWS, CHEER_S, strict=True):
        turns += [user(at_s - 4, at_s - 1, sorrow), robot(at_s, at_s + 3, "Great! Do you want to hear a joke?")]
        turns += [user(at_s + 5, at_s + 7, "What is the way to the garden?")]
    return turns


def bagged_study(folder: Path, sessions: int, *coders: str) -> Path:
    """Make the study with its bags and logs, by the study's own commands."""
    options = [part for coder in coders for part in ("--coder", coder)]
    run("study", "init", folder, "--name", "museum", *options)
    (folder / "bags").mkdir()
    for number in range(1, sessions + 1):
        bag = write_talk(folder / "bags" / f"S{number}", talk(), SESSION_S)
        run("study", "add", folder, bag, "--session", f"S{number}", "--as-recorded")
    return folder


def import_coding(folder: Path, session: str, coder: str, rows: str) -> None:
    """Import a coder's table of one session."""
    file = folder / f"{session}_{coder}.csv"
    file.write_text(f"polarity,attribute,start_s,end_s\n{rows}", encoding="utf-8")
    run("study", "import", folder / "sessions" / session, file, "--coder", coder, "--complete")

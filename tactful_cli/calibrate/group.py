"""`tactful calibrate`: fit on labels what the robot's decisions rest on, and say how well it holds."""

from pathlib import Path
from typing import Annotated

import typer

from calibration.sensors.alignment import Method
from tactful_cli.verb import AsJson, Language, RobotTopics, WhisperModel, WordsTopics, group

app = group("Fit weights and thresholds on labels, and measure them on what they were not fitted on.")


@app.callback()
def calibrate() -> None:
    """Fit on labels."""


@app.command("judge")
def judge(  # noqa: PLR0917
    model: Annotated[str, typer.Option("--model", help="The judge's model (`tactful models list`).")],
    labels: Annotated[
        Path, typer.Option("--labels", help="Folder of labelled encounters, or with one folder of them a writer.")
    ],
    limit: Annotated[
        int, typer.Option(min=0, help="Most units to ask about, half of them labelled; 0: all labelled ones.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the calibration, for judge.calibration.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="Draw how far the judge's probability of an error holds.")
    ] = None,
    cache_folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Cache of answers; an interrupted run resumes from it.")
    ] = Path("scratch/judge_answers"),
    as_json: AsJson = False,
) -> None:
    """Fit a model's temperature and its weight beside the facts, and measure what it adds."""
    from tactful_cli.calibrate.judge import JudgeOptions, calibrate  # noqa: PLC0415  it takes a second to import

    options = JudgeOptions(
        model=model, labels=labels, limit=limit, seed=seed, cache_folder=cache_folder, write=write, plot=plot
    )
    calibrate(options, as_json)


@app.command("selector")
def selector(  # noqa: PLR0917
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of `bench run` by one selector.")],
    write: Annotated[
        str, typer.Option("--write", metavar="NAME", help="Write the calibration: a bare name, or a file.")
    ] = "",
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="Draw reliability before and after, and risk by coverage.")
    ] = None,
    coverage: Annotated[
        list[float] | None,
        typer.Option(min=0.5, max=0.99, help="Share of cases in which a set holds the right option; repeatable."),
    ] = None,
    control: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Run of a control (blind, swapped others) to show beside; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit how far the selector's probabilities hold, and measure it on images that are left out."""
    from tactful_cli.calibrate.selector import SelectorOptions, calibrate  # noqa: PLC0415  it takes a second to import

    options = SelectorOptions(
        runs=tuple(runs),
        controls=tuple(control or ()),
        coverages=tuple(coverage or (0.8, 0.9, 0.95)),
        write=write,
        plot=plot,
    )
    calibrate(options, as_json)


@app.command("thresholds")
def thresholds(  # noqa: PLR0917
    studies: Annotated[
        list[Path] | None, typer.Argument(metavar="STUDY", help="Folders of studies whose sessions are coded.")
    ] = None,
    bags: Annotated[
        list[Path] | None, typer.Option("--bag", help="A bag that is labelled in a file; give --labels for each.")
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option("--labels", metavar="FILE.csv", help="Labelled intervals of a --bag, in the same order."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--false-errors-per-hour", help="The most false errors an hour that you accept.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="The least share of flagged errors that coders bear out.")
    ] = None,
    topic: Annotated[str, typer.Option(help="Audio topic; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    words_topic: WordsTopics = None,
    language: Language = "en",
    whisper: WhisperModel = "",
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the run; an interrupted run resumes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed that draws which sessions shape the thresholds.")] = 0,
    write: Annotated[
        str, typer.Option("--write", metavar="NAME", help="Write the thresholds, for fusion.operating_point.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Fit the thresholds of your site to a target, on bags that your coders labelled."""
    from calibration.threshold_fit import ThresholdTarget  # noqa: PLC0415
    from norm_monitor.senses.speech.whisper import WhisperConfig  # noqa: PLC0415
    from tactful_cli.calibrate.thresholds import ThresholdOptions, calibrate  # noqa: PLC0415  it takes a second

    options = ThresholdOptions(
        studies=tuple(studies or ()),
        bags=tuple(bags or ()),
        labels=tuple(labels or ()),
        target=ThresholdTarget(false_errors_per_hour=rate, precision=precision),
        topic=topic,
        robot_topics=tuple(robot_topic or ()),
        words_topics=tuple(words_topic or ()),
        whisper=WhisperConfig(model=whisper, language=language),
        folder=folder,
        seed=seed,
        write=write,
    )
    calibrate(options, as_json)


@app.command("sensors")
def sensors(  # noqa: PLR0917
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="rosbag2 folder with the sensors' topics.")],
    methods: Annotated[
        list[Method] | None,
        typer.Option(
            "--from",
            help="clap: hands that close, seen and heard; flash: a light that is switched with a click or a beep; "
            "speech: the robot's own voice (default). Repeatable.",
        ),
    ] = None,
    topic: Annotated[str, typer.Option(help="Audio topic of the bag; default: the only one.")] = "",
    camera_topic: Annotated[str, typer.Option(help="Camera topic of the bag; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    channel: Annotated[int, typer.Option(min=-1, max=7, help="Audio channel to use; -1: the mean of all.")] = 0,
    write: Annotated[
        str, typer.Option("--write", metavar="NAME|FILE", help="Write the offsets, for sensor_offsets of the nodes.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Measure how far microphone, camera and robot speech lie apart. Exits with 1 where it cannot tell."""
    from tactful_cli.calibrate.sensors import SensorOptions, calibrate  # noqa: PLC0415  it takes a second to import

    options = SensorOptions(
        bag=bag,
        methods=tuple(dict.fromkeys(methods or [Method.SPEECH])),
        topic=topic,
        camera_topic=camera_topic,
        robot_topics=tuple(robot_topic or ()),
        channel=channel,
        write=write,
    )
    calibrate(options, as_json)

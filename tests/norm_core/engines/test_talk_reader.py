"""The talk reader on a tiny model of random weights: its graph against plain arithmetic, and the lines of a talk."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.reader.reader_setup import write_reader
from norm_core.engines.talk_reader import HEAD_OUTPUTS, ReadTalk, TalkReader, open_reader
from norm_core.models.reader_folder import MANIFEST, ReaderManifest, write_manifest
from norm_core.models.store import WeightsError, hash_file
from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.errors import TactfulError
from tests.norm_core.models.tiny_decoder import WIDTH, Tensors, heads_of, write_adapter, write_tiny_decoder

LINES = [
    "Person: Where is the old bridge?\n",
    "Robot: Newspapers are one euro fifty.\n",
    "Person: What?\n",
    "Robot: Sorry.\n",
]


def write_files(folder: Path, family: str = "qwen2") -> tuple[Path, Tensors, Tensors]:
    """Write base.gguf, adapter.safetensors and the reader, and return the weights of the first two."""
    base = write_tiny_decoder(folder / "base.gguf", family=family)
    adapter = write_adapter(folder / "adapter.safetensors", hash_file(folder / "base.gguf"))
    write_reader(folder / "base.gguf", folder / "adapter.safetensors", folder / "reader")
    return folder, base, adapter


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tensors, Tensors]:
    return write_files(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def reader(files: tuple[Path, Tensors, Tensors]) -> TalkReader:
    return TalkReader.open(files[0] / "reader", threads=1).load()


@pytest.fixture
def passes(reader: TalkReader, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of tokens of each pass."""
    counts, run = [], reader.read

    def read(tokens, cache):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        counts.append(len(tokens))
        return run(tokens, cache)

    monkeypatch.setattr(reader, "read", read)
    return counts


@pytest.mark.parametrize("family", ["qwen2", "llama"])
def test_passes_over_lines_give_what_one_pass_over_all_tokens_gives(family: str, tmp_path: Path) -> None:
    _, base, adapter = write_files(tmp_path, family)
    reader = TalkReader.open(tmp_path / "reader", threads=1).load()
    tokens = [reader.tokenize(line) for line in LINES]
    expected = heads_of(base, adapter, [token for part in tokens for token in part])
    cache, end = reader.make_empty_cache(), -1
    for part in tokens:
        heads, cache = reader.read(part, cache)
        end += len(part)
        likeness = heads @ expected[end] / np.linalg.norm(heads) / np.linalg.norm(expected[end])
        assert likeness > 0.997  # a bias or a change left out gives less


def test_a_reading_has_the_heads_in_their_order(reader: TalkReader, files: tuple[Path, Tensors, Tensors]) -> None:
    heads, _ = reader.read(reader.tokenize(LINES[0]), reader.make_empty_cache())
    reading = reader.start().append(LINES[0])
    for turn, row in zip(reading.turns, heads[:36].astype(np.float64).reshape(3, 12), strict=True):
        kinds = np.exp(row[:3]) / np.exp(row[:3]).sum()
        assert [turn.ordinary, turn.polarity[Polarity.ERROR], turn.polarity[Polarity.COMPETENCE]] == pytest.approx(
            kinds, abs=1e-4
        )
        assert [*turn.attributes.values(), turn.held_against, turn.good] == pytest.approx(
            1 / (1 + np.exp(-row[3:])), abs=1e-4
        )
        assert list(turn.attributes) == list(Attribute)
    (option,) = reader.start().read_options(LINES[:1])
    assert [option.possible, option.fitting] == pytest.approx(1 / (1 + np.exp(-heads[36:])), abs=1e-4)


def test_options_are_read_side_by_side_and_leave_the_talk(reader: TalkReader) -> None:
    talk = reader.start()
    readings = talk.read(LINES[:2])
    forth = talk.read_options(LINES[2:])
    assert talk.read_options(LINES[:1:-1]) == forth[::-1]
    assert len(set(map(repr, forth))) == len(LINES) - 2 > 1
    assert talk.read(LINES[:2]) == readings


def test_only_what_differs_is_read_and_gives_what_a_new_talk_gives(reader: TalkReader, passes: list[int]) -> None:
    talk = reader.start()
    talk.read(LINES[:3])
    revised = [*LINES[:2], "Person: Which bridge?\n", *LINES[3:]]
    for lines, new in ((LINES, 1), (LINES, 0), (revised, 2), (revised[:1], 0), (LINES, 3), ([], 0), (LINES, 4)):
        passes.clear()
        readings = talk.read(lines)
        assert len(passes) == new
        assert readings == reader.start().read(lines)


class QuestionReader:
    """Finds an error in every line that stands in one context with the question; its cache is what was said."""

    max_tokens = 1000

    def tokenize(self, line: str) -> list[int]:
        return [ord(character) for character in line]

    def make_empty_cache(self) -> list[NDArray[np.float32]]:
        return [np.zeros((1, 1, 0, 1), np.float32)]

    def read(self, tokens: list[int], cache: list[NDArray[np.float32]]) -> tuple[NDArray[np.float32], Any]:
        cache = [np.append(cache[0], np.array(tokens, np.float32).reshape(1, 1, -1, 1), axis=2)]
        heads = np.zeros(HEAD_OUTPUTS, np.float32)
        heads[1] = 3 if LINES[0] in "".join(map(chr, cache[0].ravel().astype(int))) else -3
        return heads, cache


@pytest.mark.parametrize(
    ("lines", "cause_distance"),
    [(LINES, [0, 1, 0, 3]), (["Person: Hi.\n", *LINES], [0, 0, 1, 0, 3]), (LINES[1:], [0, 0, 0])],
)
def test_the_cause_of_an_error_is_the_line_without_which_it_is_none(
    lines: list[str], cause_distance: list[int]
) -> None:
    talk = ReadTalk(QuestionReader())  # type: ignore[arg-type]
    assert [reading.cause_distance for reading in talk.read(lines)] == cause_distance
    assert talk.read([*lines, LINES[2]])[-1].cause_distance == 0  # a person's line


def test_a_line_whose_error_cannot_be_explained_leaves_the_talk_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = ReadTalk(QuestionReader())  # type: ignore[arg-type]
    readings = talk.read(LINES[:1])
    with monkeypatch.context() as patch:
        patch.setattr(talk, "_find_cause_distance", lambda _: (_ for _ in ()).throw(EngineFailedError("no numbers")))
        with pytest.raises(EngineFailedError):
            talk.append(LINES[1])
    assert talk.readings == readings
    assert [reading.cause_distance for reading in talk.read(LINES)] == [0, 1, 0, 3]


def test_a_full_context_drops_its_oldest_half(reader: TalkReader, passes: list[int]) -> None:
    reader.max_tokens = 200
    lines = [f"Robot: {'la' * (number % 7)} {number}.\n" for number in range(40)]
    sizes = [len(reader.tokenize(line)) for line in lines]
    talk = reader.start()
    readings = [talk.append(line) for line in lines]
    assert sum(passes) < 3 * sum(sizes)
    # The last lines were read as if the talk began with the first line of the present context.
    starts = [start for start in range(1, 40) if reader.start().read(lines[start:])[-1] == readings[-1]]
    assert 50 < sum(sizes[starts[-1] :]) <= 200 < sum(sizes)
    for kept in range(39, 0, -3):  # back over the places where lines were dropped
        talk.rewind(kept)
        assert talk.read(lines) == readings


@pytest.mark.parametrize("line", ["", "\n", "Robot: \n", "Robot: " + "x" * 10_000, "Robot: a\nPerson: b\r\n\ud800\0"])
def test_any_line_is_one_line_of_the_context(line: str, reader: TalkReader) -> None:
    talk = reader.start()
    lines = [*LINES, line, *LINES]
    assert len(talk.read(lines)) == 9
    assert len(reader.tokenize(line)) <= reader.max_tokens // 2
    assert [reader.tokenize(text)[-1] for text in lines] == [reader.tokenize("\n")[0]] * 9


def test_a_pass_that_fails_leaves_the_talk_as_it_was(reader: TalkReader, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = reader.start()
    readings = talk.read(LINES[:3])
    with monkeypatch.context() as patch:
        patch.setattr(reader, "_embeddings", np.full((258, WIDTH), np.nan, np.float16))
        with pytest.raises(EngineFailedError, match="not finite"):
            talk.append(LINES[3])
        patch.setattr(reader, "_session", SimpleNamespace(run=lambda *_: [np.zeros((1, 36), np.float32)]))
        with pytest.raises(EngineFailedError, match="of another version"):
            talk.append(LINES[3])
    assert talk.readings == readings
    assert talk.read(LINES) == reader.start().read(LINES)


def test_a_talk_without_its_beginning_continues(reader: TalkReader, passes: list[int]) -> None:
    talk = reader.start()
    whole = talk.read(LINES)
    assert talk.read([*LINES[2:], LINES[0]])[:2] == whole[2:]
    assert len(passes) == len(LINES) + 1
    assert talk.read(["Person: Another talk.\n"]) == reader.start().read(["Person: Another talk.\n"])


def test_the_reader_is_that_of_the_environment_or_none(
    files: tuple[Path, Tensors, Tensors], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = files[0] / "reader"
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("TACTFUL_READER", "none")
    assert open_reader("auto") is None
    monkeypatch.setenv("TACTFUL_READER", "")
    assert open_reader("auto") is None  # none is set up
    monkeypatch.setenv("TACTFUL_READER", str(folder))
    found = open_reader("auto")
    assert found is not None
    assert found.sha256 == TalkReader.open(folder).sha256
    assert open_reader("none") is None
    with pytest.raises(EngineFailedError, match="there is no reader"):
        open_reader("middle")
    shutil.copytree(folder, tmp_path / "reader-middle")
    monkeypatch.delenv("TACTFUL_READER")
    assert open_reader("auto") is not None


@pytest.fixture
def copies(files: tuple[Path, Tensors, Tensors], tmp_path: Path) -> Iterator[Path]:
    """A copy of the folder, in which no failed set-up leaves anything."""
    folder = tmp_path / "copies"
    shutil.copytree(files[0], folder)
    yield folder
    assert sorted(path.name for path in folder.iterdir()) == ["adapter.safetensors", "base.gguf", "reader"]


def test_a_folder_that_has_changed_since_it_was_opened_is_not_loaded(copies: Path) -> None:
    reader = TalkReader.open(copies / "reader")
    changed = reader.manifest.model_copy(update={"adapter_sha256": "0" * 64})
    (copies / "reader" / MANIFEST).write_text(changed.model_dump_json(), encoding="utf-8")
    with pytest.raises(EngineFailedError, match="has changed since"):
        reader.start()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"base_sha256": "0" * 64}, "was made for 0000000000000000…; take the base model of that hash"),
        ({"layers.1.up.lora_b": np.zeros((8, 4))}, r"layers\.1\.up changes 8 by 128 weights, and base\.gguf has 256"),
        ({"layers.1.up.lora_b": np.zeros(0)}, r"has no layers\.1\.up\.lora_b"),
        ({"head.bias": np.zeros(37)}, "no head of 38 outputs"),
    ],
)  # fmt: skip
def test_an_adapter_for_another_model_is_refused(changes: dict, reason: str, copies: Path) -> None:  # type: ignore[type-arg]
    whole = TalkReader.open(copies / "reader").manifest
    arguments = {"base_sha256": whole.base_sha256, **changes}
    write_adapter(copies / "adapter.safetensors", **arguments)
    with pytest.raises(TactfulError, match=reason):
        write_reader(copies / "base.gguf", copies / "adapter.safetensors", copies / "reader")
    assert TalkReader.open(copies / "reader").manifest == whole


def test_a_base_model_that_is_cut_or_of_another_family_is_refused(copies: Path) -> None:
    base, adapter = copies / "base.gguf", copies / "adapter.safetensors"
    cut = base.read_bytes()[:-1000]
    base.write_bytes(cut)
    write_adapter(adapter, hash_file(base))
    with pytest.raises(WeightsError, match="is not a complete GGUF file"):
        write_reader(base, adapter, copies / "reader")
    write_tiny_decoder(base, family="gemma3")
    write_adapter(adapter, hash_file(base))
    with pytest.raises(EngineFailedError, match="is a gemma3 model; take a qwen2 or llama model"):
        write_reader(base, adapter, copies / "reader")


def test_a_damaged_or_absent_reader_names_the_remedy(copies: Path) -> None:
    with (copies / "reader/reader.weights").open("r+b") as stream:
        stream.write(b"x")
    with pytest.raises(EngineFailedError, match=r"reader\.weights has the SHA-256 .* models setup reader"):
        TalkReader.open(copies / "reader")
    (copies / "reader/reader.weights").write_bytes(b"cut")
    with pytest.raises(EngineFailedError, match=r"the reader cannot be loaded: .* models setup reader"):
        TalkReader.open(copies / "reader", verify=False).load()
    (copies / "reader/reader.json").write_text("{")
    with pytest.raises(EngineFailedError, match=r"there is no reader; run .* models setup reader, with --size"):
        TalkReader.open(copies / "reader")


def test_the_largest_reader_is_taken_unless_one_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    monkeypatch.delenv("TACTFUL_READER", raising=False)
    for size in ("middle", "small"):
        (folder := tmp_path / f"reader-{size}").mkdir()
        sizes = {"max_tokens": 8, "layers": 1, "key_heads": 1, "head_width": 1, "weight_loss": 0.0, "adapter": {}}
        about = {"source": "", "files": (), "base_sha256": size, "adapter_sha256": "", "size": size}
        write_manifest(ReaderManifest(**about, **sizes), folder)  # type: ignore[arg-type]
    for name, expected in (("auto", "middle"), ("small", "small")):
        reader = open_reader(name)
        assert reader is not None
        assert reader.manifest.size == expected

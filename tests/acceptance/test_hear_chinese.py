"""Whisper base hears Chinese and English, and reports which of them was spoken."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from norm_core.models.catalogue import Catalogue
from norm_core.models.store import Store
from tests.command_line import tactful
from tests.patience import PATIENCE_S

MODEL = "whisper-base"
SENTENCE = "我们一起去公园吧，谢谢你。请把这本书放到桌子上。"
# Of the Mandarin voices, the one that reads characters as Mandarin.
VOICE, SPEED_WPM = "cmn-latn-pinyin", 190


@pytest.fixture(scope="module", autouse=True)
def weights() -> None:
    if Store().find(Catalogue().read_manifest(MODEL)) is None:
        pytest.skip(f"the weights of {MODEL} are not here: run ./tactful models add {MODEL}")


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("espeak-ng"):
        pytest.skip("espeak-ng is not here, which speaks the Chinese sentence: install espeak-ng")
    sound = tmp_path_factory.mktemp("sound") / "chinese.wav"
    command = ["espeak-ng", "-v", VOICE, "-s", str(SPEED_WPM), "-w", str(sound), SENTENCE]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    return sound


def hear(sound: Path, language: str) -> list[dict[str, Any]]:
    ended = tactful("hear", sound, "--model", MODEL, "--language", language, "--json")
    assert ended.returncode == 0, ended.stderr
    rows: list[dict[str, Any]] = json.loads(ended.stdout)
    return rows


def test_chinese_speech_becomes_chinese_text(chinese: Path) -> None:
    rows = hear(chinese, "en,zh")
    assert {row["language"] for row in rows} == {"zh"}
    text = "".join(row["text"] for row in rows)
    assert "一起去" in text  # the same in simplified and traditional characters
    assert len(re.findall(r"[一-鿿]", text)) >= len(SENTENCE) // 2

"""A Whisper model is named or refused with the reason."""

from pathlib import Path

import pytest

from norm_core.runtime.config import ConfigError, check_config
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig, model_folder


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("whisper-bse", "did you mean whisper-base"),
        ("smollm2-135m-q4", "smollm2-135m-q4: is a model for language; name one for speech-to-text"),
        ("whisper-base", r"not installed; run \./tactful models add whisper-base"),
    ],
)
def test_a_model_that_cannot_hear_is_refused(
    model: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    with pytest.raises(ConfigError, match=complaint):
        model_folder(model)


def test_a_folder_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model_folder("ours") == Path("ours")
    assert model_folder("./ours") == Path("ours")


@pytest.mark.parametrize("language", ["zh", "en,zh", "auto"])
def test_an_english_model_is_refused_for_other_languages(language: str) -> None:
    with pytest.raises(ConfigError, match=r"knows English alone.*use the model whisper-base"):
        Whisper(WhisperConfig(language=language))


@pytest.mark.parametrize("language", ["", "English", "en,", "auto,en", "zh-CN"])
def test_a_language_that_is_no_code_is_refused(language: str) -> None:
    with pytest.raises(ConfigError, match="language: write a language code as en or zh"):
        check_config(WhisperConfig, {"language": language}, "test")

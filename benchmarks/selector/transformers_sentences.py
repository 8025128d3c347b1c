"""A sentence encoder in transformers, to try weights that Tactful does not run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder, Vectors
from norm_core.engines.sentences.token_table import file_sha256

REMEMBERED = 100_000


class TransformersSentences:
    """Unit vectors: the mean over the tokens of a sentence that is encoded alone, on one thread."""

    def __init__(self, folder: Path) -> None:
        """Load a folder with config.json, model.safetensors and tokenizer.json."""
        import torch
        from transformers import AutoModel, AutoTokenizer

        torch.set_num_threads(1)
        self._inference = torch.inference_mode
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModel.from_pretrained(folder).eval()
        self.weights_sha256 = file_sha256(folder / "model.safetensors")
        self._vectors: dict[str, Vectors] = {}

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one row per sentence."""
        for sentence in set(sentences) - set(self._vectors):
            with self._inference():
                given = self._tokenizer(sentence, return_tensors="pt", truncation=True, max_length=384)
                mean = self._model(**given).last_hidden_state[0].mean(0).numpy()
            self._vectors[sentence] = np.asarray(mean / np.linalg.norm(mean), np.float32)
        return np.stack([self._vectors[sentence] for sentence in sentences])


def open_sentences(folder: Path | None) -> SentenceEncoder | TransformersSentences:
    """Open the encoder of a folder, or the packaged one."""
    return TransformersSentences(folder) if folder else SentenceEncoder(remembered=REMEMBERED)

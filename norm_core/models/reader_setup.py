"""Make the reader's folder of a base model in GGUF and an adapter of ours."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from norm_core.engines.errors import EngineFailedError
from norm_core.models.bert_onnx import read_safetensors
from norm_core.models.decoder_onnx import decoder_shape, write_decoder
from norm_core.models.gguf_file import GgufFile
from norm_core.models.gguf_tokenizer import tokenizer_of
from norm_core.models.reader_folder import EMBEDDINGS, GRAPH, MANIFEST, TOKENIZER, WEIGHTS, ReaderManifest
from norm_core.models.store import hashed_file, sha256_of_file

_MAX_TOKENS = 1024


def write_reader(
    base: Path, adapter: Path, folder: Path, *, advance: Callable[[int, int], None] = lambda done, total: None
) -> ReaderManifest:
    """Write the reader into a folder, in place of one that is there; a failure leaves what was there.

    Raise EngineFailedError if a file is damaged, or if the adapter was made for another base model.
    """
    tensors, about = read_safetensors(adapter), _safetensors_metadata(adapter)
    file = GgufFile(base)
    if (made_for := about.get("base_sha256")) != file.sha256:
        raise EngineFailedError(
            f"{base}: has the SHA-256 {file.sha256[:16]}…, and {adapter.name} was made for "
            f"{f'{made_for[:16]}…' if made_for else 'a file that it does not state'}; take the base model of that hash"
        )
    shape = decoder_shape(file)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, prefix=".making-") as making:
            new, old = Path(making, "new"), Path(making, "old")
            new.mkdir()
            write_decoder(file, tensors, new, max_tokens=_MAX_TOKENS, advance=advance)
            tokenizer_of(file).save(str(new / TOKENIZER))
            manifest = ReaderManifest(
                source=base.name,
                files=tuple(hashed_file(new, name) for name in (GRAPH, WEIGHTS, EMBEDDINGS, TOKENIZER)),
                base_sha256=file.sha256,
                adapter_sha256=sha256_of_file(adapter),
                adapter=about,
                max_tokens=_MAX_TOKENS,
                layers=shape.layers,
                key_heads=shape.key_heads,
                head_width=shape.head_width,
            )
            (new / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
    except OSError as error:
        raise EngineFailedError(
            f"{folder}: the reader cannot be written: {error.strerror}; make room of a gigabyte there, or set "
            "TACTFUL_WEIGHTS to another folder"
        ) from error
    return manifest


def _safetensors_metadata(path: Path) -> dict[str, str]:
    """Return what a file that has been read says of itself."""
    with path.open("rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    return {str(name): str(value) for name, value in header.get("__metadata__", {}).items()}

"""Images for a GGUF model, through its projector (mmproj) and llama.cpp's mtmd interface."""

import ctypes
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import llama_cpp as ll
from llama_cpp import mtmd_cpp as mtmd

from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.llama_cpp.gguf_model import GgufModel
from norm_core.engines.request_context import ENCODE, PREFILL, RequestContext

_log = logging.getLogger(__name__)


@ll.llama_log_callback  # type: ignore[untyped-decorator]
def _logged(level: int, text: bytes, _: Any) -> None:
    _log.debug(text.decode(errors="replace").rstrip())


class Projector:
    """Encode images for the model; close it before its model."""

    def __init__(self, model: GgufModel, path: Path, *, use_gpu: bool) -> None:
        """Load the projector. Raises EngineFailedError if it does not fit the model or sees no images."""
        if not path.is_file():
            raise EngineFailedError(f"{path}: there is no such projector file; check source in its manifest")
        mtmd.mtmd_log_set(_logged, None)
        mtmd.mtmd_helper_log_set(_logged, None)
        params = mtmd.mtmd_context_params_default()
        params.use_gpu, params.print_timings, params.n_threads = use_gpu, False, model.threads
        params.flash_attn_type, params.warmup = ll.LLAMA_FLASH_ATTN_TYPE_DISABLED, False
        self._model = model
        self._context = mtmd.mtmd_init_from_file(str(path).encode(), model.model, params)
        if not self._context:
            raise EngineFailedError(
                f"{path}: cannot be loaded; either it is no projector of this model, or memory is short: take the "
                "mmproj file from the model's own repository, or free memory"
            )
        if not mtmd.mtmd_support_vision(self._context):
            self.close()
            raise EngineFailedError(
                f"{path}: encodes no pictures; take the mmproj file from the model's own repository, or leave it out"
            )

    def read(self, jpeg: bytes, call: RequestContext) -> None:
        """Append an image to the model's cache."""
        call.enter_segment(ENCODE)
        with self._chunks(jpeg) as chunks:
            held = [mtmd.mtmd_input_chunks_get(chunks, nth) for nth in range(mtmd.mtmd_input_chunks_size(chunks))]
            self._model.check_room(sum(mtmd.mtmd_input_chunk_get_n_tokens(chunk) for chunk in held))
            call.enter_segment(PREFILL)
            for chunk in held:
                call.check()
                self._read_chunk(chunk)

    def close(self) -> None:
        """Free the projector; a second call does nothing."""
        if self._context:
            mtmd.mtmd_free(self._context)
            self._context = None

    def _read_chunk(self, chunk: Any) -> None:
        model = self._model
        after = ll.llama_pos(model.position)  # a chunk of text adds to it, an image sets it
        code = mtmd.mtmd_helper_eval_chunk_single(
            self._context,
            model.context,
            chunk,
            ll.llama_pos(model.position),
            ll.llama_seq_id(0),
            model.batch_tokens,
            True,
            ctypes.byref(after),
        )
        if code:
            raise EngineFailedError(
                f"llama.cpp could not compute a picture (code {code}); free memory, or send fewer images"
            )
        model.position = after.value
        model.token_count += mtmd.mtmd_input_chunk_get_n_tokens(chunk)

    @contextmanager
    def _chunks(self, jpeg: bytes) -> Iterator[Any]:
        """Return an image and its surrounding control tokens, in chunks that are read one by one."""
        with ExitStack() as stack:
            content = (ctypes.c_uint8 * len(jpeg)).from_buffer_copy(jpeg)
            bitmap = mtmd.mtmd_helper_bitmap_init_from_buf(self._context, content, len(jpeg), False)
            if not bitmap:
                raise InvalidRequestError(f"a picture of {len(jpeg)} bytes cannot be decoded")
            stack.callback(mtmd.mtmd_bitmap_free, bitmap)
            chunks = mtmd.mtmd_input_chunks_init()
            stack.callback(mtmd.mtmd_input_chunks_free, chunks)
            marker = mtmd.mtmd_default_marker()
            text = mtmd.mtmd_input_text(text=marker, text_len=len(marker), add_special=False, parse_special=True)
            bitmaps = (mtmd.mtmd_bitmap_p_ctypes * 1)(bitmap)
            if code := mtmd.mtmd_tokenize(self._context, chunks, ctypes.byref(text), bitmaps, 1):
                raise EngineFailedError(f"llama.cpp could not prepare a picture (code {code})")
            yield chunks

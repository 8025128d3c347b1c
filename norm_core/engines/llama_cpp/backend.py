"""Run GGUF models in this process with llama.cpp; cutting the cache back to the prefix reuses it."""

import ctypes
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import llama_cpp as ll
from llama_cpp import mtmd_cpp as mtmd

from norm_core.engines.backend import EngineHealth
from norm_core.engines.chat_template import NO_TEMPLATE, chat_frame, template_renderer
from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.llama_cpp.gguf_model import GgufModel
from norm_core.engines.options import OPTION_LETTERS, LetterTokens, letter_options
from norm_core.engines.prompt import Image, Part, Prompt, Question, plain_text
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, ENCODE, PREFILL, RequestContext
from norm_core.records.record import record

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


Piece = list[int] | bytes


@record
class TokenPrefix:
    """A prefix in the model's cache: its pieces, its end and the call that read it."""

    digest: str
    pieces: tuple[Piece, ...]
    position: int
    token_count: int
    read_by: RequestContext


class LlamaCppBackend:
    """A GGUF file and, for images, its projector. The cache holds the last prefix until another replaces it.

    `template_options` go to the chat template: {"enable_thinking": False} stops models that think first.
    """

    def __init__(
        self,
        path: Path,
        *,
        projector_path: Path | None = None,
        context_tokens: int = 4096,
        threads: int = 2,
        gpu_layers: int = 0,
        batch_tokens: int = 64,
        max_images: int | None = None,
        weights_sha256: str = "",
        quantization: str = "",
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Load the model and its projector. Raises EngineFailedError if a file is missing or memory is short."""
        self._model = GgufModel(
            path, context_tokens=context_tokens, threads=threads, gpu_layers=gpu_layers, batch_tokens=batch_tokens
        )
        self._projector: Projector | None = None
        self._held: TokenPrefix | None = None
        try:
            if projector_path is not None:
                self._projector = Projector(self._model, projector_path, use_gpu=gpu_layers != 0)
            self._before, self._after = self._frame(template_options or {})
            self._letters = LetterTokens(
                self._model.tokens, lambda token: self._model.piece(token).decode(errors="replace")
            )
        except BaseException:
            self.close()
            raise
        self.health = EngineHealth(issues=() if self._model.template() else (f"{path.stem}: {NO_TEMPLATE}",))
        self.model_info = ModelInfo(
            model=path.stem,
            engine="llama.cpp",
            weights_sha256=weights_sha256,
            quantization=quantization,
            context_tokens=self._model.context_tokens,
            max_images=max_images if self._projector else 0,
            max_options=len(OPTION_LETTERS),
            device=self._model.device,
        )

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[TokenPrefix]:
        """Return the prefix in the model's cache; read it only if the cache holds another one."""
        digest = prefix.digest
        if self._held is None or self._held.digest != digest:
            self._held = None
            pieces = (self._model.tokens(self._before, control=True), *self._pieces(prefix.parts))
            self._read_anew(pieces, call)
            self._held = TokenPrefix(
                digest=digest,
                pieces=pieces,
                position=self._model.position,
                token_count=self._model.token_count,
                read_by=call,
            )
        yield self._held

    def score(self, prefix: TokenPrefix, question: Question, call: RequestContext) -> Sequence[float]:
        """Read the question after the prefix, and weigh the letters of its options."""
        self._read_more(
            prefix, (*self._pieces(question.parts), self._model.tokens(letter_options(question.options))), call
        )
        call.enter_segment(DECODE)
        return self._letters.logprobs(self._model.logits(), len(question.options))

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Write token by token, within the grammar of `schema` where given."""
        model, written = self._model, bytearray()
        with (
            model.sampler(json.dumps(schema) if schema is not None else None, seed) as sampler,
            self.encoded(prompt, call) as prefix,
        ):
            self._read_more(prefix, (), call)
            call.enter_segment(DECODE)
            for nth in range(max_tokens):
                call.check()
                token = model.next_token(sampler)
                call.add_usage(completion_tokens=1)
                if model.ends(token):
                    break
                written += model.piece(token)
                if nth + 1 == max_tokens or model.token_count == model.context_tokens:
                    break
                model.read([token], call)
        return written.decode(errors="ignore")

    def close(self) -> None:
        """Free the projector, then the model and its cache."""
        self._held = None
        if self._projector:
            self._projector.close()
        self._model.close()

    def _read_more(self, prefix: TokenPrefix, pieces: tuple[Piece, ...], call: RequestContext) -> None:
        """Read further pieces and the end of the template after the prefix."""
        if self._model.cut_back(prefix.position, prefix.token_count):
            call.add_usage(cached_tokens=0 if prefix.read_by is call else prefix.token_count)
        else:
            self._read_anew(prefix.pieces, call)
        self._read((*pieces, self._model.tokens(self._after, control=True)), call)

    def _read_anew(self, pieces: tuple[Piece, ...], call: RequestContext) -> None:
        self._model.cut_back(0, 0)
        self._read(pieces, call)

    def _read(self, pieces: tuple[Piece, ...], call: RequestContext) -> None:
        self._model.check_room(sum(len(piece) for piece in pieces if isinstance(piece, list)))
        before = self._model.token_count
        for piece in pieces:
            if isinstance(piece, list):
                call.enter_segment(PREFILL)
                self._model.read(piece, call)
            elif self._projector:
                self._projector.read(piece, call)
        call.add_usage(prompt_tokens=self._model.token_count - before)

    def _pieces(self, parts: Sequence[Part]) -> tuple[Piece, ...]:
        """Split parts into tokens and images; no token crosses the end of a part, so that prefixes stay reusable."""
        return tuple(
            part.jpeg if isinstance(part, Image) else self._model.tokens(plain_text(part) + "\n") for part in parts
        )

    def _frame(self, options: Mapping[str, Any]) -> tuple[str, str]:
        model = self._model
        bos, eos = model.special_marks()
        return chat_frame(template_renderer(model.template(), bos=bos, eos=eos, options=options))

"""A GGUF model through llama.cpp's C interface: tokens in, logits out, with a cache that can be cut back."""

import ctypes
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import llama_cpp as ll
import numpy as np
from llama_cpp.llama_grammar import json_schema_to_gbnf

from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.request_context import RequestContext

# Flash attention would shift probabilities if a prefix is shared.
_NO_FLASH_ATTENTION = 0
_LONGEST_PIECE_BYTES = 256

# The address of an object that llama.cpp owns.
Handle = int


class GgufModel:
    """Read tokens in batches, with a deadline check between them; the cache holds one sequence at a time.

    `position` and `token_count` give the size of the cache; they differ if images take fewer positions than tokens.
    """

    def __init__(
        self, path: Path, *, context_tokens: int, threads: int, gpu_layers: int = 0, batch_tokens: int = 64
    ) -> None:
        """Load the weights and allocate the context. Raises EngineFailedError and frees what it allocated."""
        if not path.is_file():
            raise EngineFailedError(f"{path}: there is no such model file; check source in its manifest")
        # What it says while loading and running is for those who debug it.
        logging.getLogger("llama-cpp-python").setLevel(logging.ERROR)
        ll.llama_backend_init()
        self.threads, self.batch_tokens = threads, batch_tokens
        self.device = "GPU" if gpu_layers and ll.llama_supports_gpu_offload() else "CPU"
        self.position = self.token_count = 0
        self._stack = ExitStack()
        with ExitStack() as undo:
            self.model = self._loaded(path, gpu_layers)
            undo.callback(ll.llama_model_free, self.model)
            self.context = self._context(context_tokens)
            undo.callback(ll.llama_free, self.context)
            self._batch = ll.llama_batch_init(batch_tokens, 0, 1)
            undo.callback(ll.llama_batch_free, self._batch)
            self._stack = undo.pop_all()
        self.vocabulary = ll.llama_model_get_vocab(self.model)
        self.context_tokens = int(ll.llama_n_ctx(self.context))
        self._token_kinds = int(ll.llama_vocab_n_tokens(self.vocabulary))

    def _loaded(self, path: Path, gpu_layers: int) -> Handle:
        params = ll.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        model: Handle = ll.llama_model_load_from_file(str(path).encode(), params)
        if not model:
            raise EngineFailedError(
                f"{path}: cannot be loaded; either it is no complete GGUF model, or memory is short"
            )
        return model

    def _context(self, context_tokens: int) -> Handle:
        params = ll.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context_tokens, self.batch_tokens, self.batch_tokens
        params.n_threads = params.n_threads_batch = self.threads
        params.flash_attn_type = _NO_FLASH_ATTENTION
        # Without this, a model with a sliding window loses tokens that a cut would need again.
        params.swa_full = True
        context: Handle = ll.llama_init_from_model(self.model, params)
        if not context:
            raise EngineFailedError(
                f"out of memory: a context of {context_tokens} tokens "
                "does not fit; lower context_tokens in the manifest"
            )
        return context

    def template(self) -> str:
        """The chat template in the file; empty if there is none."""
        return (ll.llama_model_chat_template(self.model, None) or b"").decode()

    def special_marks(self) -> tuple[str, str]:
        """The tokens that start and end a text, by their names in a chat template; empty if there are none."""
        tokens = (ll.llama_vocab_bos(self.vocabulary), ll.llama_vocab_eos(self.vocabulary))
        first, last = (
            ll.llama_vocab_get_text(self.vocabulary, token).decode() if token >= 0 else "" for token in tokens
        )
        return first, last

    def tokens(self, text: str, *, control: bool = False) -> list[int]:
        """Return a text as tokens; parse control tokens only if `control` is set."""
        content = text.encode(errors="replace")
        room = len(content) + 8
        array = (ll.llama_token * room)()
        count = ll.llama_tokenize(self.vocabulary, content, len(content), array, room, False, control)
        if count < 0:
            raise InvalidRequestError(f"a text of {len(content)} bytes cannot be made into tokens")
        return list(array[:count])

    def piece(self, token: int) -> bytes:
        """Return a token's text; empty for a control token."""
        buffer = ctypes.create_string_buffer(_LONGEST_PIECE_BYTES)
        length = ll.llama_token_to_piece(self.vocabulary, token, buffer, _LONGEST_PIECE_BYTES, 0, False)
        return buffer.raw[: max(length, 0)]

    def ends(self, token: int) -> bool:
        """Whether this token ends the model's output."""
        return bool(ll.llama_vocab_is_eog(self.vocabulary, token))

    def check_room(self, count: int) -> None:
        """Raise if `count` more tokens do not fit."""
        if (whole := self.token_count + count) > self.context_tokens:
            raise InvalidRequestError(f"the prompt has {whole} tokens, and the context holds {self.context_tokens}")

    def read(self, tokens: list[int], call: RequestContext) -> None:
        """Append tokens to the cache; the logits are then those after the last token."""
        self.check_room(len(tokens))
        for start in range(0, len(tokens), self.batch_tokens):
            call.check()
            self._decode(tokens[start : start + self.batch_tokens])

    def cut_back(self, position: int, token_count: int) -> bool:
        """Drop everything after a position; return False and drop all if this kind of model cannot be cut."""
        memory = ll.llama_get_memory(self.context)
        is_cut = bool(ll.llama_memory_seq_rm(memory, 0, position, -1))
        if not is_cut:
            ll.llama_memory_clear(memory, True)
        self.position, self.token_count = (position, token_count) if is_cut else (0, 0)
        return is_cut

    def logits(self) -> np.ndarray:
        """Return a copy of the logits of the next token."""
        pointer = ll.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(pointer, shape=(self._token_kinds,)).copy()

    @contextmanager
    def sampler(self, schema: str | None, seed: int) -> Iterator[Handle]:
        """Return a sampler of next tokens, greedy if seed is 0; a JSON schema constrains them."""
        chain = ll.llama_sampler_chain_init(ll.llama_sampler_chain_default_params())
        try:
            if schema is not None:
                ll.llama_sampler_chain_add(chain, self._grammar(schema))
            last = ll.llama_sampler_init_dist(seed & 0xFFFFFFFE) if seed else ll.llama_sampler_init_greedy()
            ll.llama_sampler_chain_add(chain, last)
            yield chain
        finally:
            ll.llama_sampler_free(chain)

    def next_token(self, sampler: Handle) -> int:
        """Draw the next token with a sampler from the last position's logits."""
        return int(ll.llama_sampler_sample(sampler, self.context, -1))

    def close(self) -> None:
        """Release the memory; no other method may follow."""
        self._stack.close()

    def _decode(self, tokens: list[int]) -> None:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = self.position + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = 0
            batch.logits[index] = index + 1 == len(tokens)
        if code := ll.llama_decode(self.context, batch):
            raise EngineFailedError(
                f"llama.cpp could not compute {len(tokens)} tokens (code "
                f"{code}); free memory, or lower context_tokens in the manifest"
            )
        self.position += len(tokens)
        self.token_count += len(tokens)

    def _grammar(self, schema: str) -> Handle:
        try:
            rules = json_schema_to_gbnf(schema)
        except (KeyError, TypeError, ValueError, AssertionError) as error:
            raise InvalidRequestError(f"llama.cpp cannot hold an answer to this schema: {error}") from None
        grammar: Handle = ll.llama_sampler_init_grammar(self.vocabulary, rules.encode(), b"root")
        if not grammar:
            raise InvalidRequestError("llama.cpp cannot hold an answer to this schema")
        return grammar

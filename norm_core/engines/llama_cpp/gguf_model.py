"""A GGUF model in memory, through llama.cpp's C interface: tokens in, logits out, and what was read can be cut back."""

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

# Flash attention would shift probabilities when a prefix is shared.
_NO_FLASH_ATTENTION = 0
_LONGEST_PIECE_BYTES = 256

# An address of something that llama.cpp holds.
Handle = int


class GgufModel:
    """Reads tokens in batches, between which a call's deadline is seen; holds one sequence at a time.

    position and token_count say how much is held; they differ where pictures take fewer positions than tokens.
    """

    def __init__(
        self, path: Path, *, context_tokens: int, threads: int, gpu_layers: int = 0, batch_tokens: int = 64
    ) -> None:
        if not path.is_file():
            raise EngineFailedError(f"there is no model at {path}")
        # What it says while loading and running is for those who debug it.
        logging.getLogger("llama-cpp-python").setLevel(logging.ERROR)
        ll.llama_backend_init()
        self.threads, self.batch_tokens = threads, batch_tokens
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
            raise EngineFailedError(f"{path} cannot be loaded: it is no whole GGUF model, or memory is short")
        return model

    def _context(self, context_tokens: int) -> Handle:
        params = ll.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context_tokens, self.batch_tokens, self.batch_tokens
        params.n_threads = params.n_threads_batch = self.threads
        params.flash_attn_type = _NO_FLASH_ATTENTION
        # Else a model with a sliding window forgets what cutting back would bring up again.
        params.swa_full = True
        context: Handle = ll.llama_init_from_model(self.model, params)
        if not context:
            raise EngineFailedError(f"out of memory: a context of {context_tokens} tokens does not fit")
        return context

    def template(self) -> str:
        """The chat template that the file brings; empty if it has none."""
        return (ll.llama_model_chat_template(self.model, None) or b"").decode()

    def special_marks(self) -> tuple[str, str]:
        """The tokens that begin and end a text, as a chat template names them; empty for none."""
        found = (ll.llama_vocab_bos(self.vocabulary), ll.llama_vocab_eos(self.vocabulary))
        first, last = (
            ll.llama_vocab_get_text(self.vocabulary, token).decode() if token >= 0 else "" for token in found
        )
        return first, last

    def tokens(self, text: str, *, control: bool = False) -> list[int]:
        """Text as tokens; only where control, what looks like a control token is one."""
        content = text.encode(errors="replace")
        room = len(content) + 8
        array = (ll.llama_token * room)()
        count = ll.llama_tokenize(self.vocabulary, content, len(content), array, room, False, control)
        if count < 0:
            raise InvalidRequestError(f"a text of {len(content)} bytes cannot be made into tokens")
        return list(array[:count])

    def piece(self, token: int) -> bytes:
        """What a token stands for in text; nothing for a control token."""
        buffer = ctypes.create_string_buffer(_LONGEST_PIECE_BYTES)
        length = ll.llama_token_to_piece(self.vocabulary, token, buffer, _LONGEST_PIECE_BYTES, 0, False)
        return buffer.raw[: max(length, 0)]

    def ends(self, token: int) -> bool:
        """Whether the model has said all."""
        return bool(ll.llama_vocab_is_eog(self.vocabulary, token))

    def check_room(self, count: int) -> None:
        """Raises where count tokens more do not fit."""
        if (whole := self.token_count + count) > self.context_tokens:
            raise InvalidRequestError(f"the prompt has {whole} tokens, and the context holds {self.context_tokens}")

    def read(self, tokens: list[int], call: RequestContext) -> None:
        """Adds tokens to what is held; logits are those after the last."""
        self.check_room(len(tokens))
        for start in range(0, len(tokens), self.batch_tokens):
            call.check()
            self._decode(tokens[start : start + self.batch_tokens])

    def cut_back(self, position: int, token_count: int) -> bool:
        """Forgets all after position; False, and forgets everything, where the kind of model cannot."""
        memory = ll.llama_get_memory(self.context)
        kept = bool(ll.llama_memory_seq_rm(memory, 0, position, -1))
        if not kept:
            ll.llama_memory_clear(memory, True)
        self.position, self.token_count = (position, token_count) if kept else (0, 0)
        return kept

    def logits(self) -> np.ndarray:
        """What the model thinks of each next token; a copy."""
        found = ll.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(found, shape=(self._token_kinds,)).copy()

    @contextmanager
    def sampler(self, schema: str | None, seed: int) -> Iterator[Handle]:
        """Chooses the next tokens, the likeliest where seed is 0; with a JSON schema, only what follows it."""
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
        return int(ll.llama_sampler_sample(sampler, self.context, -1))

    def close(self) -> None:
        """Gives the memory back; nothing else may be called afterwards."""
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
            raise EngineFailedError(f"llama.cpp could not compute {len(tokens)} tokens (code {code}): is memory short?")
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

"""Run ONNX language models in this process with onnxruntime-genai; rewinding to a prefix reuses it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai as og

from norm_core.engines.chat_template import chat_frame
from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.options import OPTION_LETTERS, LetterTokens, letter_options
from norm_core.engines.prompt import Image, Part, Prompt, Question, plain_text
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, PREFILL, RequestContext
from norm_core.records.record import record

# The number of tokens read between two deadline checks.
_BATCH_TOKENS = 64


@record
class GenaiPrefix:
    """A prefix in a generator, and the call that read it."""

    digest: str
    generator: Any
    token_count: int
    read_by: RequestContext


class GenaiBackend:
    """A folder written by onnxruntime-genai's model builder, text only. The generator holds the last prefix."""

    def __init__(
        self,
        folder: Path,
        *,
        context_tokens: int = 4096,
        threads: int = 2,
        weights_sha256: str = "",
        quantization: str = "",
    ) -> None:
        """Load the folder, with telemetry off. Raises EngineFailedError if onnxruntime-genai cannot load it."""
        og.disable_telemetry_events()
        try:
            written = json.loads((folder / "genai_config.json").read_text())
            config = og.Config(str(folder))
            session = {"intra_op_num_threads": threads, "session.intra_op.allow_spinning": "0"}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": session}}}))
            self._model = og.Model(config)
            self._tokenizer = og.Tokenizer(self._model)
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineFailedError(f"{folder} is no model that onnxruntime-genai can load: {error}") from None
        self._context_tokens = min(context_tokens, written["model"]["context_length"])
        # Some tokenizers start every text with a special token, which must not appear inside a prompt.
        self._lead = len(self._tokenizer.encode(""))
        self._before, self._after = chat_frame(
            lambda messages: self._tokenizer.apply_chat_template(json.dumps(messages), add_generation_prompt=True)
        )
        self._letters = LetterTokens(self._tokens, lambda token: self._text([token]))
        self._held: GenaiPrefix | None = None
        self.model_info = ModelInfo(
            model=folder.name,
            engine="onnxruntime-genai",
            weights_sha256=weights_sha256,
            quantization=quantization,
            context_tokens=self._context_tokens,
            max_images=0,
            max_options=len(OPTION_LETTERS),
            device="CPU",
        )

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[GenaiPrefix]:
        """Return the prefix in a generator; read it only if the generator holds another one."""
        digest = prefix.digest
        if self._held is None or self._held.digest != digest:
            self._held = None
            generator, tokens = self._generator(), self._prefix_tokens(prefix)
            self._read(generator, tokens, call)
            self._held = GenaiPrefix(digest=digest, generator=generator, token_count=len(tokens), read_by=call)
        yield self._held

    def score(self, prefix: GenaiPrefix, question: Question, call: RequestContext) -> Sequence[float]:
        """Rewind the generator to the prefix, read the question and weigh the letters of its options."""
        prefix.generator.rewind_to(prefix.token_count)
        call.add_usage(cached_tokens=0 if prefix.read_by is call else prefix.token_count)
        asked = self._parts_tokens(question.parts) + self._tokens(letter_options(question.options) + self._after)
        self._read(prefix.generator, asked, call)
        call.enter_segment(DECODE)
        return self._letters.logprobs(prefix.generator.get_logits()[0, -1], len(question.options))

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Write with a new generator, which replaces that of the last prefix."""
        # Release the old generator first, because memory may not hold two.
        self._held = None
        generator = self._generator(schema, seed)
        self._read(generator, self._prefix_tokens(prompt) + self._tokens(self._after), call)
        call.enter_segment(DECODE)
        tokens: list[int] = []
        while len(tokens) < max_tokens and not generator.is_done():
            call.check()
            generator.generate_next_token()
            tokens.append(int(generator.get_next_tokens()[0]))
            call.add_usage(completion_tokens=1)
        return self._text([token for token in tokens if token not in self._tokenizer.eos_token_ids])

    def close(self) -> None:
        """Drop the generator, the model and the tokenizer."""
        self._held = None
        self._model = self._tokenizer = None

    def _generator(self, schema: dict[str, Any] | None = None, seed: int = 0) -> Any:
        params = og.GeneratorParams(self._model)
        sampling = {"do_sample": True, "random_seed": seed, "top_k": 0} if seed else {"do_sample": False}
        params.set_search_options(max_length=self._context_tokens, **sampling)
        if schema is not None:
            params.set_guidance("json_schema", json.dumps(schema))
        return og.Generator(self._model, params)

    def _read(self, generator: Any, tokens: list[int], call: RequestContext) -> None:
        whole = generator.token_count() + len(tokens)
        # The last position is reserved for a generated token.
        if whole >= self._context_tokens:
            raise InvalidRequestError(f"the prompt has {whole} tokens, and the context holds {self._context_tokens}")
        call.enter_segment(PREFILL)
        for start in range(0, len(tokens), _BATCH_TOKENS):
            call.check()
            generator.append_tokens(np.array(tokens[start : start + _BATCH_TOKENS], np.int32))
        call.add_usage(prompt_tokens=len(tokens))

    def _prefix_tokens(self, prompt: Prompt) -> list[int]:
        lead = self._tokenizer.encode("").tolist()
        return [*lead, *self._tokens(self._before), *self._parts_tokens(prompt.parts)]

    def _parts_tokens(self, parts: Sequence[Part]) -> list[int]:
        """Tokenize part by part: no token crosses the end of a part, so that prefixes stay reusable."""
        texts = [plain_text(part) for part in parts if not isinstance(part, Image)]
        return [token for text in texts for token in self._tokens(text + "\n")]

    def _tokens(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text.encode(errors="replace").decode()).tolist()
        return tokens[self._lead :]

    def _text(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(np.array(tokens, np.int32))) if tokens else ""

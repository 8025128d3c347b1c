"""Tokenize prompts with images for a transformers model."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import cv2
import torch
from transformers import AutoImageProcessor
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

from norm_core.decoding.picture_decoding import decode_picture
from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.options import OPTION_LETTERS
from norm_core.engines.prompt import Image, Part, write_part
from norm_core.engines.transformers.picture_encoder import PictureEmbedding
from norm_core.records.record import record

# A placeholder for the question, which no chat template changes.
_PLACEHOLDER = "TACTFUL-ASKS"
# Settings that cut a picture into several pictures, by the family's image processor.
_TILING_SETTINGS = ("crop_to_patches", "do_image_splitting", "do_pan_and_scan")
# The outputs of a processor that are not features of a picture.
_NON_FEATURES = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}


@record
class TokenSpan:
    """Tokens that are read together, a mask of those that belong to an image, and the image's features.

    `embeddings` replace the pixels of images that were encoded apart.
    """

    ids: torch.Tensor
    pictured: torch.Tensor
    features: dict[str, torch.Tensor]
    embeddings: tuple[PictureEmbedding, ...] = ()

    @classmethod
    def of_words(cls, ids: torch.Tensor) -> "TokenSpan":
        """Make a span without images from token ids."""
        return cls(ids=ids, pictured=torch.zeros_like(ids), features={})

    def __len__(self) -> int:
        """The number of tokens, with those of images."""
        return int(self.ids.shape[-1])


def can_join(spans: Sequence[TokenSpan]) -> bool:
    """Whether the images' features have the same shape except for their count."""
    shapes = [
        {name: value.shape[_find_count_dimension(span.features) + 1 :] for name, value in span.features.items()}
        for span in spans
        if span.features
    ]
    return all(shape == shapes[0] for shape in shapes)


def join_spans(spans: Sequence[TokenSpan]) -> TokenSpan:
    """Return spans that can join as one."""
    image_features = [span.features for span in spans if span.features]
    return TokenSpan(
        ids=torch.cat([span.ids for span in spans], dim=-1),
        pictured=torch.cat([span.pictured for span in spans], dim=-1),
        features={
            name: torch.cat(
                [features[name] for features in image_features], dim=_find_count_dimension(image_features[0])
            )
            for name in (image_features[0] if image_features else ())
        },
        embeddings=tuple(embedding for span in spans for embedding in span.embeddings),
    )


def _find_count_dimension(features: dict[str, torch.Tensor]) -> int:
    """Return the dimension that counts images: the Idefics families put a batch dimension before it."""
    return 1 if "pixel_values" in features and features["pixel_values"].ndim == 5 else 0


ReadPicture = Callable[[Image], TokenSpan]


class PromptTokenizer:
    """Turn parts into token spans. Only the chat template places images; words cannot."""

    def __init__(self, tokenizer: Any, processor: Any | None, template: str | None) -> None:
        self.tokenizer = tokenizer
        self.processor = processor
        self._picture_settings: dict[str, bool] = {}
        self._control = re.compile("|".join(re.escape(token) for token in _list_control_tokens(tokenizer)) or r"(?!)")
        self._derive_frame(template)

    @property
    def has_vision(self) -> bool:
        """Whether the model takes images."""
        return self.processor is not None

    def tokenize_opening(self, parts: Sequence[Part], read_picture: ReadPicture | None = None) -> list[TokenSpan]:
        """Return the start of a turn and the parts, without the end of the turn; `read_picture` reads each image."""
        head = self.head_of_picture if parts and isinstance(parts[0], Image) else self.head
        return self._tokenize_all([head, *self._join_parts(parts)], read_picture or self.tokenize_picture)

    def tokenize_closing(self, parts: Sequence[Part], read_picture: ReadPicture | None = None) -> list[TokenSpan]:
        """Return further parts, the end of the turn and the start of the model's turn."""
        return self._tokenize_all(["\n", *self._join_parts(parts), self.tail], read_picture or self.tokenize_picture)

    def limit_picture_tokens(self, usual: Image, max_tokens: int) -> None:
        """Stop tiling pictures if the tiles of a usual one exceed the limit.

        Raises EngineFailedError if the picture exceeds it without tiles.
        """
        if self.processor and len(self.tokenize_picture(usual)) > max_tokens:
            image_processor = self.processor.image_processor
            self._picture_settings = {name: False for name in _TILING_SETTINGS if hasattr(image_processor, name)}
        if (token_count := len(self.tokenize_picture(usual))) > max_tokens:
            raise EngineFailedError(
                f"{self.tokenizer.name_or_path}: a picture of 448 x 336 px takes {token_count} tokens, and "
                f"{max_tokens} have room; correct picture_tokens in the manifest, set context_tokens higher, or "
                "max_images lower"
            )

    def find_letter_tokens(self) -> list[list[int]]:
        """Return the tokens of each answer letter, with and without a space before it."""
        ids_by_letter = []
        for letter in OPTION_LETTERS:
            encoded = [self.tokenizer.encode(form, add_special_tokens=False) for form in (letter, f" {letter}")]
            ids_by_letter.append(sorted({ids[0] for ids in encoded if len(ids) == 1}))
        return ids_by_letter

    def _derive_frame(self, template: str | None) -> None:
        """Derive the control text around a message and the image mark from the chat template."""
        question: Any = [{"type": "text", "text": _PLACEHOLDER}] if self.processor else _PLACEHOLDER
        self.mark = getattr(self.processor, "image_token", "")
        self.has_template = bool(template)
        if not template:
            self.head, self.tail = self.tokenizer.bos_token or "", "\nAnswer:"
            self.head_of_picture = self.head
            return
        self.head, _, self.tail = self._render(question, template).partition(_PLACEHOLDER)
        if self.processor:
            picture = {"type": "image"}
            before, between, _ = self._render([*question, picture, *question], template).split(_PLACEHOLDER)
            # Some templates move all images to the front.
            self.mark = (between or before.removeprefix(self.head)).strip()
            self.head_of_picture = self._render([picture, *question], template).partition(self.mark)[0]
        else:
            self.head_of_picture = self.head

    def _render(self, content: Any, template: str) -> str:
        turn = [{"role": "user", "content": content}]
        options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        rendered: str = self.tokenizer.apply_chat_template(turn, chat_template=template, **options)
        return rendered

    def _join_parts(self, parts: Sequence[Part]) -> Iterable[str | Image]:
        """Join the parts as Prompt.as_text does, but keep images separate and break control tokens in the text."""
        for index, part in enumerate(parts):
            if index:
                yield "\n"
            yield part if isinstance(part, Image) else self._control.sub(_break_token, write_part(part))

    def _tokenize_all(self, items: Iterable[str | Image], read_picture: ReadPicture) -> list[TokenSpan]:
        spans = []
        for is_picture, group in groupby(items, lambda item: isinstance(item, Image)):
            if is_picture:
                spans += [read_picture(item) for item in group if isinstance(item, Image)]
            else:
                text = "".join(item for item in group if isinstance(item, str))
                ids = self.tokenizer.encode(text, add_special_tokens=False)
                spans.append(TokenSpan.of_words(torch.tensor([ids], dtype=torch.long)))
        return [span for span in spans if len(span)]

    def tokenize_picture(self, image: Image) -> TokenSpan:
        """Return the tokens of an image, and its features from the processor.

        Raises InvalidRequestError if the model has no vision, or if the image cannot be read.
        """
        if self.processor is None:
            raise InvalidRequestError("the prompt has a picture, and the model reads only words; name a vision model")
        pixels = decode_picture(image.jpeg)
        if pixels is None:
            raise InvalidRequestError(
                f"a picture of {len(image.jpeg)} bytes cannot be decoded as JPEG; encode pictures as JPEG"
            )
        height, width = pixels.shape[:2]
        try:
            outputs = self.processor(
                text=[self.mark],
                images=[cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)],
                return_tensors="pt",
                **self._picture_settings,
            )
        except ValueError as error:
            raise InvalidRequestError(
                f"a picture of {width}x{height} cannot be read: {error}; send a larger picture"
            ) from None
        features = {name: value for name, value in outputs.items() if name not in _NON_FEATURES}
        # Families that do not need the mask omit it.
        no_mask = torch.zeros_like(outputs["input_ids"])
        pictured = outputs.get("mm_token_type_ids", outputs.get("token_type_ids", no_mask))
        return TokenSpan(ids=outputs["input_ids"], pictured=pictured, features=features)


def load_tokenizer(folder: Path, config: Any, tokenizer: Any, *, has_vision: bool) -> PromptTokenizer:
    """Return the tokenizer of a checkpoint; its processor accepts only images, because video needs torchvision.

    Raises EngineFailedError if transformers has no picture processor for the family.
    """
    if not has_vision:
        return PromptTokenizer(tokenizer, None, tokenizer.chat_template)
    if type(config) not in PROCESSOR_MAPPING:
        raise EngineFailedError(
            f"{folder}: transformers has no picture processor for {config.model_type}; "
            "set max_images: 0 or name another model"
        )
    processor_class: Any = PROCESSOR_MAPPING[type(config)]

    class ImageOnly(processor_class):  # type: ignore[misc]  # the family is known only from the checkpoint
        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            return None if argument is None else super().check_argument_for_proper_class(name, argument)

    settings, _ = processor_class.get_processor_dict(folder, local_files_only=True)
    template = settings.pop("chat_template", None) or tokenizer.chat_template
    for part in ("processor_class", "image_processor", "video_processor"):
        settings.pop(part, None)
    image_processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
    parts = {"image_processor": image_processor, "tokenizer": tokenizer, "video_processor": None}
    parts = {name: part for name, part in parts.items() if name in processor_class.get_attributes()}
    return PromptTokenizer(tokenizer, ImageOnly(**parts, **settings), template)


def _list_control_tokens(tokenizer: Any) -> list[str]:
    """Return the control tokens, longest first; spaces and newlines stay text."""
    added = [token for token in tokenizer.added_tokens_decoder.values() if token.special]
    return sorted({token.content for token in added if token.content.strip()}, key=len, reverse=True)


def _break_token(match: re.Match[str]) -> str:
    return f"{match.group()[0]} {match.group()[1:]}"

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
_ASKED = "TACTFUL-ASKS"
# Settings that cut a picture into several pictures, by the family's image processor.
_TILING = ("crop_to_patches", "do_image_splitting", "do_pan_and_scan")
_NOT_FEATURES = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}


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
        """The number of tokens, those of images included."""
        return int(self.ids.shape[-1])


def can_join(spans: Sequence[TokenSpan]) -> bool:
    """Whether the images' features have the same shape except for their count."""
    pictured = [(span.features, _count_dimension(span.features)) for span in spans if span.features]
    shapes = [{name: value.shape[along + 1 :] for name, value in features.items()} for features, along in pictured]
    return all(shape == shapes[0] for shape in shapes)


def join_spans(spans: Sequence[TokenSpan]) -> TokenSpan:
    """Return spans that can join as one."""
    pictured = [span.features for span in spans if span.features]
    return TokenSpan(
        ids=torch.cat([span.ids for span in spans], dim=-1),
        pictured=torch.cat([span.pictured for span in spans], dim=-1),
        features={
            name: torch.cat([features[name] for features in pictured], dim=_count_dimension(pictured[0]))
            for name in (pictured[0] if pictured else ())
        },
        embeddings=tuple(embedding for span in spans for embedding in span.embeddings),
    )


def _count_dimension(features: dict[str, torch.Tensor]) -> int:
    """Return the dimension that counts images: the Idefics families put a batch dimension before it."""
    return 1 if "pixel_values" in features and features["pixel_values"].ndim == 5 else 0


ReadPicture = Callable[[Image], TokenSpan]


class PromptTokenizer:
    """Turn parts into token spans. Only the chat template places images; words cannot."""

    def __init__(self, tokenizer: Any, processor: Any | None, template: str | None) -> None:
        self.tokenizer, self.processor = tokenizer, processor
        self._picture_settings: dict[str, bool] = {}
        self._control = re.compile("|".join(re.escape(token) for token in _specials(tokenizer)) or r"(?!)")
        self._frame(template)

    @property
    def sees(self) -> bool:
        """Whether the model takes images."""
        return self.processor is not None

    def opening(self, parts: Sequence[Part], read_picture: ReadPicture | None = None) -> list[TokenSpan]:
        """Return the start of a turn and the parts, without the end of the turn; `read_picture` reads each image."""
        head = self.head_of_picture if parts and isinstance(parts[0], Image) else self.head
        return self._pieces([head, *self._joined(parts)], read_picture or self.picture)

    def closing(self, parts: Sequence[Part], read_picture: ReadPicture | None = None) -> list[TokenSpan]:
        """Return further parts, the end of the turn and the start of the model's turn."""
        return self._pieces(["\n", *self._joined(parts), self.tail], read_picture or self.picture)

    def limit_picture_tokens(self, usual: Image, limit: int) -> None:
        """Do not tile pictures if the tiles of a usual one exceed the limit; raise if the picture alone does."""
        if self.processor and len(self.picture(usual)) > limit:
            pictures = self.processor.image_processor
            self._picture_settings = {name: False for name in _TILING if hasattr(pictures, name)}
        if (tokens := len(self.picture(usual))) > limit:
            raise EngineFailedError(
                f"{self.tokenizer.name_or_path}: a picture of 448 x 336 px takes {tokens} tokens, and {limit} have "
                "room; correct picture_tokens in the manifest, set context_tokens higher, or max_images lower"
            )

    def letters(self) -> list[list[int]]:
        """Return the tokens of each answer letter, with and without a space before it."""
        ids_by_letter = []
        for letter in OPTION_LETTERS:
            encoded = [self.tokenizer.encode(form, add_special_tokens=False) for form in (letter, f" {letter}")]
            ids_by_letter.append(sorted({ids[0] for ids in encoded if len(ids) == 1}))
        return ids_by_letter

    def _frame(self, template: str | None) -> None:
        """Derive the control text around a message and the image mark from the chat template."""
        question: Any = [{"type": "text", "text": _ASKED}] if self.processor else _ASKED
        self.mark = getattr(self.processor, "image_token", "")
        self.has_template = bool(template)
        if not template:
            self.head, self.tail = self.tokenizer.bos_token or "", "\nAnswer:"
            self.head_of_picture = self.head
            return
        self.head, _, self.tail = self._rendered(question, template).partition(_ASKED)
        if self.processor:
            picture = {"type": "image"}
            before, between, _ = self._rendered([*question, picture, *question], template).split(_ASKED)
            # Some templates move all images to the front.
            self.mark = (between or before.removeprefix(self.head)).strip()
            self.head_of_picture = self._rendered([picture, *question], template).partition(self.mark)[0]
        else:
            self.head_of_picture = self.head

    def _rendered(self, content: Any, template: str) -> str:
        turn = [{"role": "user", "content": content}]
        options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        rendered: str = self.tokenizer.apply_chat_template(turn, chat_template=template, **options)
        return rendered

    def _joined(self, parts: Sequence[Part]) -> Iterable[str | Image]:
        """Join the parts as Prompt.as_text does, but keep images separate and break control tokens in the text."""
        for index, part in enumerate(parts):
            if index:
                yield "\n"
            yield part if isinstance(part, Image) else self._control.sub(_break_token, write_part(part))

    def _pieces(self, items: Iterable[str | Image], read_picture: ReadPicture) -> list[TokenSpan]:
        pieces = []
        for is_picture, group in groupby(items, lambda item: isinstance(item, Image)):
            if is_picture:
                pieces += [read_picture(item) for item in group if isinstance(item, Image)]
            else:
                text = "".join(item for item in group if isinstance(item, str))
                ids = self.tokenizer.encode(text, add_special_tokens=False)
                pieces.append(TokenSpan.of_words(torch.tensor([ids], dtype=torch.long)))
        return [piece for piece in pieces if len(piece)]

    def picture(self, image: Image) -> TokenSpan:
        """Return an image's tokens and the features that the processor computes."""
        if self.processor is None:
            raise InvalidRequestError("the prompt has a picture, and the model reads words alone; name a vision model")
        pixels = decode_picture(image.jpeg)
        if pixels is None:
            raise InvalidRequestError(
                f"a picture of {len(image.jpeg)} bytes is no JPEG that can be decoded; encode pictures as JPEG"
            )
        height, width = pixels.shape[:2]
        try:
            read = self.processor(
                text=[self.mark],
                images=[cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)],
                return_tensors="pt",
                **self._picture_settings,
            )
        except ValueError as error:
            raise InvalidRequestError(
                f"a picture of {width}x{height} cannot be read: {error}; send a larger picture"
            ) from None
        features = {name: value for name, value in read.items() if name not in _NOT_FEATURES}
        # Families that do not need it omit it.
        pictured = read.get("mm_token_type_ids", read.get("token_type_ids", torch.zeros_like(read["input_ids"])))
        return TokenSpan(ids=read["input_ids"], pictured=pictured, features=features)


def tokenizer_of(folder: Path, config: Any, tokenizer: Any, *, images: bool) -> PromptTokenizer:
    """Return a checkpoint's tokenizer; its processor takes only images, because video needs torchvision."""
    if not images:
        return PromptTokenizer(tokenizer, None, tokenizer.chat_template)
    if type(config) not in PROCESSOR_MAPPING:
        raise EngineFailedError(
            f"{folder}: transformers has no picture processor for {config.model_type}; "
            "set max_images: 0 or name another model"
        )
    kind: Any = PROCESSOR_MAPPING[type(config)]

    class ImageOnly(kind):  # type: ignore[misc]  # the family is known only from the checkpoint
        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            return None if argument is None else super().check_argument_for_proper_class(name, argument)

    settings, _ = kind.get_processor_dict(folder, local_files_only=True)
    template = settings.pop("chat_template", None) or tokenizer.chat_template
    for part in ("processor_class", "image_processor", "video_processor"):
        settings.pop(part, None)
    pictures = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
    parts = {"image_processor": pictures, "tokenizer": tokenizer, "video_processor": None}
    parts = {name: part for name, part in parts.items() if name in kind.get_attributes()}
    return PromptTokenizer(tokenizer, ImageOnly(**parts, **settings), template)


def _specials(tokenizer: Any) -> list[str]:
    """Return the control tokens, longest first; spaces and newlines stay text."""
    added = [token for token in tokenizer.added_tokens_decoder.values() if token.special]
    return sorted({token.content for token in added if token.content.strip()}, key=len, reverse=True)


def _break_token(match: re.Match[str]) -> str:
    return f"{match.group()[0]} {match.group()[1:]}"

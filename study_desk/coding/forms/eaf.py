"""Write ELAN's EAF: one tier per attribute and polarity with a controlled vocabulary, notes on dependent tiers."""

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from pympi.Elan import Eaf, to_adocument

from norm_core.records.speech import Utterance
from study_desk.coding.forms.sheet import (
    Sheet,
    Span,
    in_place_of,
    shown_media,
    tiers,
)
from study_desk.coding.labels import one_line, to_note
from study_desk.log.linked_media import links_from
from study_desk.log.schema import Label

NOTES = " notes"
ORIGIN = "tactful:origin_ns"
SESSION = "tactful:session"
STUDY = "tactful:study"
CODER = "tactful:coder"
_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
_MIMES = {
    ".wav": "audio/x-wav", ".mp4": "video/mp4", ".webm": "video/webm", ".mpg": "video/mpeg", ".mov": "video/quicktime"
}  # fmt: skip
_VOCABULARY = "tactful cues"


def write_eaf(path: Path, sheet: Sheet, *, author: str = "tactful", date: str = "1970-01-01T00:00:00Z") -> None:
    """Write the sheet for ELAN 6. A given date makes the same sheet give the same file."""
    document = new_document(author, date)
    _add_label_types(document)
    for media in shown_media(sheet):
        url, relative = links_from(media, path.parent)
        link_media(document, url, relative, offset_s=media.offset_s)
    document.add_property(ORIGIN, sheet.origin_ns)
    document.add_property(SESSION, one_line(sheet.session))
    for name, spans in tiers(sheet).items():
        if isinstance(spans[0].item, Utterance):
            add_utterances(document, name, spans)
            continue
        document.add_tier(name, "label", ann=one_line(spans[0].item.coder) or None)
        document.add_tier(name + NOTES, "note", parent=name)
        for each in spans:
            _add(document, name, each)
    for code in sorted({_code(label) for label in sheet.labels}):
        document.add_cv_entry(_VOCABULARY, f"cve_{code}", [(code, "und", "")])
    save(document, path)


def new_document(author: str, date: str) -> Eaf:
    """Make an empty EAF 3.0 document, without pympi's default tier and date."""
    document = Eaf(author=author)
    document.remove_tier("default")
    document.remove_linguistic_type("default-lt")
    document.remove_property()
    document.adocument |= {"DATE": date, "FORMAT": "3.0", "VERSION": "3.0", "xsi:noNamespaceSchemaLocation": _SCHEMA}
    document.header |= {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}
    document.add_language("und", lang_label="undetermined (und)")
    document.add_linguistic_type("speech")
    return document


def link_media(document: Eaf, url: str, relative: str, *, offset_s: float = 0.0) -> None:
    """Link a video or sound file by its URL, and by its path from the document, if it has one."""
    mime = _MIMES.get(Path(relative or url).suffix.lower(), "unknown")
    origin_ms = round(offset_s * 1000)
    document.add_linked_file(url, relative or None, mime, time_origin=str(origin_ms) if origin_ms else None)


def add_vocabulary(document: Eaf, name: str, description: str) -> None:
    """Add an empty controlled vocabulary."""
    document.add_controlled_vocabulary(name)
    document.add_cv_description(name, "und", description)


def add_utterances(document: Eaf, tier: str, spans: Iterable[Span]) -> None:
    """Add a tier of speech."""
    document.add_tier(tier, "speech")
    for each in spans:
        _add(document, tier, each)


def save(document: Eaf, path: Path) -> None:
    """Write the document, and replace the file only once it is complete."""
    root = to_adocument(document)
    with in_place_of(path) as part:
        ElementTree.ElementTree(root).write(part, xml_declaration=True, encoding="UTF-8")


def _add_label_types(document: Eaf) -> None:
    add_vocabulary(document, _VOCABULARY, "the cues of this session")
    document.add_linguistic_type("label")
    document.linguistic_types["label"]["CONTROLLED_VOCABULARY_REF"] = _VOCABULARY
    document.add_linguistic_type("note", "Symbolic_Association", timealignable=False)


def _add(document: Eaf, tier: str, each: Span) -> None:
    if isinstance(each.item, Utterance):
        document.add_annotation(tier, each.start_ms, each.end_ms, one_line(each.item.text))
    else:
        document.add_annotation(tier, each.start_ms, each.end_ms, _code(each.item))
        middle_ms = (each.start_ms + each.end_ms) / 2
        document.add_ref_annotation(tier + NOTES, tier, middle_ms, to_note(each.item, instant=each.widened))


def _code(label: Label) -> str:
    return one_line(label.code or label.attribute.value)

"""ELAN's EAF: one tier per attribute and polarity with a controlled vocabulary, notes on dependent tiers."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from pympi.Elan import Eaf, to_adocument

from norm_core.records.flag import Attribute, Polarity, Verdict
from norm_core.records.speech import Utterance
from norm_core.runtime.time import MIN_STAMP_NS
from study_desk.coding.forms.sheet import (
    FormError,
    Sheet,
    Span,
    attributes_in,
    check_session,
    from_ms,
    in_place_of,
    shown_media,
    tiers,
)
from study_desk.coding.labels import from_note, in_order, one_line, to_note
from study_desk.log.linked_media import links_from
from study_desk.log.schema import MONITOR, Label, Review

NOTES = " notes"
ORIGIN = "tactful:origin_ns"
SESSION = "tactful:session"
_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
_MIMES = {
    ".wav": "audio/x-wav", ".mp4": "video/mp4", ".webm": "video/webm", ".mpg": "video/mpeg", ".mov": "video/quicktime"
}  # fmt: skip
_VOCABULARY = "tactful cues"


def write_eaf(path: Path, sheet: Sheet, *, author: str = "tactful", date: str = "1970-01-01T00:00:00Z") -> None:
    """Write the sheet for ELAN 6. A given date makes the same sheet give the same file."""
    document = _empty(author, date)
    for media in shown_media(sheet):
        url, relative = links_from(media, path.parent)
        mime = _MIMES.get(Path(media.path).suffix.lower(), "unknown")
        origin_ms = round(media.offset_s * 1000)
        document.add_linked_file(url, relative or None, mime, time_origin=str(origin_ms) if origin_ms else None)
    document.add_property(ORIGIN, sheet.origin_ns)
    document.add_property(SESSION, one_line(sheet.session))
    for name, spans in tiers(sheet).items():
        if isinstance(spans[0].item, Utterance):
            document.add_tier(name, "speech")
        else:
            document.add_tier(name, "label", ann=one_line(spans[0].item.coder) or None)
            document.add_tier(name + NOTES, "note", parent=name)
        for each in spans:
            _add(document, name, each)
    for code in sorted({_code(label) for label in sheet.labels}):
        document.add_cv_entry(_VOCABULARY, f"cve_{code}", [(code, "und", "")])
    root = to_adocument(document)
    with in_place_of(path) as part:
        ElementTree.ElementTree(root).write(part, xml_declaration=True, encoding="UTF-8")


def _empty(author: str, date: str) -> Eaf:
    """Make an empty EAF 3.0 document with our types and vocabulary, without pympi's default tier and date."""
    document = Eaf(author=author)
    document.remove_tier("default")
    document.remove_linguistic_type("default-lt")
    document.remove_property()
    document.adocument |= {"DATE": date, "FORMAT": "3.0", "VERSION": "3.0", "xsi:noNamespaceSchemaLocation": _SCHEMA}
    document.header |= {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}
    document.add_language("und", lang_label="undetermined (und)")
    document.add_controlled_vocabulary(_VOCABULARY)
    document.add_cv_description(_VOCABULARY, "und", "the cues of this session")
    document.add_linguistic_type("speech")
    document.add_linguistic_type("label")
    document.linguistic_types["label"]["CONTROLLED_VOCABULARY_REF"] = _VOCABULARY
    document.add_linguistic_type("note", "Symbolic_Association", timealignable=False)
    return document


def _add(document: Eaf, tier: str, each: Span) -> None:
    if isinstance(each.item, Utterance):
        document.add_annotation(tier, each.start_ms, each.end_ms, one_line(each.item.text))
    else:
        document.add_annotation(tier, each.start_ms, each.end_ms, _code(each.item))
        middle_ms = (each.start_ms + each.end_ms) / 2
        document.add_ref_annotation(tier + NOTES, tier, middle_ms, to_note(each.item, instant=each.widened))


def _code(label: Label) -> str:
    return one_line(label.code or label.attribute.value)


def read_eaf(path: Path, coder: str = "", origin_ns: int | None = None, session: str = "") -> tuple[Label, ...]:
    """Read labels from tiers whose names contain a polarity and an attribute. Ignores verdicts and other tiers."""
    root = _root(path, session)
    if origin_ns is None:
        origin_ns = _origin(root)
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in root.iter("TIME_SLOT")}
    labels: list[Label] = []
    for tier, annotation, note in _annotations(root):
        name = tier.get("TIER_ID", "")
        polarity, attribute = _kind(name)
        if not (polarity and attribute) or "verdict" in note:
            continue
        start, end = (slots.get(annotation.get(f"TIME_SLOT_REF{n}")) for n in (1, 2))
        if start is None or end is None:
            where = f"tier {name!r}, annotation {annotation.get('ANNOTATION_ID')}"
            raise FormError(f"{path}: {where} has no time: align it in ELAN, then save again")
        instant = bool(note.pop("instant", False))
        start_ns, end_ns = from_ms(int(start), int(end), origin_ns, instant=instant)
        value = (annotation.findtext("ANNOTATION_VALUE") or "").strip()
        if "code" not in note and value != attribute:
            note["code" if " " not in value else "comment"] = value
        labels.append(
            Label(
                start_ns=start_ns,
                end_ns=end_ns,
                polarity=polarity,
                attribute=attribute,
                coder=coder or _annotator(tier),
                **note,  # type: ignore[arg-type]
            )
        )
    if not labels and not _may_hold_none(root):
        names = ", ".join(tier.get("TIER_ID", "") for tier in root.iter("TIER")) or "none"
        raise FormError(
            f'{path}: has no tier named as "error engagement" or "competence emotions"; it has {names}; rename one'
        )
    return in_order(labels)


def read_verdicts(path: Path, coder: str = "", session: str = "") -> tuple[Review, ...]:
    """Read the verdicts exported by the report. Merges those on one event, which has a tier per attribute."""
    reviews: dict[tuple[str, str], Review] = {}
    for tier, _, note in _annotations(_root(path, session)):
        if "verdict" not in note:
            continue
        polarity, attribute = _kind(tier.get("TIER_ID", ""))
        event_id, reviewer = str(note.get("event_id", "")), coder or _annotator(tier)
        relabelled = note["verdict"] is Verdict.RELABEL
        before = reviews.get((event_id, reviewer))
        attributes = {*(before.attributes if before else ()), *([attribute] if relabelled and attribute else [])}
        reviews[event_id, reviewer] = Review(
            event_id=event_id,
            reviewer=reviewer,
            verdict=note["verdict"],  # type: ignore[arg-type]
            polarity=polarity if relabelled else None,
            attributes=tuple(a for a in Attribute if a in attributes),
            severity=note.get("severity") if relabelled else None,  # type: ignore[arg-type]
            note=str(note.get("comment", "")),
            blind=bool(note.get("blind", False)),
        )
    return tuple(reviews.values())


def _root(path: Path, session: str) -> ElementTree.Element:
    try:
        if "<!ENTITY" in path.read_text(encoding="utf-8", errors="replace"):
            raise FormError(f"{path}: declares entities, which ELAN never does; save it in ELAN again")
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise FormError(f"{path}: cannot be read: {error.strerror}; check the path and its permissions") from error
    except ElementTree.ParseError as error:
        raise FormError(f"{path}: is no XML: {error}; save it in ELAN again") from error
    if root.tag != "ANNOTATION_DOCUMENT":
        raise FormError(f"{path}: is no ELAN document: its root is {root.tag}; name an .eaf file that ELAN wrote")
    check_session(str(path), one_line(_property(root, SESSION)), session)
    return root


def _annotations(
    root: ElementTree.Element,
) -> Iterator[tuple[ElementTree.Element, ElementTree.Element, dict[str, object]]]:
    """Yield each time-aligned annotation with its tier and the fields of its note."""
    notes = {
        note.get("ANNOTATION_REF"): note.findtext("ANNOTATION_VALUE") or "" for note in root.iter("REF_ANNOTATION")
    }
    for tier in root.iter("TIER"):
        for annotation in tier.iter("ALIGNABLE_ANNOTATION"):
            yield tier, annotation, from_note(notes.get(annotation.get("ANNOTATION_ID"), ""))


def _annotator(tier: ElementTree.Element) -> str:
    return tier.get("ANNOTATOR") or tier.get("PARTICIPANT") or MONITOR


def _kind(tier: str) -> tuple[Polarity | None, Attribute | None]:
    polarity, attribute = attributes_in(tier, list(Polarity)), attributes_in(tier, list(Attribute))
    return Polarity(polarity) if polarity else None, Attribute(attribute) if attribute else None


def _origin(root: ElementTree.Element) -> int:
    text = _property(root, ORIGIN)
    return max(int(text), MIN_STAMP_NS) if text.lstrip("-").isdigit() else 0


def _property(root: ElementTree.Element, name: str) -> str:
    return next((entry.text or "" for entry in root.iter("PROPERTY") if entry.get("NAME") == name), "")


def _may_hold_none(root: ElementTree.Element) -> bool:
    """Whether a file without labels has empty label tiers, verdicts, or only speech."""
    names = [tier.get("TIER_ID", "") for tier in root.iter("TIER")]
    if any(all(_kind(name)) for name in names) or any("verdict" in note for _, _, note in _annotations(root)):
        return True
    annotated = (tier.get("TIER_ID", "") for tier, _, _ in _annotations(root))
    return any(map(_is_speech, names)) and all(map(_is_speech, annotated))


def _is_speech(tier: str) -> bool:
    return tier.startswith("speech ")

"""ELAN's EAF: a tier an attribute and polarity with a controlled vocabulary, notes on a dependent tier."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

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
    tiers,
)
from study_desk.coding.labels import from_note, in_order, one_line, to_note
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
    """Writes the sheet for ELAN 6. The date is passed in, so that the same sheet gives the same file."""
    root = ElementTree.Element(
        "ANNOTATION_DOCUMENT",
        {
            "AUTHOR": author,
            "DATE": date,
            "FORMAT": "3.0",
            "VERSION": "3.0",
            "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
            "xsi:noNamespaceSchemaLocation": _SCHEMA,
        },
    )
    header = ElementTree.SubElement(root, "HEADER", {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"})
    for name in sheet.media:
        mime = _MIMES.get(Path(name).suffix.lower(), "unknown")
        url = name if "://" in name else f"file://{Path(name).resolve()}"
        attributes = {"MEDIA_URL": url, "MIME_TYPE": mime, "RELATIVE_MEDIA_URL": f"./{Path(name).name}"}
        ElementTree.SubElement(header, "MEDIA_DESCRIPTOR", attributes)
    for key, value in ((ORIGIN, str(sheet.origin_ns)), (SESSION, one_line(sheet.session))):
        ElementTree.SubElement(header, "PROPERTY", {"NAME": key}).text = value
    _Body(root, sheet).write()
    ElementTree.indent(root)
    with in_place_of(path) as part:
        ElementTree.ElementTree(root).write(part, xml_declaration=True, encoding="UTF-8")


class _Body:
    """Time order, tiers and vocabularies; ELAN wants them in that order."""

    def __init__(self, root: ElementTree.Element, sheet: Sheet) -> None:
        self._root, self._sheet = root, sheet
        self._order = ElementTree.SubElement(root, "TIME_ORDER")
        self._slots = self._annotations = 0
        self._codes: set[str] = set()

    def write(self) -> None:
        for name, spans in tiers(self._sheet).items():
            if isinstance(spans[0].item, Utterance):
                self._tier(name, "speech", spans, annotator="")
            else:
                ids = self._tier(name, "label", spans, annotator=spans[0].item.coder)
                self._notes(name, spans, ids)
        for name, extra in (
            ("speech", {}),
            ("label", {"CONTROLLED_VOCABULARY_REF": _VOCABULARY}),
            ("note", {"CONSTRAINTS": "Symbolic_Association"}),
        ):
            alignable = "false" if name == "note" else "true"
            ElementTree.SubElement(
                self._root,
                "LINGUISTIC_TYPE",
                {"LINGUISTIC_TYPE_ID": name, "TIME_ALIGNABLE": alignable, "GRAPHIC_REFERENCES": "false", **extra},
            )
        ElementTree.SubElement(self._root, "LANGUAGE", {"LANG_ID": "und", "LANG_LABEL": "undetermined (und)"})
        ElementTree.SubElement(
            self._root,
            "CONSTRAINT",
            {"STEREOTYPE": "Symbolic_Association", "DESCRIPTION": "1-1 association with a parent annotation"},
        )
        vocabulary = ElementTree.SubElement(self._root, "CONTROLLED_VOCABULARY", {"CV_ID": _VOCABULARY})
        ElementTree.SubElement(vocabulary, "DESCRIPTION", {"LANG_REF": "und"}).text = "the cues of this session"
        for code in sorted(self._codes):
            entry = ElementTree.SubElement(vocabulary, "CV_ENTRY_ML", {"CVE_ID": f"cve_{code}"})
            ElementTree.SubElement(entry, "CVE_VALUE", {"DESCRIPTION": "", "LANG_REF": "und"}).text = code

    def _tier(self, name: str, kind: str, spans: list[Span], annotator: str) -> list[str]:
        attributes = {"LINGUISTIC_TYPE_REF": kind, "TIER_ID": name}
        if annotator:
            attributes |= {"ANNOTATOR": one_line(annotator)}
        tier = ElementTree.SubElement(self._root, "TIER", attributes)
        ids = []
        for span in spans:
            self._annotations += 1
            ids.append(f"a{self._annotations}")
            slots = {
                f"TIME_SLOT_REF{number}": self._slot(time_ms)
                for number, time_ms in enumerate((span.start_ms, span.end_ms), 1)
            }
            holder = ElementTree.SubElement(tier, "ANNOTATION")
            annotation = ElementTree.SubElement(holder, "ALIGNABLE_ANNOTATION", {"ANNOTATION_ID": ids[-1], **slots})
            ElementTree.SubElement(annotation, "ANNOTATION_VALUE").text = self._value(span)
        return ids

    def _value(self, span: Span) -> str:
        if isinstance(span.item, Utterance):
            return one_line(span.item.text)
        code = one_line(span.item.code or span.item.attribute.value)
        self._codes.add(code)
        return code

    def _notes(self, name: str, spans: list[Span], ids: list[str]) -> None:
        attributes = {"LINGUISTIC_TYPE_REF": "note", "PARENT_REF": name, "TIER_ID": name + NOTES}
        tier = ElementTree.SubElement(self._root, "TIER", attributes)
        for span, parent in zip(spans, ids, strict=True):
            if not isinstance(span.item, Utterance):
                self._annotations += 1
                holder = ElementTree.SubElement(tier, "ANNOTATION")
                reference = {"ANNOTATION_ID": f"a{self._annotations}", "ANNOTATION_REF": parent}
                note = ElementTree.SubElement(holder, "REF_ANNOTATION", reference)
                ElementTree.SubElement(note, "ANNOTATION_VALUE").text = to_note(span.item, instant=span.widened)

    def _slot(self, time_ms: int) -> str:
        self._slots += 1
        name = f"ts{self._slots}"
        ElementTree.SubElement(self._order, "TIME_SLOT", {"TIME_SLOT_ID": name, "TIME_VALUE": str(time_ms)})
        return name


def read_eaf(path: Path, coder: str = "", origin_ns: int | None = None, session: str = "") -> tuple[Label, ...]:
    """The labels on tiers whose names hold a polarity and an attribute; verdicts and other tiers are not labels."""
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
        raise FormError(f'{path}: has no tier named as "error engagement" or "competence emotions"; it has {names}')
    return in_order(labels)


def read_verdicts(path: Path, coder: str = "", session: str = "") -> tuple[Review, ...]:
    """The verdicts that the report exported; those of one event, an attribute a tier, are one."""
    found: dict[tuple[str, str], Review] = {}
    for tier, _, note in _annotations(_root(path, session)):
        if "verdict" not in note:
            continue
        polarity, attribute = _kind(tier.get("TIER_ID", ""))
        event_id, reviewer = str(note.get("event_id", "")), coder or _annotator(tier)
        relabelled = note["verdict"] is Verdict.RELABEL
        before = found.get((event_id, reviewer))
        attributes = {*(before.attributes if before else ()), *([attribute] if relabelled and attribute else [])}
        found[event_id, reviewer] = Review(
            event_id=event_id,
            reviewer=reviewer,
            verdict=note["verdict"],  # type: ignore[arg-type]
            polarity=polarity if relabelled else None,
            attributes=tuple(a for a in Attribute if a in attributes),
            severity=note.get("severity") if relabelled else None,  # type: ignore[arg-type]
            note=str(note.get("comment", "")),
            blind=bool(note.get("blind", False)),
        )
    return tuple(found.values())


def _root(path: Path, session: str) -> ElementTree.Element:
    try:
        if "<!ENTITY" in path.read_text(encoding="utf-8", errors="replace"):
            raise FormError(f"{path}: declares entities, which ELAN never does: not read")
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise FormError(f"{path}: cannot be read: {error.strerror}") from error
    except ElementTree.ParseError as error:
        raise FormError(f"{path}: is no XML: {error}") from error
    if root.tag != "ANNOTATION_DOCUMENT":
        raise FormError(f"{path}: is no ELAN document: its root is {root.tag}")
    check_session(str(path), one_line(_property(root, SESSION)), session)
    return root


def _annotations(
    root: ElementTree.Element,
) -> Iterator[tuple[ElementTree.Element, ElementTree.Element, dict[str, object]]]:
    """Each annotation that has times of its own, with its tier and the fields of its note."""
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
    """Whether a file without labels has empty tiers for them, verdicts, or nothing but speech."""
    names = [tier.get("TIER_ID", "") for tier in root.iter("TIER")]
    if any(all(_kind(name)) for name in names) or any("verdict" in note for _, _, note in _annotations(root)):
        return True
    annotated = (tier.get("TIER_ID", "") for tier, _, _ in _annotations(root))
    return any(map(_is_speech, names)) and all(map(_is_speech, annotated))


def _is_speech(tier: str) -> bool:
    return tier.startswith("speech ")

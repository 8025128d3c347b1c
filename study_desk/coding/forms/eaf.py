"""Write and read ELAN's EAF: the speech, and a tier for each code; a dependent tier holds comments."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pympi.Elan import Eaf, to_adocument

from norm_core.files.atomic_file import private_path
from norm_core.records.flag import Polarity, Severity
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.session_log.labels import Sheet, fold_lines, sort_labels
from norm_monitor.session_log.schema import Label, LinkedMedia, make_relative_link
from norm_monitor.session_log.study_file import Code
from study_desk.coding.forms.sheet import (
    CodingTarget,
    FormError,
    FormPart,
    check_session,
    group_speech_by_tier,
    to_stamps_ns,
)

# Properties of a file that we gave to a coder.
ORIGIN = "tactful:origin_ns"
SESSION = "tactful:session"
STUDY = "tactful:study"
CODER = "tactful:coder"

_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
_MIME_TYPES = {
    ".wav": "audio/x-wav", ".mp4": "video/mp4", ".webm": "video/webm", ".mpg": "video/mpeg", ".mov": "video/quicktime"
}  # fmt: skip
# The name of the vocabulary of severities.
_SEVERITIES = "severity"
# The date of a form, as the day of a session would tell a coder more than they should know.
_NO_DATE = "1970-01-01T00:00:00Z"
_INTEGER = re.compile(r"-?\d+", re.ASCII)


class EafForm:
    """An EAF whose tiers are named by codes, or contain a polarity and an attribute."""

    def __init__(self, path: Path) -> None:
        """Raises FormError if the file is not an EAF."""
        self._path = path
        self._root = _read_root(path)
        self._coder = fold_lines(_read_property(self._root, CODER))
        self._slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in self._root.iter("TIME_SLOT")}

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """The session, the study and the coder, if the file states them."""
        session, study = (fold_lines(_read_property(self._root, name)) for name in (SESSION, STUDY))
        return (FormPart(name=session, coder=self._coder, study=study),)

    def read_labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels. Ignores tiers that name no code unless we gave the file to a coder."""
        check_session(str(self._path), fold_lines(_read_property(self._root, SESSION)), target.session)
        stated_ns = self._read_origin()
        origin_ns = target.origin_ns if stated_ns is None else stated_ns
        labels: list[Label] = []
        for tier, annotation, comment in _iterate_annotations(self._root):
            name = tier.get("TIER_ID", "")
            place = f"{self._path}: tier {name!r}, annotation {annotation.get('ANNOTATION_ID')}"
            code = target.find_code(name)
            if code is None and self._coder and not _is_speech(name):
                code = target.require_code(place, name)
            if code is None:
                continue
            start_ms, end_ms = self._read_times_ms(place, annotation)
            value = (annotation.findtext("ANNOTATION_VALUE") or "").strip()
            fields = self._read_value(place, value, code, target, comment)
            times_ns = to_stamps_ns(start_ms, end_ms, origin_ns)
            coder = self._coder or tier.get("ANNOTATOR") or tier.get("PARTICIPANT") or ""
            labels.append(target.make_label(place, times_ns, code, coder=coder, fields=fields))
        if not labels and not self._may_be_empty(target):
            names = ", ".join(tier.get("TIER_ID", "") for tier in self._root.iter("TIER")) or "none"
            raise FormError(
                f'{self._path}: has no tier named like "error engagement" or "competence emotions"; it has {names}; '
                "rename one"
            )
        return sort_labels(labels)

    def _read_times_ms(self, place: str, annotation: ElementTree.Element) -> tuple[int, int]:
        start, end = (self._slots.get(annotation.get(f"TIME_SLOT_REF{number}")) for number in (1, 2))
        if not (start and end and _INTEGER.fullmatch(start) and _INTEGER.fullmatch(end)):
            raise FormError(f"{place} has no time: align it in ELAN, then save again")
        return int(start), int(end)

    def _read_origin(self) -> int | None:
        text = _read_property(self._root, ORIGIN)
        if text and not _INTEGER.fullmatch(text):
            raise FormError(f"{self._path}: its property {ORIGIN} is {text!r}, not a time; save the file again")
        return int(text) if text else None

    def _read_value(self, place: str, value: str, code: Code, target: CodingTarget, comment: str) -> dict[str, Any]:
        """Read severity, code or comment from the value of an annotation, beside its dependent comment."""
        is_of_pack = bool(self._coder)
        severity = _find_severity(value)
        if severity and not (is_of_pack and code.polarity is Polarity.COMPETENCE):
            return {"severity": severity, "comment": comment}
        severities = ", ".join(Severity)
        if is_of_pack and value and code.polarity is Polarity.ERROR:
            raise FormError(
                f"{place}: {value!r} is not a severity; the value of an error is one of {severities}, or empty"
            )
        if value in ("", code.attribute):
            return {"comment": comment}
        if is_of_pack or " " in value:
            return {"comment": value}
        if value in ThresholdTable.shipped().cues or target.find_code(value):
            return {"code": value, "comment": comment}
        raise FormError(
            f"{place}: {value!r} is neither a severity ({severities}), nor a code of the study, nor a cue; "
            "correct it, or write a comment of several words"
        )

    def _may_be_empty(self, target: CodingTarget) -> bool:
        """Whether a file without labels has empty label tiers, or only speech."""
        names = [tier.get("TIER_ID", "") for tier in self._root.iter("TIER")]
        if any(map(target.find_code, names)):
            return True
        annotated = (tier.get("TIER_ID", "") for tier, _, _ in _iterate_annotations(self._root))
        return any(map(_is_speech, names)) and all(map(_is_speech, annotated))


class _PlainTree(ElementTree.TreeBuilder):
    """A tree without a document type: ELAN writes none, and it could declare entities and name other files."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def doctype(self, *_: object) -> None:
        raise FormError(f"{self._path}: declares entities or a document type, which ELAN never does; save it again")


def _read_root(path: Path) -> ElementTree.Element:
    try:
        root = ElementTree.parse(path, ElementTree.XMLParser(target=_PlainTree(path))).getroot()
    except ElementTree.ParseError as error:
        raise FormError(f"{path}: is not XML: {error}; save it in ELAN again") from error
    if root.tag != "ANNOTATION_DOCUMENT":
        raise FormError(f"{path}: is not an ELAN document: its root is {root.tag}; name an .eaf file that ELAN wrote")
    return root


def _iterate_annotations(
    root: ElementTree.Element,
) -> Iterator[tuple[ElementTree.Element, ElementTree.Element, str]]:
    """Yield each time-aligned annotation with its tier and the comment that depends on it."""
    comments = {
        reference.get("ANNOTATION_REF"): (reference.findtext("ANNOTATION_VALUE") or "").strip()
        for reference in root.iter("REF_ANNOTATION")
    }
    for tier in root.iter("TIER"):
        for annotation in tier.iter("ALIGNABLE_ANNOTATION"):
            yield tier, annotation, comments.get(annotation.get("ANNOTATION_ID"), "")


def _read_property(root: ElementTree.Element, name: str) -> str:
    return next((entry.text or "" for entry in root.iter("PROPERTY") if entry.get("NAME") == name), "")


def _find_severity(text: str) -> Severity | None:
    """Return the severity with this name, in upper or lower case."""
    return next((severity for severity in Severity if severity.value == text.strip().casefold()), None)


def _is_speech(tier: str) -> bool:
    """Whether a tier that we wrote holds speech."""
    return tier.startswith("speech ")


def write_eaf(
    path: Path,
    sheet: Sheet,
    media: Iterable[LinkedMedia],
    codebook: Iterable[Code],
    severities: Mapping[Severity, str],
    *,
    study: str,
    coder: str,
) -> None:
    """Write the speech of a sheet, and empty tiers. The value of an error is its severity, of a competence a comment.

    The same input gives the same file.
    """
    document = _make_document(coder)
    document.add_controlled_vocabulary(_SEVERITIES)
    document.add_cv_description(_SEVERITIES, "und", "how severe the error is")
    for severity, meaning in severities.items():
        document.add_cv_entry(_SEVERITIES, f"cve_{severity.value}", [(severity.value, "und", fold_lines(meaning))])
    for polarity in Polarity:
        document.add_linguistic_type(polarity.value)
    document.linguistic_types[Polarity.ERROR.value]["CONTROLLED_VOCABULARY_REF"] = _SEVERITIES
    for link in media:
        relative = make_relative_link(link, path.parent)
        mime_type = _MIME_TYPES.get(Path(relative).suffix.lower(), "unknown")
        origin_ms = round(link.offset_s * 1000)
        time_origin = str(origin_ms) if origin_ms else None
        document.add_linked_file(relative, relative or None, mime_type, time_origin=time_origin)
    properties = {ORIGIN: sheet.origin_ns, SESSION: fold_lines(sheet.session), STUDY: fold_lines(study), CODER: coder}
    for name, value in properties.items():
        document.add_property(name, value)
    for tier, spans in group_speech_by_tier(sheet).items():
        document.add_tier(tier, "speech")
        for span in spans:
            document.add_annotation(tier, span.start_ms, span.end_ms, span.text)
    for code in codebook:
        document.add_tier(fold_lines(code.name), code.polarity.value, ann=coder)
    root = to_adocument(document)
    with private_path(path) as part:
        ElementTree.ElementTree(root).write(part, xml_declaration=True, encoding="UTF-8")


def _make_document(author: str) -> Eaf:
    """Make an empty EAF 3.0 document, without pympi's default tier and date."""
    document = Eaf(author=author)
    document.remove_tier("default")
    document.remove_linguistic_type("default-lt")
    document.remove_property()
    document.adocument |= {
        "DATE": _NO_DATE,
        "FORMAT": "3.0",
        "VERSION": "3.0",
        "xsi:noNamespaceSchemaLocation": _SCHEMA,
    }
    document.header |= {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}
    document.add_language("und", lang_label="undetermined (und)")
    document.add_linguistic_type("speech")
    return document

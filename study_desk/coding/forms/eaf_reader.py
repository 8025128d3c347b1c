"""Read ELAN's EAF: coders' labels and reviewers' verdicts."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from norm_core.records.flag import Attribute, Polarity, Severity, Verdict
from norm_monitor.cues.threshold_table import ThresholdTable
from study_desk.coding.forms.coding_target import CodingTarget, FormPart
from study_desk.coding.forms.eaf import CODER, ORIGIN, SESSION, STUDY
from study_desk.coding.forms.sheet import FormError, attributes_in, check_session, from_ms
from study_desk.coding.labels import from_note, in_order, one_line, severity_named
from study_desk.log.schema import Label, Review

_WHOLE = re.compile(r"-?\d+", re.ASCII)


class EafForm:
    """An EAF whose tiers are named by codes, or contain a polarity and an attribute."""

    def __init__(self, path: Path) -> None:
        """Raises FormError for what is no EAF."""
        self._path, self._root = path, _root(path)
        self._coder = one_line(_property(self._root, CODER))

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """Name the session, the study and the coder, if the file states them."""
        session, study = (one_line(_property(self._root, name)) for name in (SESSION, STUDY))
        return (FormPart(name=session, coder=self._coder, study=study),)

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels. Ignores verdicts, and tiers that name no code unless we gave the file to a coder."""
        check_session(str(self._path), one_line(_property(self._root, SESSION)), target.session)
        stated_ns = self._origin()
        origin_ns = target.origin_ns if stated_ns is None else stated_ns
        slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in self._root.iter("TIME_SLOT")}
        labels: list[Label] = []
        for tier, annotation, note in _annotations(self._root):
            name = tier.get("TIER_ID", "")
            place = f"{self._path}: tier {name!r}, annotation {annotation.get('ANNOTATION_ID')}"
            code = target.find_code(name)
            if code is None and self._coder and not _is_speech(name):
                code = target.code_of(place, name)
            if code is None or "verdict" in note:
                continue
            start, end = (slots.get(annotation.get(f"TIME_SLOT_REF{n}")) for n in (1, 2))
            if not (start and end and _WHOLE.fullmatch(start) and _WHOLE.fullmatch(end)):
                raise FormError(f"{place} has no time: align it in ELAN, then save again")
            instant = bool(note.pop("instant", False))
            value = (annotation.findtext("ANNOTATION_VALUE") or "").strip()
            severity = severity_named(value)
            if severity and not (self._coder and code.polarity is Polarity.COMPETENCE):
                note.setdefault("severity", severity)
            elif self._coder and value and code.polarity is Polarity.ERROR:
                known = ", ".join(Severity)
                raise FormError(f"{place}: {value!r} is no severity; the value of an error is one of {known}, or empty")
            elif "code" not in note and value not in ("", code.attribute):
                if self._coder or " " in value:
                    note["comment"] = value
                elif value in ThresholdTable.shipped().cues or target.find_code(value):
                    note["code"] = value
                else:
                    raise FormError(
                        f"{place}: {value!r} is no severity ({', '.join(Severity)}), no code of the study and no cue; "
                        "correct it, or write a comment of several words"
                    )
            times_ns = from_ms(int(start), int(end), origin_ns, instant=instant)
            coder = self._coder or _annotator(tier)
            labels.append(target.label(place, times_ns, code, coder=coder, fields=note))
        if not labels and not self._may_hold_none(target):
            names = ", ".join(tier.get("TIER_ID", "") for tier in self._root.iter("TIER")) or "none"
            raise FormError(
                f'{self._path}: has no tier named as "error engagement" or "competence emotions"; it has {names}; '
                "rename one"
            )
        return in_order(labels)

    def verdicts(self, reviewer: str = "", session: str = "") -> tuple[Review, ...]:
        """Read the verdicts exported by the report. Merges those on one event, which has a tier per attribute."""
        check_session(str(self._path), one_line(_property(self._root, SESSION)), session)
        reviews: dict[tuple[str, str], Review] = {}
        for tier, _, note in _annotations(self._root):
            if "verdict" not in note:
                continue
            polarity, attribute = _kind(tier.get("TIER_ID", ""))
            event_id, who = str(note.get("event_id", "")), reviewer or _annotator(tier)
            if not who:
                raise FormError(f"{self._path}: tier {tier.get('TIER_ID')!r} names no reviewer; give --coder")
            relabelled = note["verdict"] is Verdict.RELABEL
            before = reviews.get((event_id, who))
            attributes = {*(before.attributes if before else ()), *([attribute] if relabelled and attribute else [])}
            reviews[event_id, who] = Review(
                event_id=event_id,
                reviewer=who,
                verdict=note["verdict"],  # type: ignore[arg-type]
                polarity=polarity if relabelled else None,
                attributes=tuple(a for a in Attribute if a in attributes),
                severity=note.get("severity") if relabelled else None,  # type: ignore[arg-type]
                note=str(note.get("comment", "")),
                blind=bool(note.get("blind", False)),
            )
        return tuple(reviews.values())

    def _origin(self) -> int | None:
        text = _property(self._root, ORIGIN)
        if text and not _WHOLE.fullmatch(text):
            raise FormError(f"{self._path}: its property {ORIGIN} is {text!r}, and no time; save the file again")
        return int(text) if text else None

    def _may_hold_none(self, target: CodingTarget) -> bool:
        """Whether a file without labels has empty label tiers, verdicts, or only speech."""
        names = [tier.get("TIER_ID", "") for tier in self._root.iter("TIER")]
        if any(map(target.find_code, names)) or any("verdict" in note for _, _, note in _annotations(self._root)):
            return True
        annotated = (tier.get("TIER_ID", "") for tier, _, _ in _annotations(self._root))
        return any(map(_is_speech, names)) and all(map(_is_speech, annotated))


class _PlainTree(ElementTree.TreeBuilder):
    """A tree without a document type: ELAN writes none, and it could declare entities and name other files."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def doctype(self, *_: object) -> None:
        raise FormError(f"{self._path}: declares entities or a document type, which ELAN never does; save it again")


def _root(path: Path) -> ElementTree.Element:
    try:
        root = ElementTree.parse(path, ElementTree.XMLParser(target=_PlainTree(path))).getroot()
    except OSError as error:
        raise FormError(f"{path}: cannot be read: {error.strerror}; check the path and its permissions") from error
    except ElementTree.ParseError as error:
        raise FormError(f"{path}: is no XML: {error}; save it in ELAN again") from error
    if root.tag != "ANNOTATION_DOCUMENT":
        raise FormError(f"{path}: is no ELAN document: its root is {root.tag}; name an .eaf file that ELAN wrote")
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
    return tier.get("ANNOTATOR") or tier.get("PARTICIPANT") or ""


def _kind(tier: str) -> tuple[Polarity | None, Attribute | None]:
    polarity, attribute = attributes_in(tier, list(Polarity)), attributes_in(tier, list(Attribute))
    return Polarity(polarity) if polarity else None, Attribute(attribute) if attribute else None


def _property(root: ElementTree.Element, name: str) -> str:
    return next((entry.text or "" for entry in root.iter("PROPERTY") if entry.get("NAME") == name), "")


def _is_speech(tier: str) -> bool:
    return tier.startswith("speech ")

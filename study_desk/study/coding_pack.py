"""Write packs for blind coding."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

from norm_core.files.atomic_file import private_path
from norm_core.files.data_files import shipped_text
from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM
from norm_monitor.privacy.bag_video import VideoOptions, write_video
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import LinkedMedia, parse_media
from norm_monitor.session_log.study_folder import NotWatchableError, Study, StudyError
from norm_monitor.view.pictures import check_bag
from study_desk.coding.forms.boris import BorisObservation, has_length, write_boris_project
from study_desk.coding.forms.eaf import write_eaf
from study_desk.coding.forms.sheet import build_sheet, find_origin_ns
from study_desk.study.outputs import PACK, PACK_MEDIA, note_study_output

_README = shipped_text("study_desk.study", "pack_readme.txt")


@record
class CodingPack:
    """The files of a pack, and remarks on what it lacks."""

    sessions: tuple[str, ...]
    files: tuple[Path, ...]
    remarks: tuple[str, ...]


def write_pack(
    study: Study,
    coder: str,
    folder: Path,
    *,
    copy_media: bool = False,
    make_media: bool = False,
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> CodingPack:
    """Write an EAF for each session that the coder owes, a BORIS project and a table, in the order drawn for them.

    `make_media` makes a video from the bag of each session that names no media.
    """
    file = study.file
    study.check_known("coder", [coder], file.coders)
    if without := [code.id for code in file.codes if code.attribute is None]:
        raise StudyError(
            f"{study.path}: code {', '.join(without)} counts as no attribute of HSRI, so a log cannot hold its labels; "
            "give it an attribute"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StudyError(f"{folder}: is there already, and may hold a coder's work; name a new folder")
    remarks: list[str] = []
    owed = _open_owed_sessions(study, coder, remarks)
    if not owed:
        raise StudyError(f"{coder}: has no session to code: {'; '.join(remarks) or f'see {PROGRAM} study status'}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files: list[Path] = []
    observations = []
    for number, (name, recording) in enumerate(owed.items(), 1):
        if make_media and not recording.info.media:
            media = _make_media(study, name, recording, folder, remarks, progress)
        else:
            media = _link_media(name, recording, folder, remarks, copy_media=copy_media)
        sheet = build_sheet(recording)
        eaf = folder / f"{number:0{len(str(len(owed)))}}_{name}_{coder}.eaf"
        write_eaf(eaf, sheet, media, file.codebook, file.defined_severities, study=file.study, coder=coder)
        playable = tuple(link for link in media if has_length(link.path) and not link.offset_s)
        observations.append(BorisObservation(session=name, origin_ns=sheet.origin_ns, media=playable))
        inside = [path for link in media if (path := Path(link.path)).is_relative_to(folder)]
        files += [eaf, *inside]
        note_study_output(study, eaf, PACK, name)
        for path in inside:
            note_study_output(study, path, PACK_MEDIA, name)
    if silent := [name for name, recording in owed.items() if not (recording.info.media or make_media)]:
        remarks.append(
            f"study.yaml names no media of {', '.join(silent)}: coders see and hear nothing there; see --media"
        )
    project = folder / f"{coder}.boris"
    write_boris_project(project, observations, file.codebook, file.defined_severities, study=file.study, coder=coder)
    files += [project, *_write_guides(study, coder, folder, [*owed])]
    return CodingPack(sessions=tuple(owed), files=tuple(files), remarks=tuple(remarks))


def _write_guides(study: Study, coder: str, folder: Path, sessions: list[str]) -> tuple[Path, Path, Path]:
    """Write the empty table, the codebook and the instructions of a pack."""
    table = folder / f"{coder}.csv"
    codebook = folder / "codebook.csv"
    readme = folder / "README.txt"
    with private_path(table) as part:
        part.write_text("session,coder,code,severity,start_s,end_s,comment\n", encoding="utf-8-sig")
    with private_path(codebook) as part, part.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("name", "key", "definition", "counts", "does not count"))
        writer.writerows(
            (code.name, code.key, code.definition, "; ".join(code.include), "; ".join(code.exclude))
            for code in study.file.codebook
        )
        severities = study.file.defined_severities.items()
        writer.writerows((f"severity {severity}", "", meaning, "", "") for severity, meaning in severities)
    with private_path(readme) as part:
        order = "\n".join(f"{number}. {name}" for number, name in enumerate(sessions, 1))
        part.write_text(_README.format(coder=coder, study=study.file.study, order=order), encoding="utf-8")
    return table, codebook, readme


def _open_owed_sessions(study: Study, coder: str, remarks: list[str]) -> dict[str, Recording]:
    """Open the sessions that the coder has yet to code, in the order drawn for them."""
    owed = {}
    logs = dict(study.logs())
    for name in study.file.sessions_of(coder):
        if name not in logs:
            remarks.append(f"{name}: has no log yet")
        elif (recording := study.recording_of(name)).missing:
            remarks.append(f"{name}: {recording.missing}")
        elif coder in recording.coders:
            remarks.append(f"{name}: coded already")
        else:
            try:
                owed[name] = study.recording_for_coders(name)
            except NotWatchableError as error:
                remarks.append(str(error))
    return owed


def _link_media(
    name: str, recording: Recording, folder: Path, remarks: list[str], *, copy_media: bool
) -> tuple[LinkedMedia, ...]:
    """Link or copy the media of a session that are there, if it names who agreed to be watched."""
    all_media = [parse_media(text) for text in recording.info.media]
    if not all_media:
        return ()
    if not recording.info.participants:
        remarks.append(_name_nobody(name))
        return ()
    links = []
    for media in all_media:
        path = Path(media.path)
        if not path.is_file():
            remarks.append(f"{name}: {media.path} is not there, so it is left out")
            continue
        linked = path
        if copy_media:
            linked = folder / "media" / f"{name}_{path.name}"
            linked.parent.mkdir(mode=0o700, exist_ok=True)
            shutil.copyfile(path, linked)
        links.append(LinkedMedia(path=str(linked), offset_s=media.offset_s))
        if not has_length(str(linked)):
            remarks.append(f"{name}: the length of {path.name} is unknown, so the BORIS project lacks it")
        elif media.offset_s:
            remarks.append(f"{name}: {path.name} has an offset, so the BORIS project lacks it; code it in ELAN")
    return tuple(links)


def _make_media(  # noqa: PLR0917
    study: Study,
    name: str,
    recording: Recording,
    folder: Path,
    remarks: list[str],
    progress: Callable[[int, int], None],
) -> tuple[LinkedMedia, ...]:
    """Make the video of a session from its bag. With every consent, faces and voices are as recorded."""
    bag = study.file.sessions[name].bag
    if not bag or not (study.folder / bag).exists():
        remarks.append(f"{name}: study.yaml names no media and no bag that is there: coders see and hear nothing there")
        return ()
    if not recording.info.participants:
        remarks.append(_name_nobody(name))
        return ()
    check_bag(recording, study.folder / bag)
    video = folder / "media" / f"{name}.mp4"
    video.parent.mkdir(mode=0o700, exist_ok=True)
    options = VideoOptions(start_ns=find_origin_ns(recording), audible_ns=None, shows_faces=True)
    report = write_video(study.folder / bag, video, options, progress=progress)
    remarks += [f"{name}: {remark}" for remark in report.remarks]
    return (LinkedMedia(path=str(video)),)


def _name_nobody(name: str) -> str:
    return f"{name}: media left out, as study.yaml names no participant who agreed to be watched: add them to it"

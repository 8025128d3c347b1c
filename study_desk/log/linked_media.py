"""The video and sound files of a session, and where in them its time begins."""

import os
import re
from pathlib import Path

from norm_core.records.record import record

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")


@record
class LinkedMedia:
    """A file or a URL. The session's time zero lies `offset_s` into it; negative: the camera started later."""

    path: str
    offset_s: float = 0.0

    @property
    def is_there(self) -> bool:
        """Whether the file exists. A URL is not asked."""
        return "://" in self.path or Path(self.path).is_file()


def linked_media(text: str) -> LinkedMedia:
    """Parse FILE or FILE=SECONDS, as in --media cam2.mp4=3.2."""
    path, _, offset = text.rpartition("=")
    if path and _NUMBER.fullmatch(offset) and not Path(text).exists():
        return LinkedMedia(path=path, offset_s=float(offset))
    return LinkedMedia(path=text)


def links_from(media: LinkedMedia, folder: Path) -> tuple[str, str]:
    """Return the URL of a file, and its path from a folder."""
    if "://" in media.path:
        return media.path, ""
    path = Path(media.path).resolve()
    return path.as_uri(), f"./{Path(os.path.relpath(path, folder.resolve())).as_posix()}"

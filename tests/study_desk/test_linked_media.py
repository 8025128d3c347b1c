"""Media of several cameras: where they begin, and links that lead to them."""

from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import pytest

from study_desk.coding.forms.eaf import write_eaf
from study_desk.coding.forms.sheet import Sheet, remarks
from study_desk.log.schema import LinkedMedia, linked_media


@pytest.mark.parametrize(
    ("text", "path", "offset_s"),
    [
        ("a.mp4", "a.mp4", 0),
        ("a.mp4=3.2", "a.mp4", 3.2),
        ("a.mp4=-1", "a.mp4", -1),
        ("a.mp4=.5", "a.mp4", 0.5),
        ("take=2.mp4", "take=2.mp4", 0),
        ("a.mp4=nan", "a.mp4=nan", 0),
        ("https://x.org/a.mp4=4", "https://x.org/a.mp4", 4),
        ("=3", "=3", 0),
    ],
)
def test_a_file_may_have_an_offset(text: str, path: str, offset_s: float) -> None:
    assert linked_media(text) == LinkedMedia(path=path, offset_s=offset_s)


def test_a_file_that_is_named_like_one_with_an_offset_is_taken_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "take=2").touch()
    assert linked_media(str(tmp_path / "take=2")).offset_s == 0


def test_an_eaf_links_to_each_camera_from_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "video files").mkdir()
    (tmp_path / "forms").mkdir()
    cameras = [tmp_path / "video files" / name for name in ("front.mp4", "side ü.mp4", "late.mp4")]
    for camera in cameras:
        camera.touch()
    media = (str(cameras[0]), f"{cameras[1]}=3.2", f"{cameras[2]}=-2", "/nowhere/a.mp4=1")
    sheet = Sheet(origin_ns=0, end_ns=10**9, labels=(), media=media, session="S1")
    write_eaf(tmp_path / "forms/S1.eaf", sheet)
    found = list(ElementTree.parse(tmp_path / "forms/S1.eaf").iter("MEDIA_DESCRIPTOR"))
    assert [Path(unquote(urlparse(each.get("MEDIA_URL", "")).path)) for each in found] == cameras[:2]
    there = [(tmp_path / "forms" / each.get("RELATIVE_MEDIA_URL", "")).resolve() for each in found]
    assert there == cameras[:2]
    assert [each.get("TIME_ORIGIN") for each in found] == [None, "3200"]
    notes = " ".join(remarks(sheet))
    assert "not found from here: /nowhere/a.mp4" in notes
    assert f"which ELAN cannot place: {cameras[2]}" in notes

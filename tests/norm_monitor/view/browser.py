"""Headless Chromium, driven over its debugging pipe: no driver and no port."""

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.patience import PATIENCE_S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian, Ubuntu: apt install chromium)"
)
_AXE = importlib.util.find_spec("axe_playwright_python")
needs_axe = pytest.mark.skipif(_AXE is None, reason="axe is not installed (it is in the test group)")

# Chromium evaluated a script in a page that was just replaced.
_LEFT = "Inspected target navigated or closed"


class BrowserError(RuntimeError):
    """The page or the browser said no."""


class Browser:
    """One page in one browser of its own; every wait has a deadline."""

    def __init__(self, profile: Path, *, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        if CHROMIUM is None:
            raise BrowserError("chromium is not installed")
        to_read, self._to = os.pipe()
        self._from, from_write = os.pipe()
        # Above 3 and 4, where Chromium looks for its ends of the pipes.
        child_in, child_out = (fcntl.fcntl(axis, fcntl.F_DUPFD, 10) for axis in (to_read, from_write))
        command = [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-extensions", f"--user-data-dir={profile}", f"--window-size={width},{height}",
            "--hide-scrollbars", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        begin = "import os, sys; [os.dup2(int(a), n) for n, a in ((3, sys.argv[1]), (4, sys.argv[2]))]"
        begin += "; os.execv(sys.argv[3], sys.argv[3:])"
        self._process = subprocess.Popen(
            [sys.executable, "-c", begin, str(child_in), str(child_out), *command],
            pass_fds=(child_in, child_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for descriptor in (to_read, from_write, child_in, child_out):
            os.close(descriptor)
        os.set_blocking(self._from, False)
        self._received = b""
        self._last_id = 0
        self.events: list[dict[str, Any]] = []
        self._session = ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.size(width, height)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def size(self, width: int, height: int, scale: float = 1) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def open(self, url: str, timeout_s: float = PATIENCE_S) -> None:
        """Opens a page and waits until it says that it is ready."""
        self.run("window.isLeft = true")  # the page that is open may be ready too
        is_left = "loaderId" in self.send("Page.navigate", url=url)  # there is none where only the fragment changes
        self.until(
            f"!({json.dumps(is_left)} && window.isLeft) && document.documentElement?.dataset.ready === 'yes'", timeout_s
        )

    def run(self, script: str) -> Any:
        """The value of an expression; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def until(self, script: str, timeout_s: float = PATIENCE_S) -> Any:
        """Waits for an expression to be true, also over a page that is left meanwhile."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                if value := self.run(script):
                    return value
            except BrowserError as error:
                if _LEFT not in str(error):
                    raise
            if time.monotonic() > deadline_s:
                raise BrowserError(f"not true within {timeout_s} s: {script}")

    def key(self, key: str, *, code: int = 0) -> None:
        """Presses a key, as a person would."""
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        common: dict[str, Any] = {
            "key": key,
            "windowsVirtualKeyCode": code or (ord(key.upper()) if len(key) == 1 else 0),
        }
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def point(self, x: float, y: float) -> None:
        """Move the pointer."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def send(self, method: str, timeout_s: float = PATIENCE_S, **parameters: Any) -> dict[str, Any]:
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        deadline_s = time.monotonic() + timeout_s
        while True:
            answer = self._receive(deadline_s, method)
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _receive(self, deadline_s: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._received:
            try:
                more = os.read(self._from, 1 << 20)
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    raise BrowserError(f"{method}: no answer") from None
                time.sleep(0.002)  # between looks at the pipe, until the deadline
                continue
            if not more:
                raise BrowserError("the browser ended")
            self._received += more
        message, _, self._received = self._received.partition(b"\0")
        return dict(json.loads(message))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._to)
        os.close(self._from)
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(PATIENCE_S)


def text(browser: Browser, selector: str) -> str:
    """Return the words that the first element of a selector shows."""
    return str(browser.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))


def faults(browser: Browser) -> list[Any]:
    """Return what the page threw, and the errors that the browser logged."""
    return [
        event["params"]
        for event in browser.events
        if event.get("method") == "Runtime.exceptionThrown"
        or (event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
    ]


def inaccessible(browser: Browser) -> Any:
    """Return what axe finds, as rules with the elements that break them."""
    assert _AXE is not None
    assert _AXE.submodule_search_locations is not None
    script = Path(_AXE.submodule_search_locations[0], "axe.min.js").read_text(encoding="utf-8")
    browser.send("Runtime.evaluate", expression=script)
    return browser.run("axe.run(document).then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")

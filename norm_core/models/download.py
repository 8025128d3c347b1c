"""List a repository on the hub or a mirror, and download its files: resume after an interruption, and verify."""

import contextlib
import errno
import hashlib
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError

from norm_core.engines.openai.address import check_server_url
from norm_core.models.manifest import FilePath
from norm_core.models.store import sha256_of_file
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

HUB = "https://huggingface.co"
_MAX_LISTING_BYTES = 64_000_000
_BLOCK_BYTES = 1 << 18

Progress = Callable[[str, int, int | None], None]


class PullError(TactfulError):
    """Weights cannot be downloaded, or do not match the expected hash."""

    exit_code = 1


class UnreachableError(PullError):
    """The server cannot be reached."""


@record
class FileRequest:
    """A file to download, with its known size and hash; `version` separates partial files of different versions."""

    path: str
    url: str
    version: str = ""
    size_bytes: int | None = None
    sha256: str = ""
    git_sha1: str = ""


@record
class DownloadSettings:
    """Network settings; the token goes only to the named host, never to a redirect target."""

    token: str = field(default="", repr=False)
    timeout_s: float = 30.0
    tries: int = 4
    pause_s: float = 1.0


def fetch(wanted: FileRequest, folder: Path, settings: DownloadSettings, progress: Progress | None = None) -> str:
    """Download a file into `folder` and return its SHA-256; keep a partial file for the next call."""
    target = folder / wanted.path
    part = target.with_name(f"{target.name}.{wanted.version[:12] or 'any'}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not part.is_file() or _size(part) != wanted.size_bytes:
            _complete(wanted, part, settings, progress)
        actual = _checked(wanted, part)
        part.replace(target)
    except OSError as error:
        raise PullError(f"{wanted.path}: {_reason(error, folder)}") from error
    return actual


def get(url: str, settings: DownloadSettings, start: int = 0) -> http.client.HTTPResponse:
    """Return the response to a GET, from the byte `start` if the server supports it."""
    try:
        check_server_url(url)
    except ValueError as error:
        raise PullError(str(error)) from error
    request = urllib.request.Request(url, headers={"User-Agent": "tactful", "Accept-Encoding": "identity"})
    if settings.token:
        request.add_unredirected_header("Authorization", f"Bearer {settings.token}")
    if start:
        request.add_header("Range", f"bytes={start}-")
    response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=settings.timeout_s)
    return response


def describe_refusal(url: str, error: urllib.error.HTTPError) -> PullError:
    """Describe a server's refusal for a user."""
    advice = {
        401: "it wants a token, or it has no such repository: check the repository's name; for a gated model, accept "
        "its terms on the hub and set HF_TOKEN",
        403: "it is not for this token: accept the model's terms on the hub and set HF_TOKEN",
        404: "the server has no such file: look at the repository's name, the revision and the mirror",
    }.get(error.code, "try again later or name another server with --mirror")
    return PullError(f"{url}: HTTP {error.code} {error.reason}; {advice}")


def _complete(wanted: FileRequest, part: Path, settings: DownloadSettings, progress: Progress | None) -> None:
    """Complete `part`. Retry a network fault from the last byte, as long as further bytes arrive."""
    left, furthest = settings.tries, _size(part)
    while True:
        before = _size(part)
        try:
            _append(wanted, part, settings, progress)
        except urllib.error.HTTPError as error:
            if error.code == 416 and before:  # the part is complete, or longer than the file
                part.unlink()
            elif error.code < 500 and error.code != 429:
                raise describe_refusal(wanted.url, error) from error
            reason = f"HTTP {error.code} {error.reason}"
        except (http.client.HTTPException, urllib.error.URLError, ConnectionError, TimeoutError) as error:
            reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        else:
            size = _size(part)
            if wanted.size_bytes is None or size == wanted.size_bytes:
                return
            if size > wanted.size_bytes:
                part.unlink()
                raise PullError(f"{wanted.path}: the server sent {size} bytes of a file of {wanted.size_bytes}")
            reason = f"the line ended after {size} of {wanted.size_bytes} bytes"
        left = settings.tries if _size(part) > furthest else left - 1
        furthest = max(furthest, _size(part))
        if left <= 0:
            hint = f"; {_size(part)} bytes are kept, and the same command goes on from there" if _size(part) else ""
            raise UnreachableError(f"{wanted.url}: {reason}{hint}")
        time.sleep(settings.pause_s)


def _append(wanted: FileRequest, part: Path, settings: DownloadSettings, progress: Progress | None) -> None:
    with get(wanted.url, settings, _size(part)) as response:
        # A server that ignores Range sends the whole file with status 200: overwrite the part then.
        resumed = response.status == 206
        with part.open("ab" if resumed else "wb") as stream:
            while block := response.read(_BLOCK_BYTES):
                stream.write(block)
                if progress:
                    progress(wanted.path, stream.tell(), wanted.size_bytes)
            if response.length:  # a read from a broken connection ends without an error
                raise http.client.IncompleteRead(b"", response.length)


def _checked(wanted: FileRequest, part: Path) -> str:
    actual = sha256_of_file(part)
    right = actual == wanted.sha256 if wanted.sha256 else not wanted.git_sha1 or _git_sha1(part) == wanted.git_sha1
    if not right:
        part.unlink()  # it can never become valid, and the next pull must start again
        expected = f"SHA-256 {wanted.sha256}" if wanted.sha256 else f"git's SHA-1 {wanted.git_sha1}"
        raise PullError(
            f"{wanted.path}: what came has the SHA-256 {actual} and should have {expected}; "
            "it was removed: pull again, or name another --mirror"
        )
    return actual


def _git_sha1(path: Path) -> str:
    """Return the hash that git, and so the hub, gives a small file."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _reason(error: OSError, folder: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk of {folder} is full: free some room, then run the same command again; it resumes"
    return f"{error.filename or folder}: {error.strerror or error}" if error.errno else os.fspath(str(error))


class _Large(BaseModel):
    sha256: str
    size: int


class _Sibling(BaseModel):
    path: FilePath = Field(alias="rfilename")
    size: int | None = None
    git_sha1: str | None = Field(None, alias="blobId")
    lfs: _Large | None = None


class _Listing(BaseModel):
    """The fields that are read of the hub's answer about a revision."""

    commit: str = Field(alias="sha", pattern=r"^[0-9a-f]{40}$")
    siblings: list[_Sibling]


def wanted_files(
    repository: str, revision: str, include: tuple[str, ...], server: str, settings: DownloadSettings
) -> tuple[str, list[FileRequest]]:
    """Return the commit of `revision`, and its files that match a pattern in `include`."""
    url = f"{server.rstrip('/')}/api/models/{repository}/revision/{quote(revision, safe='')}?blobs=true"
    try:
        listing = _Listing.model_validate(_json(url, settings))
    except ValidationError as error:
        raise PullError(f"{url}: is no listing of a repository: {error.errors()[0]['msg']}") from error
    chosen = [
        FileRequest(
            path=file.path,
            url=file_url(server, repository, listing.commit, file.path),
            version=listing.commit,
            size_bytes=file.lfs.size if file.lfs else file.size,
            sha256=file.lfs.sha256 if file.lfs else "",
            git_sha1="" if file.lfs else file.git_sha1 or "",
        )
        for file in listing.siblings
        if any(fnmatch(file.path, pattern) for pattern in include)
    ]
    if not chosen:
        raise PullError(f"{repository}: no file at {listing.commit} matches {', '.join(include)}")
    return listing.commit, chosen


def file_url(server: str, repository: str, commit: str, path: str) -> str:
    """Return the address of a repository's file at a commit."""
    return f"{server.rstrip('/')}/{repository}/resolve/{commit}/{quote(path)}"


def _json(url: str, settings: DownloadSettings) -> Any:
    try:
        with get(url, settings) as response:
            return json.loads(response.read(_MAX_LISTING_BYTES))
    except urllib.error.HTTPError as error:
        raise describe_refusal(url, error) from error
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"{url}: cannot be reached: {getattr(error, 'reason', None) or error}") from error
    except ValueError as error:
        raise PullError(f"{url}: answered something that is not JSON") from error

"""A model repository on the hub, or on a mirror with the hub's protocol."""

import http.client
import json
import urllib.error
from fnmatch import fnmatch
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError

from norm_core.models.download import DownloadSettings, FileRequest, PullError, UnreachableError, describe_refusal, get
from norm_core.models.manifest import FilePath

HUB = "https://huggingface.co"
_MAX_LISTING_BYTES = 64_000_000


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

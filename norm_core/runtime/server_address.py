"""Check a server's address, and decide whether it is on this machine."""

import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from norm_core.runtime.wording import hide_password

_PASSWORD = "a password in it would stand in logs: name the variable of a key, api_key_variable"


def check_server_url(url: str) -> str:
    """Check the address of a server, and return it. Raises ValueError if no server can have it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        if parts.scheme not in {"http", "https"} or not host or re.search(r"[\x00-\x20\x7f]", url):
            raise ValueError("it has no scheme or host, or a space")
        if ":" not in host:  # urlsplit has checked an IPv6 address by its brackets
            host.encode("idna")
        if parts.username is not None:
            raise ValueError
    except ValueError as error:
        reason = _PASSWORD if "@" in url else error  # the error may quote a part of a password
        raise ValueError(
            f"{hide_password(url)!r:.200} is not the address of a server ({reason}); write it as http://HOST:8000/v1"
        ) from None
    return url


def is_on_this_machine(url: str) -> bool:
    """Return True for loopback, localhost, a unix socket and this machine's name, without a name look-up."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return False
    if "unix" in parts.scheme.split("+"):
        return True
    own = socket.gethostname().lower().rstrip(".")
    if host in {"localhost", own, own.partition(".")[0]}:
        return host != ""
    if host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified

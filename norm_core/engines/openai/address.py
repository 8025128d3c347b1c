"""Decide whether a server's address is on this machine."""

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit


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

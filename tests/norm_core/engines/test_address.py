"""An address that no server can have is refused with its form, before anything is asked of it."""

import socket

import pytest

from norm_core.engines.openai.served import find_served_model
from norm_core.models.manifest import ModelSource
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.server_address import is_on_this_machine

BAD = [
    "http://[::1", "http://[zz]/v1", "http://[::1]:x/v1", "http://host:99999/v1", "http://host:80:80", "http://",
    "http:///v1", "http://ho st/v1", "http://a\nb/", "http://\0", "http://ä..b/v1", f"http://{'a' * 64}/", "ftp://host/v1",
]  # fmt: skip


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2@host/v1", "http://hunter2@host", "http://u:hunter2@[::1", "http://u:hun/hunter2@host",
        "http://u:hunter2/x@host", "http://u:'hunter2@host", "http://u: hunter2@host", "u:hunter2@host:8000/v1",
        "http:/u:hunter2@host",
    ],
)  # fmt: skip
def test_a_password_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a server") as refused:
        check_config(ModelSource, {"url": url}, "here")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", BAD)
def test_a_malformed_address_is_a_clear_error(url: str) -> None:
    complaint = r"is not the address of a server \(.*\); write it as http://HOST:8000/v1"
    with pytest.raises(ConfigError, match=f"here: url: .*{complaint}"):
        check_config(ModelSource, {"url": url}, "here")
    with pytest.raises(ConfigError, match=complaint):
        find_served_model(url, "model", "")


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        *((f"http://{host}:8000/v1", True) for host in ("127.8.0.1", "[::1]", "0.0.0.0", "LocalHost", "a.localhost")),
        (f"http://{socket.gethostname()}:8000/v1", True),
        ("http+unix://%2Frun%2Fmodel.sock/v1", True),
        *((f"http://{host}:8000/v1", False) for host in ("gpu-box", "192.168.0.7", "localhost.org", "127.0.0.1.org")),
        *((url, False) for url in ("http://127.0.0.1@gpu-box/v1", "http:///v1", "http://[::1/v1")),
    ],
)
def test_only_this_machine_s_addresses_are_here(url: str, is_here: bool) -> None:
    assert is_on_this_machine(url) is is_here

"""Two runs over one session are compared item by item; what depends on the wall's clock is no difference."""

import os
import subprocess
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path

import pytest

from norm_core.runtime.time import NS_PER_S
from norm_monitor.encounters.generate import START_NS
from norm_monitor.encounters.library import find, read
from norm_monitor.replay import node_process
from norm_monitor.replay.node_driver import WINDOWS
from norm_monitor.replay.node_process import MIDDLEWARE, claim_domain, has_room
from tests.sensed_bag import write_sensed
from tests.session_replay import replay_in_process


def test_overlapping_words_belong_to_the_window_they_begin_in(tmp_path: Path) -> None:
    """A mark of silence in the bag, up to the second voice, comes after the first voice's words and not before."""
    write_sensed(tmp_path / "bag", read(find("zh_clinic")), 12.0)  # the robot begins before the person has ended
    windows = [one.message for one in replay_in_process(tmp_path / "bag") if one.topic == WINDOWS]
    counted = {one["end_ns"] - START_NS: one["utterance_count"] for one in windows}
    assert counted[5 * NS_PER_S] == 2


PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"
# Prints the addresses at which a node receives.
ADDRESSES = """
import ipaddress, os, pathlib, rclpy
rclpy.init()
node = rclpy.create_node("listener")
held = {link.readlink().name for link in pathlib.Path("/proc/self/fd").iterdir() if link.is_symlink()}
for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]:
    local, inode = line.split()[1], line.split()[9]
    if f"socket:[{inode}]" in held:
        print(ipaddress.ip_address(bytes.fromhex(local.split(":")[0])[::-1]))
"""


def test_two_runs_have_two_domains_and_none_is_used_again_at_once() -> None:
    with claim_domain() as first, claim_domain() as second:
        assert first != second
    with claim_domain() as third:
        assert third not in {first, second}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_domain_lock_of_another_user_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with claim_domain() as of_root:
            pass
        monkeypatch.setattr(node_process, "DOMAINS", range(of_root, of_root + 1))
        os.seteuid(65_534)
        try:
            with claim_domain() as of_another:
                assert of_another == of_root
        finally:
            os.seteuid(0)


def test_nodes_on_a_claimed_domain_use_fast_discovery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROFILES, raising=False)
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    with claim_domain():
        assert os.environ[PROFILES] == str(MIDDLEWARE)
        assert has_room()
    assert PROFILES not in os.environ


@pytest.mark.ros
def test_nodes_on_a_claimed_domain_receive_from_this_machine_alone() -> None:
    with claim_domain() as domain:
        command = [sys.executable, "-c", ADDRESSES]
        listed = subprocess.check_output(command, env={**os.environ, "ROS_DOMAIN_ID": str(domain)}, text=True)
    addresses = {ip_address(line) for line in listed.split()}
    assert any(address.is_loopback for address in addresses)
    assert all(address.is_loopback or address.is_multicast for address in addresses)


def test_profiles_of_the_user_stay_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROFILES, "mine.xml")
    with claim_domain():
        assert os.environ[PROFILES] == "mine.xml"
        assert not has_room()
    assert os.environ[PROFILES] == "mine.xml"

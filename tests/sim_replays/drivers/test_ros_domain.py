"""Domains of a run's own."""

import os
from xml.etree import ElementTree

import pytest

from sim_replays.drivers.ros_domain import MIDDLEWARE, claimed_domain, has_room

PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"


def test_two_runs_have_two_domains() -> None:
    with claimed_domain() as first, claimed_domain() as second:
        assert first != second


def test_nodes_begun_there_are_told_to_find_one_another_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROFILES, raising=False)
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    with claimed_domain():
        ElementTree.parse(os.environ[PROFILES])
        assert os.environ[PROFILES] == str(MIDDLEWARE)
        assert has_room()
    assert PROFILES not in os.environ


def test_a_users_own_profiles_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROFILES, "mine.xml")
    with claimed_domain():
        assert os.environ[PROFILES] == "mine.xml"
        assert not has_room()
    assert os.environ[PROFILES] == "mine.xml"

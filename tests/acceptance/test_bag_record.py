"""`tactful bag record` on types that only the graph's environment has; the bags are read by the rosbags library."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Connection, ConnectionExtRosbag2, QosDurability
from rosbags.rosbag2 import Reader
from typer.testing import CliRunner

from tactful_cli.main import app
from tests.foreign_interfaces import Definitions, build, build_once, environment

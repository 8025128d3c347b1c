"""Blur faces of every size in a shared bag, and whole pictures in which no face is found."""

import json
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from cv2.data import haarcascades

from norm_core.bags.reader import BagReader
from tests.command_line import tactful

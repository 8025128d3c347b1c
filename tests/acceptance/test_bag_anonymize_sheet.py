"""Look through the stills of an anonymized bag on its contact sheet, before the bag leaves."""

import base64
import json
import re
import stat
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.acceptance.test_bag_anonymize_faces import anonymized, detail
from tests.command_line import tactful

"""The public names of norm_core.models, for type checkers and for lazy import."""

from .catalogue import Catalogue as Catalogue
from .manifest import EngineKind as EngineKind
from .manifest import HashedFile as HashedFile
from .manifest import Manifest as Manifest
from .manifest import MemoryNeed as MemoryNeed
from .manifest import ModelFile as ModelFile
from .manifest import ModelSource as ModelSource
from .manifest import Task as Task
from .pull import pull_model as pull_model
from .store import Lock as Lock
from .store import ModelFiles as ModelFiles
from .store import PullError as PullError
from .store import Store as Store
from .store import WeightsError as WeightsError
from .store import find_damages as find_damages
from .store import read_lock as read_lock

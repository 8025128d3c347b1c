"""The public names of norm_core.engines, for type checkers and for lazy import."""

from .direct_engine import DirectEngine as DirectEngine
from .engine import Backend as Backend
from .engine import Engine as Engine
from .engine import ServerStatus as ServerStatus
from .engine_factory import open_engine as open_engine
from .engine_pool import EngineLease as EngineLease
from .engine_pool import EnginePool as EnginePool
from .engine_pool import SharedEngine as SharedEngine
from .engine_pool import Urgency as Urgency
from .errors import EngineError as EngineError
from .errors import EngineFailedError as EngineFailedError
from .errors import InvalidRequestError as InvalidRequestError
from .errors import PastDeadlineError as PastDeadlineError
from .errors import RefusedError as RefusedError
from .errors import UnparsedError as UnparsedError
from .prompt import Image as Image
from .prompt import Prompt as Prompt
from .prompt import Question as Question
from .prompt import Quoted as Quoted
from .prompt import Text as Text
from .reply import Generation as Generation
from .reply import ModelInfo as ModelInfo
from .reply import Scores as Scores
from .reply import Usage as Usage
from .request_context import Deadline as Deadline
from .request_context import RequestContext as RequestContext

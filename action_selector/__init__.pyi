"""The public names of action_selector, for type checkers and for lazy import."""

from .candidates import Candidate as Candidate
from .candidates import Skill as Skill
from .candidates import SkillCatalogue as SkillCatalogue
from .decider import Decider as Decider
from .house_rules import HardRule as HardRule
from .house_rules import HouseRule as HouseRule
from .house_rules import HouseRules as HouseRules
from .request import Request as Request
from .request_limits import UnusableError as UnusableError
from .retrieval import Precedent as Precedent
from .retrieval import PrecedentError as PrecedentError
from .retrieval import PrecedentIndex as PrecedentIndex
from .retrieval import read_precedents as read_precedents
from .selector import DueRequest as DueRequest
from .selector import Recommendation as Recommendation
from .selector import Selector as Selector
from .selector import SelectorFiles as SelectorFiles
from .selector import open_selector as open_selector
from .selector_config import RequestConfig as RequestConfig
from .selector_config import SelectorConfig as SelectorConfig
from .selector_config import WhenUnsure as WhenUnsure

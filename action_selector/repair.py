"""Requests for a repair, which the selector asks itself when an error flag opens."""

from collections import OrderedDict

from pydantic import Field

from action_selector.candidates import SkillCatalogue
from action_selector.request import Request
from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_core.runtime.config import Config

# The candidates where no skill of the catalogue is marked as a repair.
DEFAULT_REPAIRS = (
    "Apologise for the error.",
    "Repeat what was said.",
    "Wait until the person has finished.",
    "Answer the person.",
    "Call a member of staff.",
)
_MAX_REMEMBERED_EVENTS = 256


class RepairConfig(Config):
    """Whether error flags ask for a repair."""

    on_error_flags: bool = Field(
        default=False,
        description="whether an error flag that opens asks for a repair; the decision names the flag",
    )


class RepairRequests:
    """One request per error. The request's query_id is the flag's event_id."""

    def __init__(self, catalogue: SkillCatalogue | None = None) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self.use_catalogue(catalogue)

    def use_catalogue(self, catalogue: SkillCatalogue | None) -> None:
        """Offer the repairs of another catalogue from now on."""
        skills = catalogue.skills if catalogue else ()
        repairs = tuple(skill.action for skill in skills if skill.repair) or DEFAULT_REPAIRS
        may_do_nothing = catalogue is None or catalogue.may_do_nothing
        self._candidates = repairs + ("",) * may_do_nothing

    def request_for(self, flag: SocialFlag) -> Request | None:
        """Return the request of an error at its first flag; None for any other flag, and for a final one."""
        is_current = flag.state in {FlagState.OPENED, FlagState.UPDATED}
        if flag.polarity is not Polarity.ERROR or not is_current or flag.event_id in self._seen:
            return None
        self._seen[flag.event_id] = None
        if len(self._seen) > _MAX_REMEMBERED_EVENTS:
            self._seen.popitem(last=False)
        # What others do excludes no repair. So `others` is empty, and no frame is needed.
        return Request(
            query_id=flag.event_id,
            candidates=self._candidates,
            situation=f"{flag.rationale} {flag.correction}",
            others=(),
        )

"""Create a selector from a robot team's files."""

from pathlib import Path

from pydantic import Field

from action_selector.candidates import SkillCatalogue
from action_selector.choose.calibration import SelectorCalibration, made_with
from action_selector.config import RequestConfig, SelectorConfig
from action_selector.decider import Decider
from action_selector.request import RepairRequests
from action_selector.retrieval import PrecedentError, PrecedentIndex
from action_selector.selector import Selector
from action_selector.vetoes import HouseRules
from norm_core.engines.backend import AnsweringModel
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.talk_reader import AUTO, open_reader
from norm_core.runtime.artefact import artefact_path
from norm_core.runtime.config import LIVE
from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.time import Clock


class SelectorFiles(SelectorConfig):
    """The selector's settings and the paths of its files. An empty path means no file."""

    model: str = Field(default="", description="name of the model that is asked; empty for likeness alone")
    reader: str = Field(
        default=AUTO,
        description="talk reader that reads candidates where no model is asked and no calibration is named: its size "
        "or folder; auto takes the largest that is set up, none takes none",
    )
    skills: str = Field(
        default="", description="YAML catalogue of the robot's skills; empty for none", json_schema_extra=LIVE
    )
    house_rules: str = Field(
        default="",
        description="YAML file of house rules; empty for none; set it again to read an edited file",
        json_schema_extra=LIVE,
    )
    precedents_index: str = Field(default="", description="folder that `tactful norms index` wrote; empty for none")

    def catalogue(self) -> SkillCatalogue | None:
        """Read the skills. Raises ConfigError where the file is unusable."""
        return SkillCatalogue.read(Path(self.skills).expanduser()) if self.skills else None

    def rules(self) -> HouseRules | None:
        """Read the house rules. Raises ConfigError where the file is unusable."""
        return HouseRules.read(Path(self.house_rules).expanduser()) if self.house_rules else None


def open_selector(
    files: SelectorFiles,
    clock: Clock,
    *,
    engine: AnsweringModel | None = None,
    requests: RequestConfig | None = None,
    health_log: HealthLog | None = None,
) -> Selector:
    """Read every file and create the selector. Raises a TactfulError that names the first unusable file."""
    encoder = SentenceEncoder()
    weights_sha256 = encoder.weights_sha256
    index = Path(files.precedents_index).expanduser() if files.precedents_index else None
    precedents = PrecedentIndex.load(index) if index else None
    if precedents and precedents.weights_sha256 not in {"", weights_sha256}:
        raise PrecedentError(f"{index}: was made with another encoder: make it anew with `tactful norms index`")
    calibration = None
    if files.calibration:
        needed = made_with(files, weights_sha256, engine.model_info if engine else None)
        calibration = SelectorCalibration.load(artefact_path(files.calibration), needed)
    skills = files.catalogue()
    decider = Decider(
        encoder,
        files,
        engine=engine,
        catalogue=skills,
        rules=files.rules(),
        precedents=precedents,
        calibration=calibration,
        reader=None if engine or calibration else open_reader(files.reader),
    )
    repairs = RepairRequests(skills) if requests and requests.repair.on_error_flags else None
    return Selector(decider, clock, requests, health_log, repairs)

"""Log, code, review, anonymize and report the sessions of a study, without ROS or a model."""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from study_desk.coding.agreement import Agreement, AgreementError, measure_agreement
    from study_desk.coding.coded_session import CodedSession
    from study_desk.log.import_bag import log_bag
    from study_desk.log.live_log import LiveLog
    from study_desk.log.log_recovery import LogRecoveryReport, recover_log
    from study_desk.log.reader import LogContents, LogError
    from study_desk.log.recording import Recording, open_recording
    from study_desk.log.schema import Coding, Entry, Label, Participant, Review, SessionInfo
    from study_desk.log.session_config import StudyConfig
    from study_desk.log.writer import LogWriteError, StudyLog
    from study_desk.privacy.anonymize import anonymize
    from study_desk.privacy.erase import Erasure, erase
    from study_desk.privacy.inventory import Inventory, inventory
    from study_desk.privacy.redact import RedactionPolicy, Redactor
    from study_desk.privacy.topic_treatments import AnonymityReport, AnonymizeOptions
    from study_desk.study.status import StudyStatus, study_status
    from study_desk.study.study_file import StudyFile
    from study_desk.study.study_folder import Study, StudyError

__all__ = [
    "Agreement",
    "AgreementError",
    "AnonymityReport",
    "AnonymizeOptions",
    "CodedSession",
    "Coding",
    "Entry",
    "Erasure",
    "Inventory",
    "Label",
    "LiveLog",
    "LogContents",
    "LogError",
    "LogRecoveryReport",
    "LogWriteError",
    "Participant",
    "Recording",
    "RedactionPolicy",
    "Redactor",
    "Review",
    "SessionInfo",
    "Study",
    "StudyConfig",
    "StudyError",
    "StudyFile",
    "StudyLog",
    "StudyStatus",
    "anonymize",
    "erase",
    "inventory",
    "log_bag",
    "measure_agreement",
    "open_recording",
    "recover_log",
    "study_status",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "coding.agreement": ("Agreement", "AgreementError", "measure_agreement"),
            "coding.coded_session": ("CodedSession",),
            "log.import_bag": ("log_bag",),
            "log.live_log": ("LiveLog",),
            "log.log_recovery": ("LogRecoveryReport", "recover_log"),
            "log.reader": ("LogContents", "LogError"),
            "log.recording": ("Recording", "open_recording"),
            "log.schema": ("Coding", "Entry", "Label", "Participant", "Review", "SessionInfo"),
            "log.session_config": ("StudyConfig",),
            "log.writer": ("LogWriteError", "StudyLog"),
            "privacy.anonymize": ("anonymize",),
            "privacy.erase": ("Erasure", "erase"),
            "privacy.inventory": ("Inventory", "inventory"),
            "privacy.redact": ("RedactionPolicy", "Redactor"),
            "privacy.topic_treatments": ("AnonymityReport", "AnonymizeOptions"),
            "study.status": ("StudyStatus", "study_status"),
            "study.study_file": ("StudyFile",),
            "study.study_folder": ("Study", "StudyError"),
        },
    )

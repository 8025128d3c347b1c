"""The public names of study_desk, for type checkers and for lazy import."""

from .coding.agreement import Agreement as Agreement
from .coding.agreement import AgreementError as AgreementError
from .coding.agreement import measure_agreement as measure_agreement
from .coding.labels import CodedSession as CodedSession
from .study.erase import erase as erase
from .study.status import StudyStatus as StudyStatus
from .study.status import check_study as check_study

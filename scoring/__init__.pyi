"""The public names of scoring, for type checkers and for lazy import."""

from .event_matching import Matches as Matches
from .event_matching import match_events as match_events
from .f1 import class_f1 as class_f1
from .f1 import count_confusions as count_confusions
from .f1 import f1_score as f1_score
from .f1 import macro_f1 as macro_f1
from .figures import Figure as Figure
from .figures import average_figures as average_figures
from .figures import bootstrap as bootstrap
from .figures import estimate_grade as estimate_grade
from .figures import estimate_share as estimate_share
from .intervals import draw_clusters as draw_clusters
from .intervals import percentile_interval as percentile_interval
from .intervals import percentiles as percentiles
from .probabilities import expected_calibration_error as expected_calibration_error

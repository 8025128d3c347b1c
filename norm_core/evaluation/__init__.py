"""Measures as pure functions: event matching, F1, intervals, calibration and agreement."""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from norm_core.evaluation.agreement_coefficients import (
        cohen_kappa,
        fleiss_kappa,
        gwet_ac1,
        icc_one_way,
        icc_two_way,
        krippendorff_alpha,
        weighted_kappa,
    )
    from norm_core.evaluation.event_matching import Matches, match_events
    from norm_core.evaluation.f1 import class_f1, confusion, f1_score, macro_f1
    from norm_core.evaluation.figures import Figure, average, average_grade, bootstrap, share
    from norm_core.evaluation.intervals import draw_clusters, percentile_interval, percentiles
    from norm_core.evaluation.probabilities import (
        Bin,
        adaptive_calibration_error,
        brier_score,
        expected_calibration_error,
        reliability_bins,
    )
    from norm_core.evaluation.probability_scaling import IsotonicCurve, ProbabilityScaling, ScalingMethod
    from norm_core.evaluation.risk_coverage import RiskCoverage, risk_coverage_curve
    from norm_core.evaluation.unitizing import UnitizingCounts, unitizing_alpha, unitizing_counts

__all__ = [
    "Bin",
    "Figure",
    "IsotonicCurve",
    "Matches",
    "ProbabilityScaling",
    "RiskCoverage",
    "ScalingMethod",
    "UnitizingCounts",
    "adaptive_calibration_error",
    "average",
    "average_grade",
    "bootstrap",
    "brier_score",
    "class_f1",
    "cohen_kappa",
    "confusion",
    "draw_clusters",
    "expected_calibration_error",
    "f1_score",
    "fleiss_kappa",
    "gwet_ac1",
    "icc_one_way",
    "icc_two_way",
    "krippendorff_alpha",
    "macro_f1",
    "match_events",
    "percentile_interval",
    "percentiles",
    "reliability_bins",
    "risk_coverage_curve",
    "share",
    "unitizing_alpha",
    "unitizing_counts",
    "weighted_kappa",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "agreement_coefficients": (
                "cohen_kappa",
                "fleiss_kappa",
                "gwet_ac1",
                "icc_one_way",
                "icc_two_way",
                "krippendorff_alpha",
                "weighted_kappa",
            ),
            "event_matching": ("Matches", "match_events"),
            "f1": ("class_f1", "confusion", "f1_score", "macro_f1"),
            "figures": ("Figure", "average", "average_grade", "bootstrap", "share"),
            "intervals": ("draw_clusters", "percentile_interval", "percentiles"),
            "probabilities": (
                "Bin",
                "adaptive_calibration_error",
                "brier_score",
                "expected_calibration_error",
                "reliability_bins",
            ),
            "probability_scaling": ("IsotonicCurve", "ProbabilityScaling", "ScalingMethod"),
            "risk_coverage": ("RiskCoverage", "risk_coverage_curve"),
            "unitizing": ("UnitizingCounts", "unitizing_alpha", "unitizing_counts"),
        },
    )

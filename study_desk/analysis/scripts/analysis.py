"""Fit Poisson models of errors and competences by condition to sessions.csv, with the log of minutes as offset.

Needs pandas and statsmodels (pip install pandas statsmodels). Run it in the folder of sessions.csv. It prints the
estimates and writes estimates_python.csv: logs of rates per minute (intercept) and of rate ratios to the first
condition. analysis.R gives the same numbers.

std_error         of the Poisson model, which knows no differences between participants
std_error_quasi   times the root of the dispersion (quasi-Poisson): for participants with one session each
std_error_robust  robust to correlated sessions of one participant (clusters): for participants with several sessions,
                  with Student's t at clusters - 1 degrees of freedom; too small with few clusters
"""

import sys

try:
    import numpy as np
    import pandas as pd
    import statsmodels.api as sm
    import statsmodels.formula.api as smf
except ImportError as error:
    sys.exit(f"analysis.py: {error.name} is not installed: run python -m pip install pandas statsmodels")

FEW_UNITS = 5  # per condition: below, intervals are over 1.6 times as long as with many
FEW_CLUSTERS = 30  # below, normal intervals with std_error_robust hold in under 93 % of studies

sessions = pd.read_csv("sessions.csv", keep_default_na=False)
sessions = sessions[(sessions["analysed"] == 1) & (sessions["minutes"] > 0)].reset_index(drop=True)
levels = list(dict.fromkeys(sessions["condition"]))  # the first is the reference
sessions["condition"] = pd.Categorical(sessions["condition"], categories=levels)
formula = "~ condition" if len(levels) > 1 else "~ 1"

rows = []
for outcome in ("errors", "competences"):
    if sessions.groupby("condition", observed=True)[outcome].sum().min() == 0:
        print(f"{outcome}: none in a condition, so no model has a finite estimate")
        continue
    model = smf.glm(f"{outcome} {formula}", sessions, family=sm.families.Poisson(), offset=np.log(sessions["minutes"]))
    fit = model.fit(tol=1e-12, maxiter=100)
    dispersion = fit.pearson_chi2 / fit.df_resid if fit.df_resid > 0 else np.nan
    design, clusters = model.exog, sessions["cluster"]
    scores = (
        pd.DataFrame(design * np.asarray(sessions[outcome] - fit.fittedvalues)[:, None]).groupby(clusters.values).sum()
    )
    count, bread = len(scores), np.asarray(fit.cov_params())
    meat = scores.T.to_numpy() @ scores.to_numpy()
    robust = count / (count - 1) * bread @ meat @ bread if count > 1 else np.full_like(bread, np.nan)
    for number, name in enumerate(fit.params.index):
        rows.append(
            {
                "outcome": outcome,
                "term": "(Intercept)" if name == "Intercept" else name.removeprefix("condition[T.").removesuffix("]"),
                "estimate": fit.params.iloc[number],
                "std_error": fit.bse.iloc[number],
                "std_error_quasi": fit.bse.iloc[number] * np.sqrt(dispersion),
                "std_error_robust": np.sqrt(robust[number, number]),
                "dispersion": dispersion,
            }
        )

for condition, number in sessions.groupby("condition", observed=True)["cluster"].nunique().items():
    if number < FEW_UNITS:
        print(
            f"WARNING: condition {condition}: {number} units, fewer than {FEW_UNITS}: "
            "an interval says little; show counts, not conclusions"
        )
clusters = sessions["cluster"].nunique()
if clusters < FEW_CLUSTERS:
    print(
        f"WARNING: {clusters} clusters, fewer than {FEW_CLUSTERS}: std_error_robust is too small; take Student's t "
        f"with {clusters - 1} degrees of freedom, and expect intervals that are too short"
    )
estimates = pd.DataFrame(rows)
print(f"reference condition: {levels[0] if levels else 'none'}")
print(estimates.to_string(index=False))
estimates.to_csv("estimates_python.csv", index=False, float_format="%.17g")

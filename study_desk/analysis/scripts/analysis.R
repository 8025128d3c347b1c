# Fit Poisson models of errors and competences by condition to sessions.csv, with the log of minutes as offset.
#
# Needs base R alone. Run it in the folder of sessions.csv: Rscript analysis.R. It prints the estimates and writes
# estimates_r.csv: logs of rates per minute (intercept) and of rate ratios to the first condition.
#
# std_error         of the Poisson model, which knows no differences between participants
# std_error_quasi   times the root of the dispersion (quasi-Poisson): for participants with one session each
# std_error_robust  robust to correlated sessions of one participant (clusters): for participants with several sessions,
#                   with Student's t at clusters - 1 degrees of freedom; too small with few clusters

sessions <- read.csv("sessions.csv", na.strings = character(), encoding = "UTF-8",
                     colClasses = c(condition = "character", coder = "character"))
sessions <- sessions[sessions$analysed == 1 & sessions$minutes > 0, ]
few_units <- 5      # per condition: below, intervals are over 1.6 times as long as with many
few_clusters <- 30  # below, normal intervals with std_error_robust hold in under 93 % of studies
levels <- unique(sessions$condition)  # the first is the reference
sessions$condition <- factor(sessions$condition, levels = levels)
terms <- "condition"
if ("period" %in% names(sessions)) {  # crossed: each participant, a cluster, meets every condition in a drawn order
  sessions$period <- factor(sessions$period)
  terms <- c(terms, "period")
  cat("crossed design: condition and period within participants; take std_error_robust\n")
}
varied <- Filter(function(term) nlevels(sessions[[term]]) > 1, terms)
right <- if (length(varied)) paste(varied, collapse = " + ") else "1"
columns <- read.csv("dictionary.csv", encoding = "UTF-8")
primary <- columns$name[columns$table == "sessions" & startsWith(columns$description, "primary outcome: ")]

estimates <- data.frame()
for (outcome in unique(c(primary, "errors", "competences"))) {
  if (min(unlist(lapply(terms, function(term) tapply(sessions[[outcome]], sessions[[term]], sum)))) == 0) {
    cat(outcome, ": none in a ", paste(terms, collapse = " or a "), ", so no model has a finite estimate\n", sep = "")
    next
  }
  fit <- glm(as.formula(paste(outcome, "~", right, "+ offset(log(minutes))")), family = poisson, data = sessions,
             control = glm.control(epsilon = 1e-14, maxit = 100))
  dispersion <- if (fit$df.residual > 0) sum(residuals(fit, "pearson")^2) / fit$df.residual else NaN
  scores <- rowsum(model.matrix(fit) * (sessions[[outcome]] - fitted(fit)), sessions$cluster)
  count <- nrow(scores)
  robust <- if (count > 1) count / (count - 1) * vcov(fit) %*% crossprod(scores) %*% vcov(fit) else NaN * vcov(fit)
  std_error <- sqrt(diag(vcov(fit)))
  estimates <- rbind(estimates, data.frame(
    outcome = outcome,
    term = sub("^condition", "", names(coef(fit))),
    estimate = unname(coef(fit)),
    std_error = unname(std_error),
    std_error_quasi = unname(std_error * sqrt(dispersion)),
    std_error_robust = unname(sqrt(diag(robust))),
    dispersion = dispersion
  ))
}

units <- tapply(sessions$cluster, sessions$condition, function(each) length(unique(each)))
for (condition in names(units)[units < few_units]) {
  cat("WARNING: condition ", condition, ": ", units[[condition]], " units, fewer than ", few_units,
      ": an interval says little; show counts, not conclusions\n", sep = "")
}
clusters <- length(unique(sessions$cluster))
if (clusters < few_clusters) {
  cat("WARNING: ", clusters, " clusters, fewer than ", few_clusters, ": std_error_robust is too small; take Student's t ",
      "with ", clusters - 1, " degrees of freedom, and expect intervals that are too short\n", sep = "")
}
cat("reference condition:", if (length(levels)) levels[1] else "none", "\n")
print(estimates, row.names = FALSE)
estimates[-(1:2)] <- lapply(estimates[-(1:2)], format, digits = 17)
write.csv(estimates, "estimates_r.csv", row.names = FALSE)

# Rates of errors and competences per ten minutes in each condition, and their ratios to the first condition.
#
# Needs base R alone. Run it in the folder of sessions.csv: Rscript analysis.R. It prints the estimates and writes
# estimates_r.csv. report.html holds the same figures.
#
# Model: the events of each unit (a participant, or a group who share sessions) in each condition are Poisson, with the
# log of minutes as offset. Standard errors are robust to differences between units and to several sessions of one unit
# (clustered, with the correction CR2), and at least those of the Poisson model. Intervals are on the log scale, by
# Student's t at the units of the smaller condition less 1. Without an event, a rate has an exact Poisson interval.

few_units <- 5   # per condition: below, there are counts alone
per_minutes <- 10
sessions <- read.csv("sessions.csv", na.strings = character(), encoding = "UTF-8",
                     colClasses = c(condition = "character", coder = "character"))
sessions <- sessions[sessions$analysed == 1 & sessions$minutes > 0, ]
sessions$condition[sessions$condition == ""] <- "no condition"
levels <- unique(sessions$condition)  # the first is the reference
sessions$condition <- factor(sessions$condition, levels = levels)

line <- function(outcome, term, events, minutes, units, estimate = NA, low = NA, high = NA, dispersion = NA) {
  data.frame(outcome, term, events, minutes, units, estimate, low, high, dispersion)
}

bounds <- function(log_value, variance, units) exp(log_value + c(-1, 1) * qt(0.975, units - 1) * sqrt(variance))

estimates_of <- function(outcome) {
  cells <- aggregate(sessions[c(outcome, "minutes")], sessions[c("cluster", "condition")], sum)
  names(cells)[3] <- "events"
  sum_by_condition <- function(values) vapply(split(values, cells$condition), sum, 0)
  events <- sum_by_condition(cells$events)
  minutes <- sum_by_condition(cells$minutes)
  units <- sum_by_condition(rep(1, nrow(cells)))

  fitted_levels <- levels[events > 0 & units >= few_units]
  if (length(fitted_levels)) {
    chosen <- droplevels(cells[cells$condition %in% fitted_levels, ])
    right <- if (length(fitted_levels) > 1) "0 + condition" else "1"
    fit <- glm(as.formula(paste("events ~", right, "+ offset(log(minutes))")), family = poisson, data = chosen,
               control = glm.control(epsilon = 1e-14, maxit = 100))
    logs <- setNames(coef(fit), fitted_levels)
    scores <- model.matrix(fit) * (chosen$events - fitted(fit)) / sqrt(1 - hatvalues(fit))
    robust <- vcov(fit) %*% crossprod(rowsum(scores, chosen$cluster)) %*% vcov(fit)
    dimnames(robust) <- list(fitted_levels, fitted_levels)
  }

  lines <- data.frame()
  for (level in levels) {
    rate <- events[[level]] / minutes[[level]] * per_minutes
    about <- line(outcome, level, events[[level]], minutes[[level]], units[[level]], rate)
    if (level %in% fitted_levels) {
      about[c("low", "high")] <-
        per_minutes * bounds(logs[[level]], max(robust[level, level], 1 / events[[level]]), units[[level]])
      about$dispersion <- robust[level, level] * events[[level]]
    } else if (units[[level]] >= few_units) {
      about[c("low", "high")] <- per_minutes * c(0, qchisq(0.975, 2) / 2) / minutes[[level]]
    }
    lines <- rbind(lines, about)
  }
  for (level in levels[-1]) {
    pair <- c(level, levels[1])
    about <- line(outcome, paste(pair, collapse = " / "), sum(events[pair]), sum(minutes[pair]), min(units[pair]))
    if (all(pair %in% fitted_levels)) {
      contrast <- c(1, -1)
      variance <- max(contrast %*% robust[pair, pair] %*% contrast, sum(1 / events[pair]))
      about$estimate <- exp(sum(contrast * logs[pair]))
      about[c("low", "high")] <- bounds(log(about$estimate), variance, min(units[pair]))
    }
    lines <- rbind(lines, about)
  }
  lines
}

estimates <- data.frame()
if (nrow(sessions)) {
  outcomes <- c("errors", "competences", grep("^code_", names(sessions), value = TRUE))
  estimates <- do.call(rbind, lapply(outcomes, estimates_of))
  for (level in levels) {
    units <- length(unique(sessions$cluster[sessions$condition == level]))
    if (units < few_units) {
      cat("WARNING: condition ", level, ": ", units, " units, fewer than ", few_units,
          ": no interval and no ratio; show counts, not conclusions\n", sep = "")
    }
  }
}
cat("reference condition:", if (length(levels)) levels[1] else "none", "\n")
print(estimates, row.names = FALSE)
for (name in c("minutes", "estimate", "low", "high", "dispersion")) {
  if (nrow(estimates)) {
    estimates[[name]] <- ifelse(is.na(estimates[[name]]), "NA", format(estimates[[name]], digits = 17))
  }
}
write.csv(estimates, "estimates_r.csv", row.names = FALSE)

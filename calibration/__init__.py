"""Everything that is fitted on labels, and the labelled talks it is fitted on."""

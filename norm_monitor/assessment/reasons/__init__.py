"""Reasons that word a flag of a turn or a silence; they do not decide whether there is one."""

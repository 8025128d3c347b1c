"""The base of every error whose message tells a person what is wrong and how to mend it."""


class TactfulError(Exception):
    """Shown without a traceback; exit_code is what a command ends with."""

    exit_code = 2

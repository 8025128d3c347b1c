"""The base of every error whose message gives a user the problem and the remedy."""


class TactfulError(Exception):
    """An error shown without a traceback; `exit_code` is the exit code of the command."""

    exit_code = 2

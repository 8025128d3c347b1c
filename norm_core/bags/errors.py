"""The error for an unusable bag."""

from norm_core.runtime.errors import TactfulError


class BagError(TactfulError, ValueError):
    """A bag cannot be read; the message gives the problem and the remedy."""

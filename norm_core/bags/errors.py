"""What a bag that cannot be used raises."""

from norm_core.runtime.errors import TactfulError


class BagError(TactfulError, ValueError):
    """A bag that cannot be read; its message says what is wrong and what to do."""

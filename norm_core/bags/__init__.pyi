"""The public names of norm_core.bags, for type checkers and for lazy import."""

from .reader import BagMessage as BagMessage
from .reader import BagReader as BagReader
from .topic import BagError as BagError
from .topic import BagTopic as BagTopic
from .writer import BagWriteError as BagWriteError
from .writer import BagWriter as BagWriter

"""Run the command line as `python -m tactful_cli`."""

import sys

from norm_core import __version__

if sys.argv[1:] == ["--version"]:  # before anything that takes longer is imported
    print(__version__)
    sys.exit()

from tactful_cli.main import main

main()

"""Run the command line as `python -m tactful_cli`."""

from tactful_cli.main import main

main()

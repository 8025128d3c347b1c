"""Run the monitor over many bags: their flags in a folder, as tables, and against an earlier run."""

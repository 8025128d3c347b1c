# The Python that Tactful's nodes run with.
get_filename_component(tactful_PYTHON "${tactful_DIR}/../../../lib/tactful/venv/bin/python" ABSOLUTE)

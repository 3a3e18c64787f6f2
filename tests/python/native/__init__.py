"""Tests of the package with its module, as it was built (FERRY_PYTHON_PACKAGE)."""

"""Which torch the wheel depends on: the minor version that it is built against.

scikit-build-core asks (pyproject.toml) before anything is built or fetched, so this is the place to
stop a build that has no torch: pip would go on to fetch gigabytes for it.
"""

import importlib.util
import pathlib
import re

_state = "wheel"


def build_state(state):
    global _state
    _state = state


def dynamic_wheel(settings):
    return {"dependencies": True}


def dynamic_metadata(settings, project):
    minor = installed_minor()
    if minor:
        return {"dependencies": [f"torch=={minor}.*"]}
    if _state == "sdist":
        return {"dependencies": ["torch"]}
    raise SystemExit("torch_ferry is built against the torch that it will run with, and there is "
                     "none here. Install that torch first, then: "
                     "pip install --no-build-isolation .")


def installed_minor():
    """ "2.11", without the seconds that an import takes; none where there is no torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return None
    version = (pathlib.Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    return re.search(r"__version__ = '(\d+\.\d+)", version)[1]

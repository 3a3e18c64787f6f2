"""What ./dev downloads for Python is pinned: each package by its version and by hashes."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pinned(name="python/requirements.lock"):
    """The requirements, a text each: name, version, marker, hashes."""
    lines = [line for line in read(name).splitlines() if not line.startswith("#")]
    return "\n".join(lines).replace("\\\n", " ").splitlines()


class Requirements(unittest.TestCase):
    def test_each_has_a_version_and_hashes(self):
        self.assertGreater(len(pinned()), 10)
        pin = re.compile(r"[\w.-]+==[^ ;]+( ; .*?)?( +--hash=sha256:[0-9a-f]{64})+")
        others = sorted(f"versions/{path.stem}" for path in ROOT.glob("python/versions/*.lock"))
        self.assertGreater(len(others), 2)
        for name in ("requirements", "without_dependencies", "wheel", "campaign", "published",
                     *others):
            for each in pinned(f"python/{name}.lock"):
                self.assertTrue(pin.fullmatch(each), each)
        for each in pinned("docs/site/requirements.lock"):
            self.assertTrue(pin.fullmatch(each), each)

    def test_what_is_asked_for_is_among_them(self):
        for name, one in (("python/requirements", "numpy"), ("python/wheel", "scikit-build-core"),
                          ("python/campaign", "diffusers"), ("docs/site/requirements", "mkdocs")):
            versions = {each.split()[0] for each in pinned(f"{name}.lock")}
            asked = [line for line in read(f"{name}.in").splitlines()
                     if line and not line.startswith(("#", "torch==", "nvidia-"))]
            self.assertIn(one, {line.split("==")[0] for line in asked})
            for line in asked:
                self.assertIn(line, versions)

    def test_torch_is_the_version_that_is_built_with(self):
        version = re.search(r"^torch==(\S+)$", read("python/requirements.in"), re.M)[1]
        self.assertIn(f'use_torch "${{FERRY_TORCH_VERSION:-{version}}}"\n', read("dev"))
        cmake = read("cmake/FerryTorch.cmake")
        oldest, newest = (tuple(map(int, re.search(rf"set\(FERRY_TORCH_{end} (\d+)\.(\d+)\)", cmake)
                                    .groups())) for end in ("OLDEST", "NEWEST"))
        # Each minor version that Ferry says it is written for can be tried.
        locks = {path.stem.removeprefix("torch-"): pinned(f"python/versions/{path.name}")
                 for path in ROOT.glob("python/versions/*.lock")}
        tried = {tuple(map(int, other.split(".")[:2])) for other in locks}
        self.assertEqual({(2, other) for other in range(oldest[1], newest[1] + 1)}, tried)
        self.assertIn(version, locks)
        for other, lines in locks.items():
            self.assertIn(f"torch=={other}", {line.split()[0] for line in lines})


if __name__ == "__main__":
    unittest.main()

"""Writes the list of other people's software in a release (CycloneDX 1.5, JSON).

release.py puts it beside the wheels, for users who must know what they install. The versions are
those of the Debian packages on this machine, so it fails where one is not installed. LibTorch, CUDA
and Python are not listed, because the wheel does not contain them.
"""

import datetime
import json
import subprocess
import uuid

# Debian's packages whose code is compiled or linked into the release, with names and licenses.
COMPONENTS = {"libcli11-dev": ("CLI11", "BSD-3-Clause"),
              "libfmt-dev": ("fmt", "MIT"),
              "libjemalloc-dev": ("jemalloc", "BSD-2-Clause"),
              "librapidcheck-dev": ("RapidCheck", "BSD-2-Clause"),
              "libstdc++-12-dev": ("libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1"),
              "libtomlplusplus-dev": ("toml++", "MIT"),
              "libxxhash-dev": ("xxHash", "BSD-2-Clause"),
              "nlohmann-json3-dev": ("JSON for Modern C++", "MIT")}


def installed(package):
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], check=True, text=True,
                          capture_output=True).stdout


def component(package):
    name, license_ = COMPONENTS[package]
    version = installed(package)
    return {"type": "library", "name": name, "version": version,
            "licenses": [{"expression": license_}],
            "purl": f"pkg:deb/debian/{package}@{version}?distro=debian-12"}


def write(path, version, epoch):
    when = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
    number = uuid.uuid5(uuid.NAMESPACE_URL, f"torch-ferry {version} {epoch}")
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{number}",
        "metadata": {"timestamp": when.isoformat(),
                     "component": {"type": "application", "name": "torch-ferry",
                                   "version": version,
                                   "licenses": [{"expression": "Apache-2.0"}]}},
        "components": [component(package) for package in sorted(COMPONENTS)]}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

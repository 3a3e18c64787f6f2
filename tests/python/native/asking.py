"""What tests of `ferry plan` of a model by its name share: a hub on loopback, a folder for the
caches, and the command. The hub answers as huggingface.co does (HF_ENDPOINT); no test uses the
network.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

from native.support import ferry

try:
    import transformers
except ImportError:
    transformers = None

PROGRAMS = pathlib.Path(__file__).resolve().parents[3] / "scenarios/programs"
PROGRAM = pathlib.Path(os.environ.get("FERRY_PROGRAM", "no-ferry"))
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
          "intermediate_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4,
          "num_key_value_heads": 2, "vocab_size": 1000, "torch_dtype": "bfloat16"}
COMMIT = "0123456789012345678901234567890123456789"
# name → (status, the hub's code of the error, contents of config.json)
REPOSITORIES = {
    "o/llama": (200, None, json.dumps(CONFIG)),
    "o/gated": (403, "GatedRepo", None),
    "o/pipeline": (404, "EntryNotFound", None),
    "o/new": (200, None, json.dumps({**CONFIG, "model_type": "llama99"})),
    "o/broken": (200, None, "{"),
}


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = "/".join(self.path.removeprefix("/api/models").split("/")[1:3])
        of_model = self.path.startswith("/api/models")
        status, code, text = REPOSITORIES.get(name, (404, "RepoNotFound", None))
        if of_model and code in ("GatedRepo", "EntryNotFound"):
            status, code = 200, None
        data = (json.dumps({"id": name, "sha": COMMIT, "siblings": []}) if of_model
                else text or "").encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{name}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@unittest.skipIf(transformers is None, "needs transformers")
@unittest.skipUnless(PROGRAM.exists(), "needs FERRY_PROGRAM, the command")
class Asking(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        others = {name: value for name, value in os.environ.items()
                  if not name.startswith(("HF_", "TRANSFORMERS_"))}
        self.environment = {
            **others, "FERRY_PYTHON": sys.executable, "XDG_CACHE_HOME": str(self.home),
            "PYTHONPATH": str(pathlib.Path(ferry.__file__).parents[1]), "HF_HOME": home.name,
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}

    def plan(self, *words, **environment):
        return subprocess.run(
            [PROGRAM, "plan", "--card", "rtx4090", *words], cwd=self.home, text=True,
            env={**self.environment, **environment}, capture_output=True, check=False)

    def refused(self, subject, code, *texts, **environment):
        ran = self.plan(*subject.split(), **environment)
        self.assertEqual((ran.returncode, ran.stdout), (code, ""), ran.stderr)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        for text in texts:
            self.assertIn(text, ran.stderr)

    def cached(self):
        return sorted((self.home / "ferry/programs").glob("*"))

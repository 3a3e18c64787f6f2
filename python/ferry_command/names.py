"""What `ferry plan` was asked for, if it is a model: which kind, and its configuration.

    hf:ORG/NAME[@REVISION], config.json       a model of transformers
    torchvision:NAME, timm:NAME               a classifier of images
    FOLDER                                    a pipeline of diffusers (it has model_index.json)
    FILE.py:FUNCTION, FILE.py                 code of the user

A configuration is found in a file, in the local cache of the hub, or on the hub. Only config.json
is fetched, never weights; code only with --trust. huggingface_hub does it, with the user's token,
proxy and HF_* variables. Each failure is a `Failure` that says what to do.
"""

import functools
import json
import pathlib


class Failure(Exception):
    """A sentence for the user, and the exit code of the command."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


USAGE, RESOURCE_MISSING = 2, 7


class Subject:
    """One subject. `kind` is "model", "images", "pipeline", "function" or "script"."""

    def __init__(self, text, trusted=False):
        self.text, self.trusted = text, trusted
        self.kind = _kind(text)

    @functools.cached_property
    def _config(self):
        if self.kind == "pipeline":
            return _of_pipeline(pathlib.Path(self.text))
        if self.kind == "images":
            return self.text.partition(":")[2], {}
        return config_of(self.text)

    @property
    def name(self):
        return self._config[0]

    def contents(self):
        """Returns the configuration, as a dict. Raises Failure."""
        return self._config[1]

    @property
    def code(self):
        """Returns where code of the hub may be taken from, (repository or folder, revision), or
        None if it may not."""
        if not self.trusted:
            return None
        name, _, revision = self.text.removeprefix("hf:").partition("@")
        if self.text.startswith("hf:"):
            return name, revision or None
        return str(pathlib.Path(self.text).resolve().parent), None

    def packages(self, how):
        """Returns the packages that the program depends on, each with what needs it."""
        if self.kind == "images":
            library = self.text.partition(":")[0]
            return [("torch", "a model by its name"), (library, f"a model of {library}")]
        if self.kind == "pipeline":
            return [("torch", "a model by its name"), ("diffusers", "a pipeline's folder")]
        found = [(package, "a model by its name") for package in ("torch", "transformers")]
        if how["trainer"] != "trainer":
            found.append(("trl", f"--{how['trainer']}"))
        return found


def _kind(text):
    if text.endswith(".py"):
        return "script"
    if text.startswith(("torchvision:", "timm:")):
        return "images"
    if ".py:" in text:
        return "function"
    return "pipeline" if pathlib.Path(text).is_dir() else "model"


def _of_pipeline(folder):
    """Returns (name, {"class", "config", "index"}) of the part of a pipeline that is trained."""
    index = _json(folder / "model_index.json")
    for part in ("unet", "transformer"):
        if isinstance(index.get(part), list) and len(index[part]) == 2:
            config = _json(folder / part / "config.json")
            kind = index.get("_class_name", "pipeline")
            return folder.resolve().name, {"class": index[part][1], "config": config,
                                           "pipeline": kind}
    raise Failure('model_index.json: expected a pipeline of diffusers with a "unet" or a '
                  '"transformer"', USAGE)


def _json(path):
    try:
        with open(path, encoding="utf-8") as file:
            contents = json.load(file)
    except OSError as error:
        raise Failure(f"cannot read {path.name}: {error.strerror}", USAGE) from error
    except ValueError as error:
        raise Failure(f"{path.name}: expected JSON: {error}", USAGE) from error
    if not isinstance(contents, dict):
        raise Failure(f"{path.name}: expected a JSON object", USAGE)
    return contents


def config_of(subject):
    """Returns (name, contents of config.json) of "hf:ORG/NAME", "hf:ORG/NAME@REVISION" or a path.

    Raises Failure."""
    if subject.startswith("hf:"):
        return _of_hub(subject)
    try:
        with open(subject, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise Failure(f"cannot read it: {error.strerror}", USAGE) from error
    except UnicodeDecodeError as error:
        raise Failure("expected a config.json: the file is not text", USAGE) from error
    config = _parsed(text)
    return config.get("_name_or_path") or config.get("model_type", "model"), config


def _parsed(text):
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise Failure(f"expected a config.json: line {error.lineno}, column {error.colno}: "
                      f"{error.msg}", USAGE) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise Failure('expected a config.json of transformers: it has no "model_type"', USAGE)
    return config


def _of_hub(subject):
    name, _, revision = subject.removeprefix("hf:").partition("@")
    try:
        from huggingface_hub import errors
    except ImportError as error:
        raise Failure("names of the hub need the package transformers: pip install transformers",
                      RESOURCE_MISSING) from error
    try:
        with open(_path(name, revision or None), encoding="utf-8") as file:
            return name.rpartition("/")[2], _parsed(file.read())
    except errors.HFValidationError as error:
        raise Failure("expected hf:ORG/NAME, such as hf:Qwen/Qwen2.5-7B", USAGE) from error
    except errors.GatedRepoError as error:
        raise Failure("the repository is gated: accept its terms on "
                      f"https://huggingface.co/{name}, then log in with `hf auth login`",
                      RESOURCE_MISSING) from error
    except errors.RevisionNotFoundError as error:
        raise Failure(f"the repository has no revision {revision!r}", USAGE) from error
    except errors.RepositoryNotFoundError as error:
        raise Failure("the hub has no such repository, or it is private: check the name, or log "
                      "in with `hf auth login`", USAGE) from error
    except errors.EntryNotFoundError as error:
        raise Failure("the repository has no config.json, so it is no model of transformers (a "
                      "pipeline, an adapter, GGUF): capture your script", USAGE) from error
    except errors.HfHubHTTPError as error:
        raise Failure(f"the hub answered with an error: {str(error).splitlines()[0]}",
                      RESOURCE_MISSING) from error


def _path(name, revision):
    """Returns the path of config.json in the hub's cache; downloads it if it is not there."""
    import huggingface_hub

    known = huggingface_hub.try_to_load_from_cache(name, "config.json", revision=revision)
    if isinstance(known, str):
        return known
    try:  # fails at once without a network; a download would try again for half a minute
        huggingface_hub.HfApi().model_info(name, revision=revision, timeout=10)
    except huggingface_hub.errors.HfHubHTTPError:
        raise
    except Exception as error:  # of the HTTP library, which differs between versions of the hub
        raise Failure("the hub cannot be reached, and the local cache does not have the model: "
                      "connect to the network, or give the path of its config.json",
                      RESOURCE_MISSING) from error
    return huggingface_hub.hf_hub_download(name, "config.json", revision=revision)

"""Offloading and plans in Axolotl, from its configuration file:

    plugins:
      - torch_ferry.axolotl.OffloadPlugin
    ferry:
      card: rtx4090
      budget: 20GiB

`ferry` takes the arguments of `torch_ferry.transformers.OffloadCallback`. Without it, all
activations are offloaded. Do not set Axolotl's own `activation_offloading`.
"""

from axolotl.integrations.base import BasePlugin
from pydantic import BaseModel

from .transformers import OffloadCallback

__all__ = ["OffloadPlugin"]


class OffloadArguments(BaseModel):
    """The keys that this plugin adds to Axolotl's configuration."""

    ferry: dict | None = None


class OffloadPlugin(BasePlugin):
    """Adds an `OffloadCallback` to the Trainer that Axolotl makes."""

    def get_input_args(self):
        return "torch_ferry.axolotl.OffloadArguments"

    def add_callbacks_post_trainer(self, cfg, trainer):
        return [OffloadCallback(**(cfg.ferry or {}))]

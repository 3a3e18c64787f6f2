"""Activation offloading, and plans, in Axolotl, by its configuration:

    plugins:
      - torch_ferry.axolotl.OffloadPlugin
    ferry:
      card: rtx4090
      budget: 20GiB

`ferry` has the arguments of `torch_ferry.transformers.OffloadCallback`; without it everything
moves. Leave Axolotl's own `activation_offloading` out.
"""

from axolotl.integrations.base import BasePlugin
from pydantic import BaseModel

from .transformers import OffloadCallback

__all__ = ["OffloadPlugin"]


class OffloadArguments(BaseModel):
    """What the configuration may have besides Axolotl's own."""

    ferry: dict | None = None


class OffloadPlugin(BasePlugin):
    """Puts an `OffloadCallback` into the Trainer that Axolotl makes."""

    def get_input_args(self):
        return "torch_ferry.axolotl.OffloadArguments"

    def add_callbacks_post_trainer(self, cfg, trainer):
        return [OffloadCallback(**(cfg.ferry or {}))]

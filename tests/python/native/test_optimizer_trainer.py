"""A Trainer whose optimizer keeps its state on the host: clipping, accumulation, resuming."""

import pathlib

from native.hugging_face import Folder, gpt2
from native.support import ferry, torch


class HostState(Folder):
    def trained(self, on_host, name, resume=None):
        trainer = self.trainer(model=gpt2(), output_dir=f"{self.folder}/{name}", max_steps=4,
                               save_strategy="steps", save_steps=2, lr_scheduler_type="cosine",
                               max_grad_norm=0.1)
        optimizer = torch.optim.AdamW(trainer.model.parameters(), lr=1e-3)
        if on_host:
            ferry.optimizer(optimizer, min_bytes=0, piece="4KiB", ahead="16KiB", behind="8KiB")
        trainer.optimizer = optimizer
        trainer.train(resume_from_checkpoint=resume)
        return trainer.model.state_dict(), optimizer

    def same(self, one, other):
        for name, value in one.items():
            self.assertTrue(torch.equal(value, other[name]), name)

    def test_it_trains_as_the_plain_one_does_and_resumes_from_either(self):
        plain, _ = self.trained(False, "plain")
        hosted, optimizer = self.trained(True, "hosted")
        self.same(plain, hosted)
        self.assertEqual(optimizer.host_statistics()["cpu"].device_bytes, 0)
        for name in ("plain", "hosted"):
            saved = pathlib.Path(self.folder, name, "checkpoint-2")
            for on_host in (True, False):
                self.same(plain, self.trained(on_host, f"again-{name}-{on_host}", str(saved))[0])

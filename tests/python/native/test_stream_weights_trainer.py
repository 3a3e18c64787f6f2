"""A Trainer whose model has its frozen weights on the host: checkpoints, evaluation, generation."""

from native.hugging_face import Folder, gpt2
from native.support import ferry, torch


def frozen():
    """A GPT-2 of which the norms alone are trained."""
    model = gpt2().requires_grad_(False)
    for name, p in model.named_parameters():
        p.requires_grad_(".ln_" in name)
    return model


class FrozenWeights(Folder):
    def trained(self, streams, checkpoints):
        model = frozen()
        handle = ferry.stream_weights(model, min_bytes=1 << 10) if streams else None
        trainer = self.trainer(model=model, output_dir=f"{self.folder}/{streams}-{checkpoints}",
                               max_steps=4, gradient_checkpointing=checkpoints, learning_rate=1e-2)
        trainer.train()
        loss = trainer.evaluate(trainer.train_dataset)["eval_loss"]
        words = model.generate(torch.arange(4)[None], max_new_tokens=4, do_sample=False)
        return [*model.state_dict().values(), torch.tensor(loss), words], handle

    def test_it_trains_as_the_plain_one_does(self):
        for checkpoints in (False, True):
            plain, _ = self.trained(False, checkpoints)
            streamed, handle = self.trained(True, checkpoints)
            self.assertEqual(len(plain), len(streamed))
            for one, other in zip(plain, streamed):
                self.assertTrue(torch.equal(one, other), checkpoints)
            self.assertGreater(handle.statistics().brought_count, 4 * handle.statistics().wards)

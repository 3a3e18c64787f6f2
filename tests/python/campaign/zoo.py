"""Models as people write them, made from their published configurations: no weights, no network.

MODELS has for each name a function that returns (module, inputs, loss function), to be called where
tensors are made on "cuda". Nothing here knows of captures.
"""

import torch
from torch import nn
from torch.nn import functional as F

TOKENS = (4, 512)
IMAGES = (16, 3, 224, 224)


def _loss(output):
    return output.loss


def _ids(shape=TOKENS, of=1000):
    return torch.zeros(shape, dtype=torch.int64)


def huggingface(kind, config=None, inputs=("input_ids", "labels"), shape=TOKENS, **settings):
    """`kind`: a class of transformers; its configuration's defaults are a published model's."""
    def make():
        import transformers
        architecture = getattr(transformers, kind)
        # A default of None is derived, as in `from_pretrained`.
        made = (getattr(transformers, config) if config else architecture.config_class)(**settings)
        if hasattr(made, "use_cache"):
            made.use_cache = False
        model = architecture(made).to(torch.bfloat16).train()
        ids = _ids(shape)
        return model, {name: ids for name in inputs}, _loss
    return make


def torchvision(kind, shape=IMAGES, classes=1000, pick=lambda output: output, **settings):
    def make():
        from torchvision import models
        parts = kind.split(".")
        space = models
        for part in parts[:-1]:
            space = getattr(space, part)
        model = getattr(space, parts[-1])(weights=None, **settings).train()
        labels = torch.zeros(shape[0], dtype=torch.int64)
        return model, (torch.zeros(shape),), lambda output: F.cross_entropy(pick(output), labels)
    return make


def deeplabv3():
    from torchvision.models import segmentation
    model = segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21)
    labels = torch.zeros(4, 224, 224, dtype=torch.int64)
    return model.train(), (torch.zeros(4, 3, 224, 224),), \
        lambda output: F.cross_entropy(output["out"], labels)


def llama_lora():
    import peft
    import transformers
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
        num_attention_heads=32, num_key_value_heads=8, use_cache=False)).to(torch.bfloat16)
    lora = peft.LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"],
                           task_type="CAUSAL_LM")
    ids = _ids((1, 2048))
    return peft.get_peft_model(model, lora).train(), {"input_ids": ids, "labels": ids}, _loss


def whisper():
    import transformers
    config = transformers.WhisperConfig(use_cache=False)
    model = transformers.WhisperForConditionalGeneration(config).to(torch.bfloat16).train()
    sound = torch.zeros(4, config.num_mel_bins, 3000, dtype=torch.bfloat16)
    return model, {"input_features": sound, "labels": _ids((4, 128))}, _loss


def vision(kind, **settings):
    def make():
        import transformers
        architecture = getattr(transformers, kind)
        model = architecture(architecture.config_class(**settings)).to(torch.bfloat16).train()
        pixels = torch.zeros(IMAGES, dtype=torch.bfloat16)
        return model, {"pixel_values": pixels, "labels": _ids(IMAGES[:1])}, _loss
    return make


def clip():
    import transformers
    model = transformers.CLIPModel(transformers.CLIPConfig()).train()
    return model, {"input_ids": _ids((8, 77)), "pixel_values": torch.zeros(8, 3, 224, 224),
                   "return_loss": True}, _loss


def wav2vec2(layerdrop):
    """With it, whether a layer runs is drawn in each step."""
    def make():
        import transformers
        config = transformers.Wav2Vec2Config(layerdrop=layerdrop, mask_time_prob=0)
        model = transformers.Wav2Vec2ForSequenceClassification(config).train()
        return model, {"input_values": torch.zeros(4, 16000), "labels": _ids((4,))}, _loss
    return make


def masked_bert():
    """A batch whose sentences end early: attention has a mask."""
    import transformers
    model = transformers.BertForMaskedLM(transformers.BertConfig()).to(torch.bfloat16).train()
    ids = _ids()
    mask = torch.ones_like(ids)
    mask[1, 300:] = 0
    return model, {"input_ids": ids, "attention_mask": mask, "labels": ids}, _loss


def diffusers_unet():
    from diffusers import UNet2DConditionModel
    model = UNet2DConditionModel(sample_size=64, cross_attention_dim=768).to(torch.bfloat16).train()
    sample = torch.zeros(2, 4, 64, 64, dtype=torch.bfloat16)
    text = torch.zeros(2, 77, 768, dtype=torch.bfloat16)
    noise = torch.zeros_like(sample)
    return model, (sample, torch.tensor([10, 20]), text), \
        lambda output: F.mse_loss(output.sample, noise)


def recurrent(kind, cudnn):
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10000, 256)
            self.layers = getattr(nn, kind)(256, 512, num_layers=2, batch_first=True)
            self.head = nn.Linear(512, 100)

        def forward(self, ids):
            with torch.backends.cudnn.flags(enabled=cudnn):
                return self.head(self.layers(self.embedding(ids))[0])

    def make():
        labels = _ids((16, 64))
        return Tagger().train(), (_ids((16, 64)),), \
            lambda output: F.cross_entropy(output.flatten(0, 1), labels.flatten())
    return make


class Experts(nn.Module):
    """A mixture of experts as it is written by hand: each is sent the tokens that picked it."""

    def __init__(self, width=512, experts=8, picks=2):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                                   nn.Linear(4 * width, width))
                                     for _ in range(experts))
        self.picks = picks

    def forward(self, x):
        weights, picked = self.router(x).softmax(-1).topk(self.picks, -1)
        made = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(picked == number)
            made.index_add_(0, token, expert(x[token]) * weights[token, place, None])
        return made


def experts():
    return Experts().train(), (torch.zeros(2048, 512),), lambda output: output.square().mean()


def conv3d():
    model = nn.Sequential(nn.Conv3d(3, 32, 3, padding=1), nn.BatchNorm3d(32), nn.ReLU(),
                          nn.MaxPool3d(2), nn.Conv3d(32, 64, 3, padding=1), nn.ReLU(),
                          nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 10))
    return model.train(), (torch.zeros(4, 3, 16, 64, 64),), lambda output: output.square().mean()


class Spectral(nn.Module):
    """A layer of a Fourier neural operator."""

    def __init__(self, channels=32, modes=16):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels, channels, modes, modes,
                                               dtype=torch.complex64))
        self.modes = modes

    def forward(self, x):
        spectrum = torch.fft.rfft2(x)
        kept = spectrum[..., :self.modes, :self.modes]
        mixed = torch.zeros_like(spectrum)
        mixed[..., :self.modes, :self.modes] = torch.einsum("bixy,ioxy->boxy", kept, self.weight)
        return x + torch.fft.irfft2(mixed, s=x.shape[-2:])


def fft():
    return nn.Sequential(Spectral(), nn.GELU(), Spectral()), (torch.zeros(8, 32, 128, 128),), \
        lambda output: output.square().mean()


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return 2 * x * gradient


class Kept(torch.autograd.Function):
    """Keeps a tensor where autograd does not look."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = x.exp()
        return ctx.kept.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.kept


def custom(function):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(1024, 1024), nn.Linear(1024, 10)

        def forward(self, x):
            return self.second(function.apply(self.first(x)))

    return lambda: (Net(), (torch.zeros(256, 1024),), lambda output: output.square().mean())


def frozen():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(6)))
    for parameter in model[:4].parameters():
        parameter.requires_grad_(False)
    return model, (torch.zeros(512, 1024),), lambda output: output.square().mean()


def penalty():
    class Penalty(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))

        def forward(self, x):
            x = x.requires_grad_()
            slope, = torch.autograd.grad(self.net(x).sum(), x, create_graph=True)
            return (slope.norm(dim=1) - 1).square().mean()

    return Penalty(), (torch.zeros(64, 256),), lambda loss: loss


def branching():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(256, 256), nn.Linear(256, 256)

        def forward(self, x):
            y = self.first(x)
            return self.second(y) if y.mean().item() > 0 else y

    return Branch(), (torch.zeros(64, 256),), lambda output: output.square().mean()


def encoder():
    layer = nn.TransformerEncoderLayer(512, 8, batch_first=True, dropout=0.1)
    return nn.TransformerEncoder(layer, 6).train(), (torch.zeros(8, 256, 512),), \
        lambda output: output.square().mean()


def compiled():
    model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512))
    return torch.compile(model), (torch.zeros(64, 512),), lambda output: output.square().mean()


_LLAMA_1B = dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192,
                 num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                 tie_word_embeddings=True)
_LLAMA_8B = dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                 num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)

# name → (function, what is assumed)
MODELS = {
    "ResNet-50": (torchvision("resnet50"), ()),
    "ViT-B/16 (torchvision)": (torchvision("vit_b_16"), ()),
    "DeepLabV3, ResNet-50": (deeplabv3, ()),
    "MobileNetV3": (torchvision("mobilenet_v3_large"), ()),
    "EfficientNet-B0": (torchvision("efficientnet_b0"), ()),
    "ConvNeXt-T": (torchvision("convnext_tiny"), ()),
    "Swin-T": (torchvision("swin_t"), ()),
    "DenseNet-121": (torchvision("densenet121"), ()),
    "R3D-18": (torchvision("video.r3d_18", shape=(4, 3, 16, 112, 112)), ()),
    "GPT-2": (huggingface("GPT2LMHeadModel"), ()),
    "Llama, 1B": (huggingface("LlamaForCausalLM", shape=(1, 2048), **_LLAMA_1B), ()),
    "Llama-3-8B": (huggingface("LlamaForCausalLM", shape=(1, 2048), **_LLAMA_8B), ()),
    "Llama, 1B, LoRA": (llama_lora, ()),
    "Qwen2.5": (huggingface("Qwen2ForCausalLM", shape=(1, 2048), num_hidden_layers=8), ()),
    "Qwen3": (huggingface("Qwen3ForCausalLM", shape=(1, 2048), num_hidden_layers=8), ()),
    "Gemma-2": (huggingface("Gemma2ForCausalLM", shape=(1, 2048), num_hidden_layers=8), ()),
    "Mistral": (huggingface("MistralForCausalLM", shape=(1, 2048), num_hidden_layers=8), ()),
    "Phi-3": (huggingface("Phi3ForCausalLM", shape=(1, 2048), num_hidden_layers=8,
                          pad_token_id=0), ()),
    "OPT": (huggingface("OPTForCausalLM"), ()),
    "BLOOM": (huggingface("BloomForCausalLM", num_hidden_layers=4), ()),
    "GPT-NeoX": (huggingface("GPTNeoXForCausalLM", num_hidden_layers=4), ()),
    "Mamba": (huggingface("MambaForCausalLM", shape=(2, 64), num_hidden_layers=2), ()),
    "Mixtral": (huggingface("MixtralForCausalLM", num_hidden_layers=2), ()),
    "Mixtral, eager experts": (huggingface("MixtralForCausalLM", num_hidden_layers=2,
                                           experts_implementation="eager"), ("balanced",)),
    "BERT": (huggingface("BertForMaskedLM"), ()),
    "BERT, padded": (masked_bert, ()),
    "DistilBERT": (huggingface("DistilBertForMaskedLM"), ()),
    "DeBERTa-v2": (huggingface("DebertaV2ForMaskedLM"), ()),
    "T5-small": (huggingface("T5ForConditionalGeneration", decoder_start_token_id=0,
                             pad_token_id=0), ()),
    "BART": (huggingface("BartForConditionalGeneration"), ()),
    "Whisper": (whisper, ()),
    "ViT-B/16 (Hugging Face)": (vision("ViTForImageClassification", num_labels=1000), ()),
    "DINOv2": (vision("Dinov2ForImageClassification", num_labels=1000), ()),
    "CLIP": (clip, ()),
    "wav2vec 2.0": (wav2vec2(0.1), ()),
    "wav2vec 2.0, no LayerDrop": (wav2vec2(0.0), ()),
    "U-Net (diffusers)": (diffusers_unet, ()),
    "LSTM, cuDNN": (recurrent("LSTM", True), ()),
    "LSTM": (recurrent("LSTM", False), ()),
    "GRU": (recurrent("GRU", False), ()),
    "experts by torch.where": (experts, ()),
    "experts, balanced": (experts, ("balanced",)),
    "Conv3d": (conv3d, ()),
    "FFT": (fft, ()),
    "a custom Function": (custom(Squared), ()),
    "one that keeps a tensor": (custom(Kept), ()),
    "frozen layers": (frozen, ()),
    "a gradient penalty": (penalty, ()),
    "a branch on a value": (branching, ()),
    "TransformerEncoder": (encoder, ()),
    "torch.compile": (compiled, ()),
}

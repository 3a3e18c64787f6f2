"""Published configurations of the hub's most used encoders, encoder-decoders and image models,
written by hand, as in decoders.py. Of image models the first number is the height and width.

SMALL is a small Llama of our own, for trainings with values.
"""


def _bert(hidden, layers, heads, **more):
    return {"architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_size": hidden,
            "intermediate_size": 4 * hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "vocab_size": 30522, **more}


def _roberta(kind, head, vocabulary):
    return {**_bert(768, 12, 12, vocab_size=vocabulary, type_vocab_size=1, pad_token_id=1,
                    max_position_embeddings=514), "model_type": kind, "architectures": [head]}


def _t5(width, inner, layers, heads, vocabulary=32128, kind="t5", head="T5", **more):
    return {"architectures": [f"{head}ForConditionalGeneration"], "model_type": kind,
            "d_model": width, "d_kv": 64, "d_ff": inner, "num_layers": layers, "num_heads": heads,
            "num_decoder_layers": layers, "vocab_size": vocabulary, "decoder_start_token_id": 0,
            "pad_token_id": 0, **more}


def _bart(width, layers, heads):
    return {"architectures": ["BartForConditionalGeneration"], "model_type": "bart",
            "d_model": width, "encoder_layers": layers, "decoder_layers": layers,
            "encoder_attention_heads": heads, "decoder_attention_heads": heads,
            "encoder_ffn_dim": 4 * width, "decoder_ffn_dim": 4 * width, "vocab_size": 50265,
            "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2,
            "max_position_embeddings": 1024}


SMALL = (256, 2, {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512,
    "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 32000, "dtype": "bfloat16",
    "max_position_embeddings": 512, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0})

_GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

OTHERS = {
    "bert-base-uncased": (512, 16, _bert(768, 12, 12)),
    "bert-large-uncased": (512, 8, _bert(1024, 24, 16)),
    "roberta-base": (512, 8, _roberta("roberta", "RobertaForMaskedLM", 50265)),
    "xlm-roberta-base": (256, 8, _roberta("xlm-roberta", "XLMRobertaForMaskedLM", 250002)),
    "deberta-v3-base": (256, 4, {
        **_bert(768, 12, 12, vocab_size=128100, type_vocab_size=0, relative_attention=True,
                position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True,
                pos_att_type=["p2c", "c2p"], layer_norm_eps=1e-7, max_relative_positions=-1,
                position_biased_input=False), "model_type": "deberta-v2",
        "architectures": ["DebertaV2ForMaskedLM"]}),
    "electra-base-generator": (512, 8, {
        **_bert(256, 12, 4, embedding_size=768), "model_type": "electra",
        "architectures": ["ElectraForMaskedLM"]}),
    "distilbert-base-uncased": (512, 16, {
        "architectures": ["DistilBertForMaskedLM"], "model_type": "distilbert", "dim": 768,
        "hidden_dim": 3072, "n_layers": 6, "n_heads": 12, "vocab_size": 30522}),
    "albert-base-v2": (512, 8, {
        **_bert(768, 12, 12, vocab_size=30000, embedding_size=128, num_hidden_groups=1,
                inner_group_num=1, hidden_act="gelu_new", hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0), "model_type": "albert",
        "architectures": ["AlbertForMaskedLM"]}),
    "ModernBERT-base": (1024, 8, {
        "architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert",
        "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
        "num_attention_heads": 12, "vocab_size": 50368, "global_attn_every_n_layers": 3,
        "local_attention": 128, "dtype": "float32"}),
    "t5-small": (512, 8, _t5(512, 2048, 6, 8)),
    "t5-base": (512, 4, _t5(768, 3072, 12, 12)),
    "flan-t5-large": (256, 2, _t5(1024, 2816, 24, 16, **_GATED)),
    "mt5-small": (256, 4, _t5(512, 1024, 8, 6, 250112, "mt5", "MT5", **_GATED)),
    "bart-base": (512, 8, _bart(768, 6, 12)),
    "bart-large": (512, 4, _bart(1024, 12, 16)),
    "vit-base-patch16-224": (224, 32, {
        "architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 768,
        "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
        "image_size": 224, "patch_size": 16}),
    "swin-tiny": (224, 16, {
        "architectures": ["SwinForImageClassification"], "model_type": "swin", "embed_dim": 96,
        "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "window_size": 7,
        "image_size": 224, "patch_size": 4}),
    "convnext-tiny": (224, 16, {
        "architectures": ["ConvNextForImageClassification"], "model_type": "convnext",
        "depths": [3, 3, 9, 3], "hidden_sizes": [96, 192, 384, 768], "image_size": 224}),
    "resnet-50": (224, 32, {
        "architectures": ["ResNetForImageClassification"], "model_type": "resnet",
        "depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048], "embedding_size": 64,
        "layer_type": "bottleneck"}),
    "dinov2-base": (224, 16, {
        "architectures": ["Dinov2ForImageClassification"], "model_type": "dinov2",
        "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "image_size": 518, "patch_size": 14}),
}

"""Small models of Hugging Face's transformers with random weights; nothing is downloaded."""
import torch


def _bert(transformers, ids):
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        vocab_size=100, max_position_embeddings=32, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0)
    mask = torch.ones_like(ids)
    mask[1, -3:] = 0
    return (transformers.BertModel(config), {"input_ids": ids, "attention_mask": mask},
            lambda output: output.last_hidden_state.square().mean() + output.pooler_output.sum())


def _gpt2(transformers, ids):
    config = transformers.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=32, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, use_cache=False)
    return (transformers.GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids},
            lambda output: output.loss)


def _t5(transformers, ids):
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2,
                                   num_heads=4, vocab_size=100, dropout_rate=0.0, use_cache=False)
    return (transformers.T5ForConditionalGeneration(config),
            {"input_ids": ids, "decoder_input_ids": ids},
            lambda output: output.logits.square().mean())


def _vit(transformers, _ids):
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        image_size=32, patch_size=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return (transformers.ViTModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)},
            lambda output: output.last_hidden_state.square().mean())


HUGGING_FACE = {"bert": _bert, "gpt2": _gpt2, "t5": _t5, "vit": _vit}


def make_theirs(transformers, name):
    """(model, named inputs, loss), the same ones each time."""
    torch.manual_seed(1)
    model, inputs, loss = HUGGING_FACE[name](transformers, torch.randint(3, 100, (2, 8)))
    return model.train(), inputs, loss


def eager_step(model, inputs, loss):
    """Loss, and gradients by name."""
    value = loss(model(**inputs))
    names, parameters = zip(*model.named_parameters())
    return value.detach(), dict(zip(names, torch.autograd.grad(value, parameters, allow_unused=True)))

"""Our assemblies compute what the Hugging Face implementations compute from the same weights."""

import pytest
import torch
from safetensors.torch import load_file

from course_lib.data import store
from course_lib.pretrained import minilm, smollm2

transformers = pytest.importorskip("transformers")


def fetched(name):
    return pytest.mark.skipif(not store.is_fetched(name), reason=f"needs {name}: `course fetch`")


@fetched("minilm")
def test_minilms_states_are_berts_with_padding_too():
    ours = minilm.load()
    config = transformers.BertConfig(
        vocab_size=minilm.VOCAB,
        hidden_size=minilm.D_MODEL,
        num_hidden_layers=minilm.LAYERS,
        num_attention_heads=minilm.HEADS,
        intermediate_size=minilm.D_FF,
    )
    theirs = transformers.BertModel(config, add_pooling_layer=False).eval()
    weights = load_file(store.unpacked("minilm", minilm.FOLDER + "model.safetensors"))
    theirs.load_state_dict(
        {name: w for name, w in weights.items() if not name.startswith("pooler")}, strict=False
    )
    tokens, mask = ours.tokens(["To be, or not to be.", "A man plays the guitar on a stage."])
    with torch.no_grad():
        states = theirs(tokens, attention_mask=mask.squeeze(-2).long()).last_hidden_state
    real = mask.squeeze(-2)
    assert not real.all()
    torch.testing.assert_close(ours(tokens, mask)[real], states[real], atol=1e-4, rtol=0)
    # the constants of lesson 09
    tokens, mask = ours.tokens(
        [
            "A man is playing a guitar on stage.",
            "Someone performs music with a string instrument.",
            "The stock market fell sharply on Monday.",
        ]
    )
    real = mask.squeeze(-2).unsqueeze(-1)
    with torch.no_grad():
        states = theirs(tokens, attention_mask=mask.squeeze(-2).long()).last_hidden_state
    means = torch.nn.functional.normalize((states * real).sum(1) / real.sum(1), dim=-1)
    cosines = (means @ means.T)[[0, 0, 1], [1, 2, 2]]
    printed = torch.tensor([0.574378, -0.092191, -0.066028])
    torch.testing.assert_close(cosines, printed, atol=1e-4, rtol=0)


@fetched("smollm2")
def test_smollm2s_logits_are_llamas():
    ours = smollm2.load()
    config = transformers.LlamaConfig(
        vocab_size=smollm2.VOCAB,
        hidden_size=smollm2.D_MODEL,
        num_hidden_layers=smollm2.LAYERS,
        num_attention_heads=smollm2.HEADS,
        num_key_value_heads=smollm2.GROUPS,
        intermediate_size=smollm2.D_FF,
        max_position_embeddings=smollm2.MAX_LENGTH,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": smollm2.BASE},
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        theirs = transformers.LlamaForCausalLM(config)
    names = {
        "attention.gain": "input_layernorm",
        "feed_forward.gain": "post_attention_layernorm",
        **{f"attention.sublayer.attention.w_{x}.weight": f"self_attn.{x}_proj" for x in "qkvo"},
        "feed_forward.sublayer.w_1.weight": "mlp.gate_proj",
        "feed_forward.sublayer.w_2.weight": "mlp.down_proj",
        "feed_forward.sublayer.w_3.weight": "mlp.up_proj",
    }
    weights = {"words.weight": "model.embed_tokens", "last_norm.gain": "model.norm"}
    for i in range(smollm2.LAYERS):
        weights |= {f"blocks.{i}.{a}": f"model.layers.{i}.{b}" for a, b in names.items()}
    state = ours.state_dict()
    theirs.load_state_dict(
        {f"{b}.weight": state[a] for a, b in weights.items()}, strict=False, assign=True
    )
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config)
    theirs.eval().tie_weights()
    tokens = torch.tensor([ours.tokenizer.encode("The capital of France is Paris, and").ids])
    with torch.no_grad():
        logits = theirs(tokens).logits
    torch.testing.assert_close(ours(tokens), logits, atol=1e-4, rtol=0)
    # the constant of lesson 09: what is said after "The capital of France is"
    tokens = torch.tensor([ours.tokenizer.encode("The capital of France is").ids])
    with torch.no_grad():
        paris = theirs(tokens).logits[0, -1, ours.tokenizer.encode(" Paris").ids[0]].item()
    assert paris == pytest.approx(17.371265, abs=1e-3)

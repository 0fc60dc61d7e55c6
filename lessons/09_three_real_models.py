# %% [markdown]
# # 09 · Three real models
#
# **75 minutes · after lesson 08 · needs `minilm` (84 MB), `marian` (35 MB) and `smollm2` (93 MB)**
#
# So far your parts of a Transformer ran in toy models. **Do the models that people use really consist of these parts?** Here your functions run in three: one compares sentences, one translates, one answers.
#
# At the end you talk with the third one, through a cache that you have built, and can explain how a model that predicts the next token answers you.

# %%
import json
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution

# %% tags=["hide-input"]
from course_lib.instruments.pictures import real_models as pictures

pictures.outlines()

# %% tags=["hide-input"]
from course_lib.data import needs, store
from course_lib.feed_forward import FeedForward
from course_lib.pretrained import marian, minilm, smollm2
from course_lib.real_models import use_cache

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask, rotary = mine("masks/causal"), mine("positions/rotary")
feed_forward = mine("feed_forward/position_wise")
MultiHeadAttention = mine("multi_head/attention")
layer_norm, rms_norm = mine("add_norm/layer_norm"), mine("add_norm/rms_norm")
EncoderBlock, DecoderBlock = mine("encoder/block"), mine("decoder/block")

# %% [markdown]
# The drawing of lesson 08, three times. Colour marks what the 2017 model does not have; residual connections are not drawn.
#
# | model | family | a token may look at | first trained to | parameters |
# |:-|:-|:-|:-|--:|
# | MiniLM | encoder only | all tokens | imitate a **masked language model**, which fills in blanks (BERT's task) | 22.6 M |
# | Marian | encoder-decoder | the whole source, and earlier target tokens | write the translation | 16.9 M |
# | SmolLM2 | decoder only | itself and earlier tokens (causal mask) | predict the next token | 134.5 M |

# %% [markdown]
# ## A checkpoint becomes your block
#
# The first model is `all-MiniLM-L6-v2`: six post-norm blocks, $d_{model} = 384$, 12 heads, learned positions, and GELU (a smooth ReLU) in the feed-forward network. Its blocks learned by **distillation** (Wang et al. 2020b) to imitate the attention of a larger BERT-like model, and were **fine-tuned** on a billion pairs of sentences that belong together.
#
# If it has your parts, its blocks' weights fit into yours, none missing, none left over. They are in one file, a **checkpoint**: a header in JSON (names, shapes, offsets), then numbers. The first 8 bytes are the header's length:

# %%
needs("minilm")

# %%
with store.unpacked("minilm", minilm.FOLDER + "model.safetensors").open("rb") as checkpoint:
    length = int.from_bytes(checkpoint.read(8), "little")
    header = json.loads(checkpoint.read(length))
    entry = header["encoder.layer.0.attention.self.query.weight"]
    start, end = entry["data_offsets"]
    checkpoint.seek(8 + length + start)
    data = bytearray(checkpoint.read(end - start))
by_hand = torch.frombuffer(data, dtype=torch.float32).view(entry["shape"])
print(entry)

# %% [markdown]
# Loading it means renaming. Here are three of a block's 16 tensors. A `Linear` of torch keeps $W^T$; your `feed_forward` computes $xW$, so two matrices are transposed.
#
# | their name, after `encoder.layer.0.` | our name, after `blocks.0.` | our shape |
# |:-|:-|:-|
# | `attention.self.query.weight` | `attention.sublayer.attention.w_q.weight` | 384 × 384 |
# | `attention.output.LayerNorm.weight` | `attention.gain` | 384 |
# | `intermediate.dense.weight` | `feed_forward.sublayer.w_1` (transposed) | 384 × 1536 |
#
# `load` takes your functions as arguments. Here are six of *your* blocks with MiniLM's weights; only the GELU network is the library's:


# %%
def my_attention(d_model, heads, rule=scaled_dot_product_attention):
    return MultiHeadAttention(d_model, heads, rule)


parts = {"block": EncoderBlock, "attention": my_attention, "norm_layer": layer_norm}
my_encoder = minilm.load(**parts)
w_q = my_encoder.blocks[0].attention.sublayer.attention.w_q.weight
print("the tensor read by hand is the block's w_q:", torch.equal(by_hand, w_q))

# %% [markdown]
# An encoder gives a state $h_i$ to each token. To compare sentences we need one vector each; the mean of the states works well (Reimers & Gurevych 2019). In a batch, short sentences are padded; $m_i$ is 1 for a real token and 0 for padding:
#
# $$\underset{d}{s} = \frac{\sum_{i=1}^{n} m_i\, h_i}{\sum_{i=1}^{n} m_i} \qquad \underset{n \times d}{H}, \quad \underset{n}{m}$$

# %%
needs()

# %%
# exercise: encoder/mean_pool

# %%
check("encoder/mean_pool", mean_pool)

# %%
mean_pool = mine("encoder/mean_pool")

# %% [markdown]
# Fine-tuning was **contrastive**: a sentence's vector should have a larger cosine with its partner's than with all others in the batch. The first two of these sentences mean nearly the same, and share only the word *a*; the third is about something else. Here are the cosines of 1 with 2, 1 with 3, and 2 with 3:

# %%
needs("minilm")

# %%
my_encoder.pool = mean_pool
sentences = ["A man is playing a guitar on stage."]
sentences += ["Someone performs music with a string instrument."]
sentences += ["The stock market fell sharply on Monday."]
vectors = my_encoder.embed(sentences)
cosines = (vectors @ vectors.T)[[0, 0, 1], [1, 2, 2]]
print("yours:         ", [round(x, 6) for x in cosines.tolist()])
print("Hugging Face's:", [0.574378, -0.092191, -0.066028])

# %% [markdown]
# The second line comes from Hugging Face's `BertModel`, run once on the same file and sentences. So this *is* MiniLM.
#
# Now it works for you, as the search of a help page: the vector of the question, the vectors of all answers, the largest cosine. Type what a customer could say, without any word of the answers:

# %%
TEXT = "I can't get into my account any more"  # yours
answers = ["Reset your password", "Track a parcel", "Return an article", "Pay by invoice"]
cosines = (my_encoder.embed([TEXT]) @ my_encoder.embed(answers).T)[0]
for cosine, answer in sorted(zip(cosines.tolist(), answers), reverse=True):
    print(f"{cosine:5.2f}  {answer}")

# %% [markdown]
# A search that counts shared words finds nothing here: question and answers share none.
#
# ## A real translator
#
# The second model has both stacks. Firefox translates web pages on your own machine with such models (Mozilla, trained with Marian: Junczys-Dowmunt et al. 2018): six of your encoder blocks, post-norm, and two decoder blocks with cross-attention. In those a small recurrence, the **SSRU** (Kim et al. 2019), replaces masked self-attention, because it is faster.

# %%
needs("marian")


# %%
def my_network(d_model, d_ff):
    return FeedForward(d_model, d_ff, network=feed_forward)


my_encoder = None  # a model that no name holds any more gives its memory back
parts = {"attention": my_attention, "feed_forward": my_network, "norm_layer": layer_norm}
parts |= {"encoder_block": EncoderBlock, "decoder_block": DecoderBlock}
my_translator = marian.load("en-pt", **parts)
sentence = "My sister lives in a small house near the sea."
print(my_translator.translate(sentence))

# %% [markdown]
# Its blocks are your code, but for the recurrence; the embedding, the tokenizer and the loop that writes are the library's.
#
# ## One mistake at a time
#
# Four translators, each with one mistake: pre-norm where the weights expect post-norm; scores not divided; scores divided by $d_k$ instead of $\sqrt{d_k}$; positions forgotten (all zero). A wrong scale only makes each head look too sharply or too evenly. The other two mistakes change the states themselves. **Which two have a wrong scale?**


# %% tags=["hide-input"]
def undivided(q, k, v, mask=None):
    return softmax(dot_scores(q, k), mask) @ v


def divided_by_d_k(q, k, v, mask=None):
    return softmax(dot_scores(q, k) / q.shape[-1], mask) @ v


def attending_by(rule):
    return lambda d_model, heads: MultiHeadAttention(d_model, heads, rule)


broken = {
    "positions forgotten": marian.load(),
    "divided by d_k": marian.load(attention=attending_by(divided_by_d_k)),
    "pre-norm": marian.load(norm="pre"),
    "not divided": marian.load(attention=attending_by(undivided)),
}
broken["positions forgotten"].embedding.positions.zero_()
translations = [model.translate(sentence)[:90] for model in broken.values()]
print(*(f"{letter}: {text}" for letter, text in zip("ABCD", translations)), sep="\n")

# %%
guess = None  # two letters, such as "AB"

# %%
reveal(guess, "".join(x for x, name in zip("ABCD", broken) if "divided" in name))
print(*(f"{letter}: {name}" for letter, name in zip("ABCD", broken)), sep=", ")

# %% [markdown]
# Two mistakes have a signature, in six sentences of six (`test_marian.py`): forgotten positions give nothing but *s*, and norms in the wrong place repeat a few words over and over. Here a wrong scale still gives Portuguese, about the right things. B says *the house a small house near the house all the house*, and D *my small house near the sea*: sister and verb are gone.

# %%
needs()

# %% [markdown]
# ## What is new since 2017
#
# The third model writes: **SmolLM2-135M-Instruct** (Allal et al. 2025), thirty of your pre-norm blocks with a causal mask. Ours is a copy with **four-bit** weights, rounded to 16 levels to make the file small. Five differences from 2017 matter:
#
# | 2017 | SmolLM2 | what changed | lesson |
# |:-|:-|:-|:-|
# | post-norm | pre-norm | the stream has no norm on it | 07 |
# | layer norm | RMSNorm | no mean, no bias | 07 |
# | sinusoids, added to the input | rotary | queries and keys are rotated by position | 04 |
# | ReLU network | SwiGLU | a gate | here |
# | keys for each head | keys for each group of heads | a smaller cache | here |
#
# Open models since 2024 go on from there. They normalize queries and keys (Qwen 2025; lesson 03), let every second layer see only a window (OpenAI 2025; 13), keep one latent vector instead of all keys and values (DeepSeek-AI 2024; 15), or send each token through a few of many feed-forward networks (12).

# %% [markdown]
# **A gate.** The ReLU multiplies $z$ by a gate of 0 or 1: $\max(0, z) = z \cdot [z > 0]$. Replace the step by the smooth sigmoid $\sigma(z)$, and you have the **swish**, which PyTorch and most configurations call **SiLU**. Then let it gate a second hidden layer, from a matrix of its own; ⊙ multiplies entry by entry. This is **SwiGLU** (Shazeer 2020):
#
# $$\mathrm{swish}(z) = z\,\sigma(z) \qquad\qquad \underset{n \times d}{y} = \Big(\underset{n \times d_{ff}}{\mathrm{swish}(x W_1)} \odot \underset{n \times d_{ff}}{(x W_3)}\Big) \underset{d_{ff} \times d}{W_2}$$

# %% tags=["hide-input"]
pictures.gates()

# %% [markdown]
# In checkpoints $W_1$, $W_3$ and $W_2$ are called `gate_proj`, `up_proj` and `down_proj`. With three matrices, SwiGLU is as large as the network of 2017 if $3\,d\,d_{ff} = 2 \cdot d \cdot 4d$, so $d_{ff} = \frac83 d$. SmolLM2 has exactly this.
#
# Write it from scratch: three `nn.Linear` without biases, under the names of the formula.

# %%
# exercise: feed_forward/swiglu

# %%
check("feed_forward/swiglu", SwiGLU)

# %%
SwiGLU = mine("feed_forward/swiglu")

# %% [markdown]
# ## Read each token once
#
# Lesson 08's `greedy` reads the whole text again for each new token. With a **key-value cache** (KV cache) it need not. In a causal model a later token cannot change an earlier one's key or value. So keep them, and a step computes query, key and value of the new token $t$ only:
#
# $$\underset{t \times d_k}{K_t} = \begin{bmatrix} K_{t-1} \\ k_t \end{bmatrix} \qquad \underset{t \times d_v}{V_t} = \begin{bmatrix} V_{t-1} \\ v_t \end{bmatrix} \qquad \underset{1 \times d_v}{o_t} = \mathrm{softmax}\!\left(\frac{q_t K_t^T}{\sqrt{d_k}}\right) V_t$$

# %% tags=["hide-input"]
pictures.cache_step()

# %% [markdown]
# One object serves one block and one text. In the stub, `groups` is the number of key heads, so far as many as query heads. The first call may bring a whole prompt, later ones a single token, so the mask must fit both. Lesson 05's `causal_mask(n_q, n_k)` was made for this: the queries are the last $n_q$ of the $n_k$ keys.

# %%
# exercise: key_value_cache/step

# %%
check("key_value_cache/step", KeyValueCache)

# %%
KeyValueCache = mine("key_value_cache/step")

# %% [markdown]
# **Shared keys.** The cache costs memory: two vectors for each token, head and block. To make it smaller, several query heads share one key head and one value head. With $H$ query heads and $G$ groups, query head $h$ (from 0) uses group $g(h)$. $G = H$ is multi-head attention, $G = 1$ **multi-query attention** (Shazeer 2019), between them is **grouped-query attention** (Ainslie et al. 2023):
#
# $$\underset{n \times d_v}{\mathrm{head}_h} = \mathrm{softmax}\!\left(\frac{Q_h K_{g(h)}^T}{\sqrt{d_k}}\right) V_{g(h)} \qquad g(h) = \left\lfloor \frac{h\,G}{H} \right\rfloor$$

# %% tags=["hide-input"]
pictures.shared_keys()

# %%
# exercise: decoder/grouped_query

# %%
check("decoder/grouped_query", grouped_query_attention)

# %%
grouped_query_attention = mine("decoder/grouped_query")

# %% [markdown]
# ## What names do not tell
#
# Su et al. 2021 rotate a head's columns $2c$ and $2c + 1$ as a pair. Our file of SmolLM2, in llama.cpp's format GGUF, has this order; Hugging Face's file has the other one. Your `rotary` rotates columns $c$ and $c + d_k/2$. Both are right, but rows of $W_Q$ and $W_K$ must change places when they are loaded. This function does it wrongly, and no shape or error tells you.

# %%
# exercise: positions/pairs_to_halves

# %%
check("positions/pairs_to_halves", pairs_to_halves)

# %%
pairs_to_halves = mine("positions/pairs_to_halves")

# %% [markdown]
# Load SmolLM2 with your parts, first without `pairs_to_halves`: $W_Q$ and $W_K$ keep the file's order. Let it write, and measure the mean loss of the next token on five texts:

# %% tags=["hide-input"]
five = """The quick brown fox jumps over the lazy dog. To be, or not to be, that is the question.
Water boils at a hundred degrees at sea level, and at a lower temperature in the mountains.
She put the letter into her pocket, closed the door behind her and walked down to the harbour.
Add the flour to the butter and the sugar, stir until smooth, and bake for twenty minutes.
The committee meets again in March to decide whether the old bridge will be repaired or replaced."""


def loss(model, text):
    tokens = torch.tensor(model.tokenizer.encode(text).ids)
    return F.cross_entropy(model(tokens)[:-1], tokens[1:]).item()


def write_and_measure(model):
    print(repr(opening + "".join(model.write(opening, 8))))
    print(f"{sum(loss(model, text) for text in five.splitlines()) / 5:.2f} nats on five texts")


# %%
needs("smollm2")

# %%
parts = {"rule": grouped_query_attention, "turn": rotary, "norm_layer": rms_norm}
parts |= {"feed_forward": SwiGLU, "block": EncoderBlock, "cache": KeyValueCache}
opening = "The capital of France is"
my_translator = broken = my_model = None  # their memory is free again
my_model = smollm2.load(reorder=lambda weight, heads: weight, **parts)
write_and_measure(my_model)

# %% [markdown]
# It writes well. Now with your `pairs_to_halves`, and with the logit of *Paris* beside that of Hugging Face's `LlamaForCausalLM`, on the same decoded weights:

# %%
my_model = None  # one copy at a time
my_model = smollm2.load(reorder=pairs_to_halves, **parts)
write_and_measure(my_model)
tokens = torch.tensor(my_model.tokenizer.encode(opening).ids)
logit = my_model(tokens)[-1, my_model.tokenizer.encode(" Paris").ids[0]].item()
print(f"the logit of Paris: {logit:.4f}; Hugging Face's: 17.3713")

# %% [markdown]
# The prompt hid the bug: queries and keys were reordered alike, so only their rotation was wrong. The mean loss shows it. Measure a loaded model; do not only read what it writes.
#
# ## How does it answer me?
#
# This model predicts the next token. Why does it answer a question instead of continuing it? `write` appends tokens until the model predicts `<|im_end|>`, its token for the end of a message. **What will it write after the bare question, *Why is the sky blue?***

# %%
guess = None  # a few words, or what kind of text

# %%
question = "Why is the sky blue?"
reveal(guess, repr("".join(my_model.write(question, 30))))

# %% [markdown]
# Nothing. The likeliest next token says that the message is *over*. Append `<|im_end|>` like any other token, and go on predicting:


# %%
def go_on(model, text, most):
    """Append the likeliest token, whatever it is."""
    tokens = model.tokenizer.encode(text).ids
    for _ in range(most):
        tokens.append(int(model(torch.tensor(tokens))[-1].argmax()))
    return model.tokenizer.decode(tokens, skip_special_tokens=False)


print(go_on(my_model, question, 22))

# %% [markdown]
# It predicts a *conversation*: the message ends, and a turn of the assistant begins. After pre-training on plain text, SmolLM2 was fine-tuned on conversations in this format: that is what *Instruct* in its name means. `turns` writes this **chat template** for you, with a **system prompt** first, which tells the model what it is:

# %%
print(smollm2.turns(question))
print("".join(my_model.write(smollm2.turns(question), 30)))

# %% [markdown]
# An answer is the continuation of a text whose next speaker is the assistant. It was written with *your* cache: question and answer pass through the blocks once. What is that worth? Write it again, without and with it:

# %%
from time import perf_counter

for cache in (False, True):
    start = perf_counter()
    written = "".join(my_model.write(smollm2.turns(question), 30, cache))
    print(f"{perf_counter() - start:4.1f} s with cache={cache}: ... {written[-40:]}")

# %% [markdown]
# The same answer, sooner. Why it is not as many times faster as tokens are saved: [an exploration](explorations/09_fast.ipynb).
#
# ## A mask that leaks
#
# Now break one part on purpose. Give SmolLM2 a rule that ignores the causal mask. The weights stay as they are, and were trained *with* the mask. Measure the loss on the five texts, then let the model write. **Does the loss rise or fall? And does it still write *Paris*?**

# %%
guess = None  # "rises" or "falls", and "yes" or "no"


# %%
def leaking(q, k, v, mask=None):
    return grouped_query_attention(q, k, v)


leaky = smollm2.around(my_model.state_dict(), my_model.tokenizer, **parts | {"rule": leaking})
losses = [(loss(my_model, text), loss(leaky, text)) for text in five.splitlines()]
before, after = torch.tensor(losses).mean(0)
text = "".join(leaky.write(opening, 10, cache=False))
reveal(guess, ("falls" if after < before else "rises", "yes" if "Paris" in text else "no"))
print("  ".join(f"{right:.2f} -> {leak:.2f}" for right, leak in losses))
print(opening, repr(text))

# %% [markdown]
# The loss falls on all five texts, by more than half: each position now sees all later tokens, the one that it should predict among them. But why does the writing break? When it writes there is no future to leak, and the last row of a causal mask hides nothing.

# %% [markdown]
# The cause is in the rows *before* the last. Without the mask, an early token's state after block 1 already mixes in later ones, so its keys and values in block 2 are not what these weights met in training. If that is the cause, the same leaking model must write well where it meets no later token. Feed it one token at a time, with *your* cache. In the code, `rules` are the blocks' attention, `states` runs all blocks, and `scores` gives logits.

# %%
tokens = leaky.tokenizer.encode(opening).ids
with use_cache(leaky.rules, KeyValueCache):  # a cache of yours for the rule of each block
    for i in range(len(tokens) + 9):
        state = leaky.states(torch.tensor(tokens[i : i + 1]), i)  # of one token, at position i
        if i == len(tokens) - 1:
            tokens.append(int(leaky.scores(state[-1]).argmax()))
print(leaky.tokenizer.decode(tokens))
print(opening + "".join(my_model.write(opening, 10)))

# %% [markdown]
# Both write the same: reading one token at a time *is* a causal mask. A leak makes the loss *better*, so a loss curve looks like good news: that is why lesson 05 built `leaks_future`.
#
# ## Talk to it
#
# All parts are yours now. A conversation is one text that grows by turns, and each answer goes on from what was said before:

# %%
talk = smollm2.chat(my_model, "What is the capital of France?")
talk = smollm2.chat(my_model, "And of Italy?", talk)

# %% [markdown]
# *And of Italy?* makes sense only after the first question. Now you: change the line, run the cell, change it again. The talk goes on.

# %%
SAY = "Tell me something about its history."  # yours
talk = smollm2.chat(my_model, SAY, talk)

# %% [markdown]
# Asked about *its* history after Rome, it has gone back to Paris, and it speaks better than it knows: a Roman city from the 18th century. But every token of it went through thirty blocks of yours: your attention, your rotary, your norm, your gate, your cache.

# %% [markdown]
# ## What to remember
#
# All blocks here run on your parts, except for MiniLM's GELU network and Marian's recurrence. A checkpoint is a table of names. A chat is a text that goes on. With a cache, a causal model reads each token once. A leaking mask improves the loss and ruins the writing.
#
# | | |
# |:-|:-|
# | mean pooling | $s = \sum_i m_i h_i / \sum_i m_i$ |
# | SwiGLU | $\big(\mathrm{swish}(x W_1) \odot x W_3\big) W_2, \qquad \mathrm{swish}(z) = z\,\sigma(z)$ |
# | grouped queries | head $h$ uses keys and values $g(h) = \lfloor h G / H \rfloor$ |
# | key-value cache | $K_t = [K_{t-1}; k_t], \quad o_t = \mathrm{softmax}(q_t K_t^T / \sqrt{d_k})\, V_t$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why can an encoder such as MiniLM not use a key-value cache?</summary>
#
# Without a causal mask, a new token changes the states of all earlier ones, and with them all keys and values from block 2 on.
# </details>
#
# <details><summary>2. Grouped queries save memory. Do they save multiplications in the scores?</summary>
#
# No. Each of the $H$ query heads still meets every key. Only the projections to keys and values are smaller.
# </details>
#
# <details><summary>3. A loaded model works badly, though all names and shapes fit. Name three suspects.</summary>
#
# The order of the rows of $W_Q$ and $W_K$; a matrix that should be transposed, where it is square; the place of the norms, or the scale of the scores, which have no shape.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Others trained these models. In lesson 10 you train a language model yourself. What makes writing fast is [an exploration](explorations/09_fast.ipynb).
#
# Reimers & Gurevych 2019 (sentence vectors); Wang et al. 2020b (MiniLM); Devlin et al. 2019 (BERT); Junczys-Dowmunt et al. 2018 (Marian); Kim et al. 2019 (SSRU); Shazeer 2020 (SwiGLU); Shazeer 2019 and Ainslie et al. 2023 (shared keys, and the cache); Su et al. 2021 (rotary); Allal et al. 2025 (SmolLM2); Qwen 2025, OpenAI 2025 and DeepSeek-AI 2024 (what came since). Lectures: L1 to L5.

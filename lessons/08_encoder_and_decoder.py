# %% [markdown]
# # 08 · Encoder and decoder
#
# **75 minutes · after lesson 07 · needs nothing**
#
# You have built attention, heads, masks, positions, a feed-forward network, residual connections and norms. **How do the parts fit together into a Transformer?**
#
# Today you wire them: the encoder's block, the decoder's block, the model, and the loop that writes. Then you train your Transformer in less than a minute, type a word, and it sorts the letters. At the end, your work since lesson 02 is one file, which runs without this course.

# %%
import torch
from collections.abc import Callable
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, my_transformer, reveal, solution
from course_lib.instruments import results, training
from course_lib.instruments.pictures import encoder_decoder as pictures

# %% tags=["parameters"]
SEED = 0  # another seed trains another model

# %% tags=["hide-input"]
pictures.course_map()

# %% [markdown]
# Today every box of the map is lit. We begin with the piece that it repeats, the **block**. It has two **sublayers**: self-attention, where tokens exchange information, and a feed-forward network, which processes each token on its own. Each is inside an add & norm of lesson 07; today you train the order of 2017, post-norm. What comes out has the shape of what goes in, so blocks can be stacked.

# %% tags=["hide-input"]
import copy
import re
from itertools import count
from typing import Literal
from course_lib.add_norm import Norm
from course_lib.feed_forward import FeedForward
from course_lib.instruments.recording import record_weights
from course_lib.masks import shift_right
from course_lib.multi_head import AsCrossAttention, AsSelfAttention
from course_lib.transformer import residual  # 0.2.0's name of `add_and_norm` below
from course_lib.verify.torch_stacks import torch_block
from course_lib.xray import without_mask, xray

layer_norm, PostNorm = mine("add_norm/layer_norm"), mine("add_norm/post_norm")
PreNorm, MultiHeadAttention = mine("add_norm/pre_norm"), mine("multi_head/attention")
sinusoidal, causal_mask = mine("positions/sinusoidal"), mine("masks/causal")
padding_mask = mine("masks/padding")

# %% [markdown]
# ## Build: a block from an empty class
#
# You write the constructor too. Two equations say what the block computes, where $\mathrm{AddNorm}_f$ is the sublayer $f$ in either of lesson 07's two orders:
#
# $$\underset{n \times d_{model}}{S} = \mathrm{AddNorm}_{\text{attention}}(X) \qquad\qquad \underset{n \times d_{model}}{Y} = \mathrm{AddNorm}_{\text{network}}(S)$$
#
# `attention`, `feed_forward` and `norm_layer` are arguments so that others can take their place: in lesson 09, real models run in your block. Call the two parts `self.attention` and `self.feed_forward`, since the check copies parameters into them by name.
#
# Two helpers are given. `AsSelfAttention(attention)` calls `attention(x, x, x, mask)`. `add_and_norm` returns your `PostNorm` or your `PreNorm`, called as `PostNorm(sublayer, d_model, norm_layer)`.

# %% tags=["in-short"]
# given: transformer.add_and_norm

# %%
# exercise: encoder/block

# %%
check("encoder/block", EncoderBlock)

# %% [markdown]
# PyTorch has this block too, `nn.TransformerEncoderLayer`. Give it your block's parameters and two sentences of unequal length:

# %%
EncoderBlock = mine("encoder/block")
x, mask = torch.randn(2, 5, 12), padding_mask(torch.tensor([5, 3]), 5)
for norm in ("post", "pre"):
    block = EncoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask)
    difference = (block(x, mask) - theirs).abs().max().item()
    print(f"{norm}-norm: largest difference from PyTorch's block {difference:.0e}")

# %% [markdown]
# ## One mask makes a decoder
#
# Your block is an encoder's. What makes it a decoder's? Send six tokens through it. The last two are padding: the mask hides their keys. Now change the token at position 4. **Which positions' outputs change, counted from 0? And which under a causal mask?**

# %%
guess = None  # two lists

# %%
x, block = torch.randn(6, 12), EncoderBlock(12, 3, 20)
changed = x.clone()
changed[4] = torch.randn(12)


def moved(mask):
    difference = (block(changed, mask) - block(x, mask)).abs().amax(-1)
    return (difference > 1e-6).nonzero().flatten().tolist()


reveal(guess, (moved(padding_mask(torch.tensor([4]), 6)[0]), moved(causal_mask(6))))
print("without a mask:", moved(None))

# %% [markdown]
# No query reads a padded key, but position 4 still has its own query and residual connection.
#
# Without a mask each token sees both sides: this is an **encoder**. With a causal mask it sees only itself and what came before: this is a **decoder**. It can learn to predict the next token, and so to write.
#
# In language models *decoder* means this causal stack. In the paper of 2017 its blocks also look at a source: you build that next.

# %% [markdown]
# ## The whole Transformer
#
# Two stacks: the **encoder** reads the source, $n$ tokens, and the **decoder** writes the target, $m$ tokens. Token $t$ at position $i$ enters a stack as
#
# $$x_i = \sqrt{d_{model}}\; E_t + p_i \qquad \underset{vocab \times d_{model}}{E}$$
#
# The entries of $E$ start with variance $1/d_{model}$. The factor makes it 1, so the entries are about as large as those of the sinusoids $p_i$, which are between −1 and 1.

# %% tags=["hide-input"]
pictures.whole()

# %% [markdown]
# In the figure, $d$ is $d_{model}$. What the encoder returns, $H$, is called the **memory**. The model has three kinds of attention, all by your `MultiHeadAttention`:
#
# | attention | queries | keys, values | mask | scores |
# |:-|:-|:-|:-|:-|
# | encoder's | source | source | padding | $n \times n$ |
# | decoder's | target | target | causal | $m \times m$ |
# | cross- | target | memory $H$ | source's padding | $m \times n$ |
#
# The paper's base model has $N = 6$ blocks in each stack, $d_{model} = 512$, 8 heads and $d_{ff} = 2048$. One matrix $E$ serves both embeddings and the output: logits $= Y E^T$, where $Y$ comes out of the decoder's last block (**tied embeddings**). A pre-norm stack ends with one more norm. Padding in the target needs no mask: it comes last, so no token before it sees it, and a loss leaves it out.

# %% [markdown]
# ## Cross-attention
#
# $H$ holds the states of the source, $S$ the decoder's states of the target so far. The queries come from the target; keys and values come from the source:
#
# $$\underset{m \times d_v}{\mathrm{head}} = \mathrm{softmax}\!\left(\frac{\overbrace{S W_Q}^{m \times d_k}\;(\overbrace{H W_K}^{n \times d_k})^T}{\sqrt{d_k}}\right) \overbrace{H W_V}^{n \times d_v}$$
#
# A decoder block has it between the other two sublayers, each with its own add & norm:
#
# $$\underset{m \times d_{model}}{S} = \mathrm{AddNorm}_{\text{masked attention}}(X) \qquad \underset{m \times d_{model}}{C} = \mathrm{AddNorm}_{\text{cross-attention}}(S, H) \qquad \underset{m \times d_{model}}{Y} = \mathrm{AddNorm}_{\text{network}}(C)$$
#
# `AsCrossAttention(attention)` calls `attention(x, memory, memory, mask)`. Residual connection and norm act on $S$ only. There are two masks: `mask` for the target's self-attention, `memory_mask` for the source's padding.

# %%
# exercise: decoder/block

# %%
check("decoder/block", DecoderBlock)

# %% [markdown]
# Compare your block with `nn.TransformerDecoderLayer`, then give it the same target with another source:

# %%
DecoderBlock = mine("decoder/block")
x, memory, other = torch.randn(2, 4, 12), torch.randn(2, 5, 12), torch.randn(2, 5, 12)
memory_mask = padding_mask(torch.tensor([5, 3]), 5)
block = DecoderBlock(12, 3, 20)
ours = block(x, memory, causal_mask(4), memory_mask)
theirs = torch_block(dict(block.named_parameters()), 3, "post", x, memory_mask, memory)
changed = (block(x, other, causal_mask(4), memory_mask) - ours).abs().max()
print(f"largest difference from PyTorch's block {(ours - theirs).abs().max():.0e}")
print(f"another source changes the result by up to {changed:.1f}")

# %% [markdown]
# <details><summary>Two slips of lectures (D15, D16)</summary>
#
# L1 calls both lengths T, and gives the score matrix of cross-attention the shape T × T. In general it is $m \times n$: a row for each target token, a column for each source token.
#
# L5 calls this sublayer "self-attention", with keys and values of the encoder. In *self*-attention all three come from the target, and another source could not have changed the result.
# </details>

# %% [markdown]
# ## Two stacks, one model
#
# A stack is an embedding and a loop over blocks, so both stacks are given. The lines of each `forward` are the boxes of the figure. `Embedding`, folded, computes $\sqrt{d_{model}}\,E_t+p_i$. `Norm` is layer norm with its gain and bias.

# %% tags=["hide-input", "in-short"]
# given: transformer.Embedding

# %% tags=["in-short"]
# given: transformer.Encoder

# %% tags=["in-short"]
# given: transformer.Decoder

# %% [markdown]
# That leaves the model itself: source to memory, memory and target to states, states to logits. It stops at the logits: `F.cross_entropy` applies the softmax itself, and an argmax needs none.

# %%
# exercise: transformer/forward

# %%
check("transformer/forward", Transformer)

# %% [markdown]
# This is the architecture of 2017, and every block in it is yours. Make a small one, with two blocks a stack and 28 tokens: the alphabet, *start* and *stop*.

# %%
Transformer = mine("transformer/forward")
START, STOP = 26, 27
with training.seeded(SEED):
    parts = {"encoder_block": EncoderBlock, "decoder_block": DecoderBlock}
    model = Transformer(28, 2, 64, 4, 256, max_length=9, **parts)
source, target = torch.randint(26, (2, 1, 8))
logits = model(source, shift_right(target, START))
print(f"{sum(p.numel() for p in model.parameters()):,} parameters; logits", tuple(logits.shape))

# %% [markdown]
# ## Trained in one pass, written in many
#
# In training the decoder reads the target **shifted right**, behind *start*, and predicts at each position the next token, all in one pass (**teacher forcing**). In writing there is no target: the model reads *start*, takes the likeliest token, appends it, and reads everything again (**greedy decoding**):
#
# $$t_{i+1} = \arg\max_{v}\; \mathrm{logits}_{i+1,\,v}\big(\text{source},\; \text{start}, t_1, \dots, t_i\big)$$

# %% tags=["hide-input"]
pictures.passes()

# %% [markdown]
# Only the last row of logits is used in writing. The grey rows are the same as in the passes before: the causal mask hides from them what was appended. So one pass over a known target gives what $m$ passes would. Check that yours does:

# %%
read, memory = shift_right(target, START), model.encoder(source)  # the source is read once
rows = [model.output(model.decoder(read[:, :m], memory))[:, -1] for m in range(1, 9)]
difference = (torch.stack(rows, dim=1) - logits).abs().max()
print(f"eight passes and one: largest difference {difference:.0e}")

# %% [markdown]
# Now write the loop. It goes on until every row of the batch has a *stop*, or `most` tokens, as in the sorter below. What is read once, and what in every pass?

# %%
# exercise: transformer/greedy

# %%
check("transformer/greedy", greedy)

# %% tags=["hide-input"]
TOKENS = "abcdefghijklmnopqrstuvwxyz<>"  # < is start, > is stop


def decode(tokens):
    return "".join(TOKENS[token] for token in tokens)


def write(model, text):
    if not re.fullmatch("[a-z]{8}", text.lower()):
        raise ValueError(f"expected eight letters from a to z, but got {text!r}")
    source = torch.tensor([[TOKENS.index(letter) for letter in text.lower()]])
    return decode(greedy(model, source, START, STOP, most=8)[0])


# %% [markdown]
# Your Transformer can write, though it has learned nothing yet. Here `<` is *start*:

# %%
greedy = mine("transformer/greedy")
print("problems →", write(model, "problems"))

# %% [markdown]
# ## A loss that is too good
#
# Before any language, a task whose answer we know: eight different letters come in, and must be written in alphabetical order. There are $26 \cdot 25 \cdots 19$ such sequences, more than 60 billion, so hardly one comes twice.


# %% tags=["hide-input"]
def different(batch, generator):
    return torch.rand(batch, 26, generator=generator).argsort(-1)[:, :8]


unseen = different(1000, torch.Generator().manual_seed(1000))


@torch.no_grad()
def share_sorted(model):
    """Write all unseen sequences, by the likeliest letters; return the share that is sorted."""
    read = torch.full((len(unseen), 1), START)
    for _ in range(8):
        read = torch.cat([read, model(unseen, read)[:, -1:].argmax(-1)], dim=-1)
    return (read[:, 1:] == unseen.sort().values).all(-1).float().mean().item()


def train(model, loss, steps, shown=(0, 20, 40, 60, 100, 200)):
    """Train a sorter, show what it writes meanwhile, and keep what share it sorts."""
    drafts, model.shares = {}, {}

    def examples():
        generator = torch.Generator().manual_seed(SEED)
        for step in count():
            if step in shown:
                drafts[step] = write(model, "problems")
            if step in (100, 200):
                model.shares[step] = share_sorted(model)
            source = different(32, generator)
            yield source, source.sort().values

    def loss_of_batch(model, batch):
        return loss(model, *batch, START)

    budget = {"steps": steps, "seconds": 45, "learning_rate": 0.003}
    history = training.train(model, examples(), loss_of_batch, **budget)
    model.shares[steps] = share_sorted(model)
    for step, draft in drafts.items():
        print(f"after {step:3} steps: {draft}")
    if shown:
        print(f"at the end:      {write(model, 'problems')}, loss {history.losses[-1]:.3f}")


# %% [markdown]
# The loss is the mean over the target's tokens, given the source and the tokens before:
#
# $$L = -\frac1m \sum_{i=1}^{m} \log p\big(t_i \mid \text{source},\; \text{start}, t_1, \dots, t_{i-1}\big)$$
#
# Read its code below for a minute, and leave it as it is: a copy of your model trains with it for 100 steps, and the loss falls almost to zero. **What does that sorter write for *problems*?**

# %%
# exercise: transformer/mend_loss

# %%
guess = None  # eight letters

# %% tags=["training"]
# run this before you mend the loss: afterwards it sorts
spoiled = copy.deepcopy(model)
train(spoiled, next_token_loss, steps=100)
reveal(guess, write(spoiled, "problems"))

# %% [markdown]
# A loss near 0, and one letter eight times. In training, each position but the first read the very letter that it had to predict. So the model learned to repeat what it reads. In writing it reads its own letters, and repeats the first one. Mend the line, and check:

# %%
check("transformer/mend_loss", next_token_loss)

# %% [markdown]
# ## Train it
#
# Your blocks, your model, your loss, your loop:

# %% tags=["training"]
next_token_loss = mine("transformer/mend_loss")
train(model, next_token_loss, steps=600)

# %% tags=["training", "hide-input"]
written = greedy(model, unseen, START, STOP, most=8)
right = (written == unseen.sort().values).all(-1).float().mean().item()
training.expect("over 0.97 of 1,000 new sequences are sorted", right > 0.97, right, model)

# %% [markdown]
# No line of your code knows the alphabet: it is in the examples. Now you: type any word of eight different letters, such as *keyboard*, *daughter* or *sunlight*.

# %% tags=["training"]
TEXT = "keyboard"  # yours
print(TEXT, "→", write(model, TEXT))

# %% [markdown]
# How does it sort? Here is the loop of `greedy`, with all that `greedy` throws away.

# %% tags=["training", "hide-input"]
word, read, rows = "problems", torch.tensor([[START]]), []
source = torch.tensor([[TOKENS.index(letter) for letter in word]])
for _ in word:
    likeliest = model(source, read).argmax(-1)
    rows.append(decode(likeliest[0]))
    read = torch.cat([read, likeliest[:, -1:]], dim=-1)
with record_weights(model.decoder.blocks[-1].cross_attention.sublayer.attention) as weights:
    model(source, read[:, :-1])
pictures.at_work(word, rows, weights[0].mean(1)[0])

# %% [markdown]
# Left, each pass, with the row that is used in green; in a notebook, move the slider to the last. Right, the cross-attention of the last block at that row, averaged over heads: each letter seems to be looked up in the source. But a weight says where a model looks, not what it uses. So mask, at each position, the source letter that is due, and let the decoder read the right letters before it. **What does it predict for *problems*?**

# %%
guess = None  # eight letters


# %% tags=["training"]
def predict(source, mask):
    """Predict each letter of the sorted target; `mask` says which places of the source it sees."""
    states = model.decoder(shift_right(source.sort().values, START), model.encoder(source), mask)
    return model.output(states).argmax(-1)


source = torch.tensor([[TOKENS.index(letter) for letter in "problems"]])
target = source.sort().values
due = source.unsqueeze(-2) == target.unsqueeze(-1)  # a row for each letter that is due: its place
print("due:", decode(target[0]))
reveal(guess, decode(predict(source, ~due)[0]))

# %% tags=["training", "hide-input"]
target = unseen.sort().values
due = unseen.unsqueeze(-2) == target.unsqueeze(-1)
masks = {"due": ~due, "other": ~due.roll(3, dims=-2), "all others": due}
predicted = {name: predict(unseen, mask) for name, mask in masks.items()}
written = {name: (x == target).float().mean().item() for name, x in predicted.items()}
following = (predicted["due"][:, :-1] == target[:, 1:]).float().mean().item()
print("of the letters of 1,000 new sequences:")
print(f"the letter due is masked: {written['due']:4.0%} are right, {following:4.0%} the next one")
print(f"another one is masked:    {written['other']:4.0%} are right")
print(f"all others are masked:    {written['all others']:4.0%} are right")
claim = "without its own place the letter due is not written; without one other or all others it is"
rest = min(written["other"], written["all others"])
came = [round(x, 3) for x in (written["due"], following, rest)]
holds = written["due"] < 0.1 and following > 0.9 and rest > 0.95
training.expect(claim, holds, came, model)

# %% [markdown]
# Each time it predicts the *next* letter in order; after the last there is none. Mask another letter, and nothing changes. Mask all others, and the one place that is left is enough. The lines above say so for 1,000 new sequences: the decoder reads each letter at its own place in the source.

# %% [markdown]
# To see all that happens on the way, `xray` keeps every step of a word through a model: the tensor, its formula, its code. Beside your sorter is the same model without masks. In *Attention*, point at a letter on the left. It needs JavaScript: GitHub shows nothing.

# %%
names = [*TOKENS[:26], "start", "stop"]
xray(model, "problems", words=names, beside=without_mask(model), columns=32)

# %% [markdown]
# ## Where it breaks
#
# In training all eight letters were *different*. Now one letter comes twice. **Will your sorter write it twice, once, or not at all?**

# %%
guess = None  # 2, 1 or 0

# %% tags=["training", "hide-input"]
source = torch.randint(26, (1000, 8), generator=torch.Generator().manual_seed(1000))
counts = F.one_hot(source, 28).sum(-2)
one_pair = counts.square().sum(-1) == 10  # one letter twice, six letters once
source, counts = source[one_pair], counts[one_pair]
written = greedy(model, source, START, STOP, most=8)
pair = F.one_hot(written, 28).sum(-2)[counts == 2]  # how often the letter is written that is twice
reveal(guess, pair.mode().values.item())
right, once = (written == source.sort().values).all(-1), pair == 1
print(f"{len(source)} random sequences with one pair of the same letter:")
for what, rows in {
    "sorted": right,
    "the pair is written as one letter": once,
    "another fault": ~right & ~once,
}.items():
    example = [f"{decode(source[i])} → {decode(written[i])}" for i in rows.nonzero()[:1, 0]]
    print(f"{rows.float().mean():4.0%}  {what:34}", *example)
shares = [round(x.float().mean().item(), 3) for x in (right, once)]
claim = "of those with one pair under 0.4 are sorted, and in over 0.6 the pair is written once"
training.expect(claim, shares[0] < 0.4 and shares[1] > 0.6, shares, model)

# %% [markdown]
# Most often your sorter writes a pair as one letter, and fills the free place with another. Is that the architecture? The same model was also trained on sequences with repeats:

# %% tags=["hide-input"]
kept = results.load("sequences")["figures"]
print("sequences with a repeat that are sorted, three seeds:")
for trained_on, name in (("eight different letters", "sort"), ("any", "sort, letters repeat")):
    shares = [f"{run['repeating']:.0%}" for run in kept["runs"][name]]
    print(f"trained on {trained_on:23}", *shares)

# %% [markdown]
# It is the data: no example had a letter twice, so training left open what to do with a pair.
#
# ## Three families, three masks
#
# The encoder-decoder is one of three ways to use these blocks. Here is what 8 tokens may see in each. In the third they are a source of 4 and a target of 4:

# %% tags=["hide-input"]
full, causal = torch.ones(8, 8).bool(), causal_mask(8)
both = full.clone()
both[:4, 4:] = False  # no source token sees the target
both[4:, 4:] = causal_mask(4)
pictures.families({"encoder only": full, "decoder only": causal, "encoder-decoder": both})

# %% [markdown]
# In the third, top left is the encoder's self-attention, the triangle the decoder's, and bottom left cross-attention. If that is all, *one* stack of encoder blocks with this mask should sort, too. This is a **prefix language model** (Raffel et al. 2020). Give four of your blocks the source and the target as one text:


# %%
class OneStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = Encoder(28, 4, 64, 4, 256, max_length=17, block=EncoderBlock)

    def mask(self, n, total):
        return causal_mask(total) | (torch.arange(total) < n)  # all see the whole source

    def forward(self, source, read):
        text = torch.cat([source, read], dim=-1)
        states = self.stack(text, self.mask(source.shape[-1], text.shape[-1]))
        return states[:, source.shape[-1] :] @ self.stack.embedding.table.T


# %% tags=["training", "hide-input"]
class DecoderOnly(OneStack):
    def mask(self, n, total):
        return causal_mask(total)


sorters = {"encoder and decoder": model}
stacks = {"one stack, a prefix mask": OneStack, "one stack, a causal mask": DecoderOnly}
for name, kind in stacks.items():
    with training.seeded(SEED):
        sorters[name] = kind()
    train(sorters[name], next_token_loss, steps=600, shown=())
print("sorted of the 1,000, of so many parameters, after 100, 200 and 600 steps:")
for name, one in sorters.items():
    shares = [f"{one.shares[steps]:7.1%}" for steps in sorted(one.shares)]
    print(f"{name:25} of {sum(x.numel() for x in one.parameters()):,}:", *shares)
soon = [round(one.shares.get(200, 0), 3) for one in sorters.values()]
claim = "after 200 steps each of the three sorts over 0.85 of 1,000 new sequences"
training.expect(claim, min(soon) > 0.85, soon, *sorters.values())
ends = [round(sorters[name].shares[600], 3) for name in stacks]
claim = "each of the two stacks sorts over 0.97 of them at the end"
training.expect(claim, min(ends) > 0.97, ends, *sorters.values())

# %% [markdown]
# One stack sorts, too, without cross-attention: on this task one block with another mask does the encoder-decoder's work. After 200 of the 600 steps all three sort nearly all of the 1,000: sorting does not show what cross-attention adds. In the last line the source is read under a causal mask, as in a decoder-only model: each letter that is written still sees all of it. What a mask does limit is the training task: a model that sees the answer cannot be asked to predict it.
#
# | family | training task, on *the cat sleeps on the mat* | examples | lesson 09 runs |
# |:-|:-|:-|:-|
# | encoder only | **masked language modelling**: read *the cat [MASK] on the mat*, predict *sleeps* | BERT, RoBERTa | MiniLM |
# | decoder only | **next-token prediction**: after *the cat*, predict *sleeps*, and so at every position | GPT, Llama | SmolLM2 |
# | encoder-decoder | translation, or **span corruption**: read *the cat ⟨X⟩ the mat*, write *⟨X⟩ sleeps on ⟨Y⟩* | the paper; T5 | Marian |
#
# In 2026 most assistants are decoder-only: one stack, one task, any text. When is another family better? The last question is yours.

# %% [markdown]
# ## Your Transformer on one page
#
# `my_transformer` collects your passed answers since lesson 02 into one file, with the paper's section above each; the rest comes from the library. Your answers are in your **workspace**, the folder that `course learn` has made. Without one, the file is the library's.

# %%
file = my_transformer()
parts = re.findall(r"^# (.+)\n(?:@.+\n)?(?:class|def) (\w+)", file, re.MULTILINE)
for section in sorted({section for section, _ in parts}):
    print(f"{section:17}", *(name for where, name in parts if where == section))

# %% [markdown]
# Read it once beside section 3 of the paper. Dropout and label smoothing (section 5.4), which only training uses, are left out. The file ends with the task of this lesson: `python my_transformer.py` trains the sorter, without the course.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | what enters the first block | $\sqrt{d_{model}}\, E_t + p_i$ |
# | cross-attention | $\mathrm{softmax}\big(S W_Q (H W_K)^T / \sqrt{d_k}\big)\, H W_V$, scores $m \times n$ |
# | training, one pass | reads (start, $t_1, \dots, t_{m-1}$), predicts ($t_1, \dots, t_m$) |
# | greedy decoding, $m$ passes | $t_{i+1} = \arg\max_v \mathrm{logits}_{i+1,\,v}$, the last row |
#
# An encoder block with a causal mask is a language model's block. A decoder block of 2017 has cross-attention, too.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A source has 7 tokens, a target 5. What are the shapes of the scores in the three attentions, for one head?</summary>
#
# Encoder 7 × 7, masked self-attention 5 × 5, cross-attention 5 × 7.
# </details>
#
# <details><summary>2. How often do encoder and decoder run to write 20 tokens by your <code>greedy</code>? And to train on them?</summary>
#
# The encoder once; the decoder 20 times, on 1, 2, …, 20 tokens. In training both run once. Lesson 09's cache avoids reading the old tokens again.
# </details>
#
# <details><summary>3. Your decoder block is trained without its causal mask. What does the loss do, and what does the model write?</summary>
#
# The loss falls to almost zero, since each position can read the token that it must predict. In writing that token is not there yet, so what it has learned is of no use.
# </details>

# %% [markdown]
# ## In your own words
#
# A company wants to search its documents, to translate them, and to have questions about them answered. For each of the three, choose an encoder, an encoder-decoder or a decoder. Justify each choice in a sentence or two: what may each token look at, and what is computed once, what for every new token?

# %% [markdown] tags=["question:which_family"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Lesson 09 runs three trained models in the same blocks: one searches, one translates, one answers questions. Beside this lesson: [where is the order of the source?](explorations/08_one_page.ipynb), and [where are 65 million parameters?](explorations/08_parameters.ipynb)
#
# Vaswani et al. 2017, section 3; Xiong et al. 2020 (pre-norm); Devlin et al. 2019 (BERT); Raffel et al. 2020 (T5, and a comparison of the three families); Zhang et al. 2025 (T5Gemma, an encoder-decoder made from trained decoders); Rush 2018 (*The Annotated Transformer*: the paper's text beside code, pre-norm). Lectures: L1 to L5.

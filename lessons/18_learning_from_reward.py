# %% [markdown]
# # 18 · Learning from reward
#
# **75 minutes · after lesson 17 · needs `smollm2` (93 MB)**
#
# In lesson 17 each example came with the answer to write. Often nobody has written it, and yet a program can tell right from wrong: a test that passes, a sum that comes out. **Can a model learn from *right* and *wrong* alone?**
#
# At the end you have trained a real model on its own answers, on your machine, in two minutes. You can say what it has learned by that, and you have cheated a reward.

# %%
import random
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import needs, verifiable
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
diagram = drawings.Diagram()
question = diagram.box("question", (0, 0), "stream", size=(1.9, 0.7))
policy = diagram.box("model", (3.2, 0), "query", size=(1.8, 0.9))
for i, (word, right) in enumerate((("cold", 1), ("warm", 0), ("cold", 1), ("heat is …", 0))):
    y = 1.5 - i
    answer = diagram.box(word, (6.4, y), "value", size=(1.9, 0.7))
    diagram.arrow((4.1, 0), (5.45, y), via=[(4.8, 0), (4.8, y)])
    reward = diagram.box(f"{right}", (8.9, y), "key" if right else "dim", size=(0.7, 0.7))
    diagram.arrow(answer, reward)
    sign = "likelier" if right else "less likely"
    diagram.text(sign, (9.5, y), size=drawings.SMALL, align="left")
diagram.text("answers, drawn", (6.4, 2.2), size=drawings.SMALL)
diagram.text("a program", (8.9, 2.2), size=drawings.SMALL)
diagram.arrow(question, policy)
diagram.show(
    "A question goes into the model, which draws four answers: cold, warm, cold, heat is and so "
    "on. A program gives each a reward, 1, 0, 1 and 0. The answers with 1 are made likelier, those "
    "with 0 less likely."
)

# %%
needs("smollm2")
from collections import Counter
from collections.abc import Sequence
from course_lib.assistant import adapt
from course_lib.pretrained import smollm2
from course_lib.pretrained.smollm2 import STOP, turns

LowRankLinear = mine("lora/layer")
answer_targets = mine("assistant/answer_mask")
answer_log_probs = mine("dpo/mend_log_probs")
dpo_loss = mine("dpo/loss")

# %% [markdown]
# ## Sample, and score
#
# The model is lesson 17's, with your low-rank layers in its last ten blocks. They begin as nothing, so this is still the model as it came. We keep their first values, to begin again later.

# %%
model = smollm2.load()
names = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
with training.seeded(SEED):
    model.requires_grad_(False)
    trained = adapt(model.blocks[-10:], names, lambda linear: LowRankLinear(linear, 8, 16))
first = [parameter.detach().clone() for parameter in trained]
learning, testing = verifiable.split(4, 0)
print(len(learning), "questions to learn from,", len(testing), "to test with")

# %% [markdown]
# The questions are of five kinds, each with one right word. Capitals, opposites and plurals are learned; facts and sums are *never* learned, only tested. An answer is drawn token by token at temperature 0.7, ten tokens at most.


# %%
def encoded(question):
    """Return a question's prompt as tokens."""
    return torch.tensor(model.tokenizer.encode(turns(question.asked, system=None)).ids)


def answers(questions, draw):
    """Draw eight answers to each question: prompts and answers as rows of tokens, and texts."""
    prompts = torch.stack([encoded(x) for x in questions])
    drawn = model.sample(prompts, 8, max_new_tokens=10, temperature=0.7, generator=draw)
    return prompts.repeat_interleave(8, 0), drawn, model.tokenizer.decode_batch(drawn.tolist())


# %% [markdown]
# The **reward** is a program of one line: 1 for the right word in an answer that has come to its end, otherwise 0.


# %%
def reward(text, tokens, word):
    return float(verifiable.is_right(text, word) and STOP in tokens)


question = verifiable.Question("opposites", "What is the opposite of hot?", "cold")
draw = torch.Generator().manual_seed(SEED)
_, drawn, texts = answers([question], draw)
for text, tokens in zip(texts, drawn):
    print(reward(text, tokens, question.word), text)

# %% [markdown]
# Most of them name the word, and none comes to its end within ten tokens: no reward at all. Other questions go better. Let us call the share of rewarded answers **pass@1**: the chance that one answer is right. **Pass@k** is the chance that *one of k* is: what you have if a program can pick the right one.
#
# To estimate it, draw $n \ge k$ answers, count the $c$ right ones, and ask how often $k$ of these $n$, drawn without putting back, hold a right one (Chen et al. 2021):
#
# $$\text{pass@}k = 1 - \binom{n - c}{k} \Big/ \binom{n}{k} = 1 - \prod_{i = n - c + 1}^{n} \Big(1 - \frac{k}{i}\Big)$$

# %% [markdown]
# Why not $1 - (1 - c/n)^k$? It puts each answer back, so the same wrong one is drawn twice, and on average the result is too small. The first form counts exactly; the second has no huge numbers in it.

# %%
# exercise: reward/pass_at_k

# %%
check("reward/pass_at_k", pass_at_k)

# %%
pass_at_k = mine("reward/pass_at_k")

# %% [markdown]
# There is a way to use eight answers without any program that knows the right one: **vote** (self-consistency, Wang et al. 2023). The commonest answer wins; one that did not end has no vote.

# %%
# given: reward.vote


# %% [markdown]
# Now the tested questions, as the model answers them before any training. **Pass@1 of the kinds that will be learned is printed below. What is their pass@8?**

# %%
guess = None  # percent

# %% tags=["hide-input"]
kept = results.load("reward")["figures"]
kinds = {"learned kinds": verifiable.LEARNED_KINDS, "other kinds": verifiable.OTHER_KINDS}


def share(found, of, k=1):
    """Return pass@k of answers to some kinds of questions, in percent."""
    own = [x for x in found if x["kind"] in kinds[of]]
    return 100 * sum(pass_at_k(8, int(sum(x["right"])), k) for x in own) / len(own)


def voted(found, of):
    """Return the percentage of questions whose commonest answer is right."""
    own, right = [x for x in found if x["kind"] in kinds[of]], 0
    for x in own:
        winner = vote([text if end else None for text, end in zip(x["texts"], x["ended"])])
        right += x["right"][x["texts"].index(winner)] if winner else 0
    return 100 * right / len(own)


before = kept["before"]
print(f"{'before training':16}{'pass@1':>8}{'vote of 8':>12}{'pass@8':>9}")
for of in kinds:
    row = share(before, of), voted(before, of), share(before, of, 8)
    print(f"{of:16}{row[0]:7.0f}%{row[1]:11.0f}%{row[2]:8.0f}%")
reveal(guess, round(share(before, "learned kinds", 8)))

# %% [markdown]
# Right answers are there, among many that are not. Sampling eight times and checking finds them, at eight times the cost in each use. Training could move them to the front once and for all.
#
# ## Make it likelier
#
# We want a model $\pi$ that gets much reward on average. The average is a sum over all answers $y$, and its slope is an average again, because $\nabla \pi = \pi \, \nabla \log \pi$:
#
# $$J = \sum_y \pi(y)\, r(y) \qquad \nabla J = \sum_y \nabla \pi(y)\, r(y) = \mathbb{E}_{y \sim \pi}\big[\, r(y)\, \nabla \log \pi(y) \,\big]$$

# %% [markdown]
# This is the **policy gradient** (REINFORCE, Williams 1992). It needs no slope of the reward: the program may be anything. Draw answers, and follow $r \, \nabla \log \pi$, the gradient that you know from lesson 17, times a number.
#
# With rewards of 0 and 1 it only ever says *more of this*. Take a **baseline** $b$ off, and a wrong answer says *less of that*. It changes nothing on average, since probabilities sum to 1 whatever the weights are:
#
# $$\mathbb{E}_{y \sim \pi}\big[\, b\, \nabla \log \pi(y) \,\big] = b \sum_y \nabla \pi(y) = b\, \nabla 1 = 0$$

# %% [markdown]
# Which baseline? PPO trains a second network to predict the reward. **GRPO** (group relative policy optimization, Shao et al. 2024) asks the group: eight answers to one question, and their mean is the baseline. Divided by the group's standard deviation, it is the **advantage** of an answer:
#
# $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + \varepsilon}$$
#
# Where all eight are right, or all wrong, there is nothing to learn: every advantage is 0.

# %%
# exercise: reward/group_advantage

# %%
check("reward/group_advantage", group_advantage)

# %%
group_advantage = mine("reward/group_advantage")

# %%
for rewards in ([0.0, 0, 0, 0, 0, 0, 0, 1], [0.0, 1, 1, 1, 1, 1, 1, 1], [1.0] * 8):
    advantages = [round(x, 1) for x in group_advantage(torch.tensor(rewards)).tolist()]
    print(f"{sum(rewards):.0f} of 8 right:", advantages)

# %% [markdown]
# One right answer among wrong ones counts most, and so does one failure among right ones.
#
# ### Not too far
#
# The gradient holds for answers drawn from the model *as it is*. Drawing is slow, so one takes several steps on the same answers, and corrects by the **ratio** $\rho$ of each token's probability now to that when it was drawn. And one clips: beyond $1 \pm 0.2$ nothing more is to be gained (PPO, Schulman et al. 2017). Over the $N$ tokens of all answers,
#
# $$L = -\frac{1}{N} \sum_{i, t} \min\big(\rho_{it} A_i,\; \mathrm{clip}(\rho_{it},\, 0.8,\, 1.2)\, A_i\big), \qquad \rho_{it} = \frac{\pi(y_{it})}{\pi_{old}(y_{it})}$$

# %% tags=["hide-input"]
ratio = torch.linspace(0.4, 1.6, 100)
title = "Clipped where the step has gone far enough, and never where it went the wrong way"
names_of = {1: "good answer, A = 1", -1: "bad answer, A = −1"}
figure, panels = plots.panels(title, list(names_of.values()), size=(8, 2.8))
for ax, advantage in zip(panels, names_of):
    product = ratio * advantage
    clipped = ratio.clamp(0.8, 1.2) * advantage
    ax.plot(ratio, product, "--", color="0.6", linewidth=1)
    ax.plot(ratio, torch.minimum(product, clipped), color=plots.COLOURS[advantage < 0])
    ax.axvline(1, color="0.8", linewidth=1, zorder=0)
    ax.set(xlabel="ratio of a token's probability to the old one")
panels[0].set_ylabel("gain")
plots.show(
    figure,
    "Gain of a token over the ratio, from 0.4 to 1.6. For a good answer the gain rises with the "
    "ratio up to 1.2 and is flat above. For a bad answer it is flat below 0.8, and falls from "
    "there on.",
)

# %%
# exercise: reward/policy_loss

# %%
check("reward/policy_loss", policy_loss)

# %%
policy_loss = mine("reward/policy_loss")

# %% [markdown]
# We shall take one step on each draw. Then $\pi_{old} = \pi$, every ratio is 1 and no clip is active; and yet the gradient is that of $-A \log \pi$:

# %% tags=["nbval-check-output"]
new = torch.tensor([[-1.0, -2.0], [-0.5, -3.0]], requires_grad=True)
advantages, everything = torch.tensor([1.0, -1.0]), torch.ones(2, 2, dtype=torch.bool)
policy_loss(new, new.detach(), advantages, everything).backward()
plain = -advantages[:, None].expand(2, 2) / 4
print(torch.equal(new.grad, plain), new.grad.tolist())

# %% [markdown]
# The last part looks harmless: which of the drawn tokens are the answer's? Rows that have ended are filled up with the end token itself, `STOP`. The function below has a fault in one line. With it a model is never told *where to end*.

# %%
# exercise: reward/mend_answer_tokens

# %%
check("reward/mend_answer_tokens", answer_tokens)

# %%
answer_tokens = mine("reward/mend_answer_tokens")

# %% [markdown]
# ## Two minutes
#
# Now all of it runs on your functions: two questions a step, eight answers each, a program for rewards, and one step of Adam. Nobody shows the model an answer.


# %%
def log_probs(prompts, drawn):
    """Return log p of each drawn token, at the temperature of the drawing."""
    tokens = torch.cat([prompts, drawn], dim=1)
    states = model.states(tokens)[:, prompts.shape[1] - 1 : -1]
    return -F.cross_entropy((model.scores(states) / 0.7).mT, drawn, reduction="none")


def loss(model, batch):
    prompts, drawn, advantages = batch
    new = log_probs(prompts, drawn)
    return policy_loss(new, new.detach(), advantages, answer_tokens(drawn, STOP))


# %% tags=["hide-input"]
def begin_again():
    """Set what is trained to its first values."""
    with torch.no_grad():
        for parameter, value in zip(trained, first):
            parameter.copy_(value)


def two_questions(choose):
    """Draw two questions whose prompts are equally long."""
    length = len(encoded(choose.choice(learning)))
    return choose.choices([x for x in learning if len(encoded(x)) == length], k=2)


# %%
def batches(score, seen):
    """Draw answers from the model as it is, and say what each is worth."""
    draw, choose = torch.Generator().manual_seed(SEED), random.Random(SEED)
    while True:
        questions = two_questions(choose)
        prompts, drawn, texts = answers(questions, draw)
        words = [x.word for x in questions for _ in range(8)]
        rewards = torch.tensor([score(*x) for x in zip(texts, drawn, words)]).view(2, 8)
        seen.append((rewards.mean().item(), questions[0].asked, texts[0]))
        yield prompts, drawn, group_advantage(rewards).flatten()


# %% tags=["training"]
begin_again()
seen = []
history = training.train(
    model, batches(reward, seen), loss, steps=10, learning_rate=0.002, seconds=140
)

# %% tags=["training", "hide-input"]
for i in range(0, len(seen), 2):
    print(f"step {i + 1:2}  reward {seen[i][0]:.2f}  {seen[i][1]}  {seen[i][2]}")
figure, ax = plots.axes("The reward of each step's sixteen answers", "step", "mean reward")
ax.plot(range(1, len(seen) + 1), [x[0] for x in seen], "o-")
ax.set(ylim=(-0.02, 1.02))
told = ", ".join(f"{x[0]:.2f}" for x in seen)
plots.show(figure, f"The mean reward of the answers that were drawn at each step: {told}.")

# %% [markdown]
# What has it learned? Ask it questions that it has not met, of the kinds that it learned and of the others.

# %% tags=["hide-input"]
some = [x for x in testing if x.kind in ("opposites", "plurals", "facts")][1::2]


def asked_again():
    """Answer six tested questions; print one answer of eight, and return how many are right."""
    draw, counts = torch.Generator().manual_seed(SEED), []
    for x in some:
        _, drawn, texts = answers([x], draw)
        counts.append(sum(reward(text, tokens, x.word) for text, tokens in zip(texts, drawn)))
        print(f"{counts[-1]:.0f} of 8   {x.asked:42} {texts[0]}")
    return counts


# %% tags=["training"]
right = asked_again()
claim = "of 32 answers to opposites and plurals, 12 at least are right"
training.expect(claim, sum(right[:4]) >= 12, right, model)

# %% [markdown]
# ### Other seeds
#
# Below are stored runs of sixteen steps, measured on eight answers to each tested question, beside two other ways. *Asked*: no training, but "Answer in one word." behind each question. *Rewarded alone*: learn the rewarded answers as lesson 17 would (Zelikman et al. 2022), which is the same code with $A = r$.
#
# Of the kinds that are learned, 20 % of all answers were rewarded before. Of the kinds that nobody learns, facts and sums, it was 2 %. **What will it be for those after training?**

# %%
guess = None  # percent

# %% tags=["hide-input"]
arms = {"before": [kept["before"]], "asked": [kept["asked for one word"]]}
arms |= {name: [run["after"] for run in kept["arms"][name]] for name in ("rewarded alone", "GRPO")}
figure, panels = plots.panels(
    "Rewarded kinds rise from 20 percent to 80 and more, other kinds hardly",
    list(kinds), size=(9, 2.9),
)  # fmt: skip
spoken = []
for ax, of in zip(panels, kinds):
    for y, (name, runs) in enumerate(arms.items()):
        for k, colour in ((1, plots.COLOURS[0]), (8, plots.COLOURS[1])):
            found = [share(run, of, k) for run in runs]
            ax.plot(found, [y + 0.12 * (k > 1)] * len(found), "o", color=colour, alpha=0.7)
            spoken.append(f"{of}, {name}, pass@{k}: {', '.join(f'{x:.0f}' for x in found)}")
    ax.set_yticks(range(4), arms if ax is panels[0] else [""] * 4)
    ax.set(xlim=(0, 103), ylim=(3.5, -0.5), xlabel="rewarded, %")
panels[1].text(3, -0.28, "pass@1", color=plots.COLOURS[0], size="small")
panels[1].text(23, -0.28, "pass@8", color=plots.COLOURS[1], size="small")
plots.show(figure, f"Percent of questions, a point for each seed. {'; '.join(spoken)}.")
told = [share(run, "other kinds") for run in arms["GRPO"]]
reveal(guess, round(sum(told) / len(told)))

# %% tags=["hide-input"]
word = {x.asked: x.word for x in testing}


def parts(found, of):
    """Return the percentages of answers that name the right word, end, and do both."""
    own = [x for x in found if x["kind"] in kinds[of]]
    rows = [
        (verifiable.is_right(text, word[x["asked"]]), end, right)
        for x in own for text, end, right in zip(x["texts"], x["ended"], x["right"])
    ]  # fmt: skip
    return [100 * sum(column) / len(rows) for column in zip(*rows)]


print(f"{'learned kinds':16}{'word named':>12}{'ended':>8}{'both':>8}")
rows = {name: arms[name] for name in ("before", "rewarded alone", "GRPO")}
rows["few tokens"] = [run["after"] for run in kept["arms"]["short"]]
for name, runs in rows.items():
    means = [sum(x) / len(x) for x in zip(*(parts(run, "learned kinds") for run in runs))]
    print(f"{name:16}{means[0]:11.0f}%{means[1]:7.0f}%{means[2]:7.0f}%")

# %% [markdown]
# Training beats asking. Whether the mean is taken off makes no difference: half of the answers are right after a few steps, and *more of this* is enough.
#
# What has been learned? Before training two answers in three already named the right word; they went on talking. Most of the gain is the *form* that the reward asks for, a short answer that ends: a reward that knows no word, and counts tokens alone, brings 73 %. The rest is choice: of eight answers one nearly always named the word before, and now most do. Nobody told it a fact.

# %% [markdown]
# And the form is learned where it was practised. A new capital, a new plural: yes. A sum: hardly. **Transfer** reaches as far as the kinds that were rewarded.

# %% [markdown]
# ## A reward that is learned
#
# For a poem there is no program. People can say which of two answers is better, and a network can learn to agree with them: a **reward model**. It gives each answer a number $r$, and predicts that $y^+$ is preferred to $y^-$ with (Bradley & Terry 1952)
#
# $$p(y^+ \succ y^-) = \sigma\big(r(y^+) - r(y^-)\big)$$

# %%
# exercise: reward/preference_loss

# %%
check("reward/preference_loss", preference_loss)

# %%
preference_loss = mine("reward/preference_loss")

# %% [markdown]
# Ours is as small as can be: one linear layer on the model's last state of an answer. It learns from pairs of answers to the learned questions, one rewarded and one not.


# %%
@torch.no_grad()
def last_states(pairs):
    """Return the model's state at the last token of each answer's text."""
    rows, _, lengths = smollm2.conversations(
        model.tokenizer, [(turns(asked, system=None), text) for asked, text in pairs]
    )
    return model.states(rows)[torch.arange(len(rows)), lengths - 2]


# %%
pairs = kept["pairs"]  # a question, a right answer, another, and whether that one ended
for asked, better, worse, _ in pairs[:3]:
    print(f"{asked}\n  + {better}\n  - {worse}")

# %%
begin_again()
better, worse = (last_states([(x[0], x[side]) for x in pairs]) for side in (1, 2))
with training.seeded(SEED):
    head = nn.Linear(576, 1)
optimizer = torch.optim.AdamW(head.parameters(), lr=0.001, weight_decay=0.1)
for _ in range(100):
    value = preference_loss(head(better)[:, 0], head(worse)[:, 0])
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
print(f"{len(pairs)} pairs, loss {value.item():.2f} (log 2 is 0.69)")

# %% [markdown]
# Use it on answers of other questions: of $k$ answers take the one that it likes best, and let the program say whether that is right.

# %% tags=["hide-input"]
own = [x for x in before if x["kind"] in verifiable.LEARNED_KINDS]
liked = []
for x in own:
    with torch.no_grad():
        scores = head(last_states([(x["asked"], text) for text in x["texts"]]))[:, 0]
    liked.append([x["right"][int(scores[:k].argmax())] for k in range(1, 9)])
best = [100 * sum(column) / len(own) for column in zip(*liked)]
perfect = [100 * sum(any(x["right"][:k]) for x in own) / len(own) for k in range(1, 9)]
figure, ax = plots.axes(
    "Of eight answers, a reward model chooses a right one more often than chance",
    "answers drawn, k", "the chosen answer is right, %",
)  # fmt: skip
for line, colour, name in (
    (perfect, plots.COLOURS[2], "chosen by the program"),
    (best, plots.COLOURS[0], "chosen by the reward model"),
    ([perfect[0]] * 8, "0.6", "the first answer"),
):
    ax.plot(range(1, 9), line, color=colour)
    ax.text(8.1, line[-1], name, color=colour, size="small", va="center")
ax.set(ylim=(0, 103))
told = [f"{name}: {', '.join(f'{x:.0f}' for x in line)}" for name, line in
        (("by the program", perfect), ("by the reward model", best))]  # fmt: skip
plots.show(figure, f"Percent right for one to eight answers. {'; '.join(told)}.")
ended = [x["right"][x["ended"].index(True)] if True in x["ended"] else 0 for x in own]
print(f"by the program {perfect[-1]:.0f} %, by the reward model {best[-1]:.0f} %,", end=" ")
print(
    f"the first answer that ends {100 * sum(ended) / len(own):.0f} %, the first {perfect[0]:.0f} %"
)

# %% [markdown]
# It gets far more than one answer does. But taking the *first that ends* does better still: here nearly every answer that ends is right, so ending is a *sign* of being right, and the reward model has learned the sign.
#
# ### Cheat it
#
# Below are four answers to *What is the capital of Norway?*, of which two say *Oslo*. **Which one does the reward model like least: the first, second, third or fourth?**

# %%
guess = None  # 1, 2, 3 or 4

# %%
tries = ["is Oslo.", "is Oslo. Oslo is a", "is Paris.", "is a banana."]
asked = "What is the capital of Norway?"
with torch.no_grad():
    liked = head(last_states([(asked, f"The capital of Norway {x}") for x in tries]))[:, 0]
print({x: round(score, 1) for x, score in zip(tries, liked.tolist())})
reveal(guess, int(liked.argmin()) + 1)

# %% [markdown]
# *Paris* has almost the reward of *Oslo*, and a banana far more than a right answer that goes on. A model that is trained on this reward is paid for it: **reward hacking**. What is rewarded gets likelier, whatever was meant. The learned reward goes on rising while the true one falls behind, and at last falls (Gao et al. 2023, **over-optimization**).
#
# A program can be cheated too, or be too sharp. Of the 160 answers before training none has fewer than eight tokens: a reward for five at most would be 0 for all, and every advantage 0.

# %% [markdown]
# ## Without drawing
#
# The long way, **RLHF** (Ouyang et al. 2022), is both: learn a reward model, then let PPO find a model $\pi$ that gets much of its reward and stays near the model $\pi_0$ that it began as:
#
# $$\max_\pi \; \mathbb{E}_{y \sim \pi}\big[r(y)\big] - \beta\, \mathrm{KL}(\pi \,\|\, \pi_0)$$

# %% [markdown]
# **DPO** (direct preference optimization, Rafailov et al. 2023) solves that on paper. Let $\pi^*(y) = \pi_0(y)\, e^{r(y)/\beta} / Z$, where $Z$ makes it sum to 1. Put $r = \beta \log (\pi^* / \pi_0) + \beta \log Z$ into the aim, and it is
#
# $$\mathbb{E}_{y \sim \pi}\Big[\beta \log \tfrac{\pi^*}{\pi_0} - \beta \log \tfrac{\pi}{\pi_0}\Big] + \beta \log Z = -\beta\, \mathrm{KL}(\pi \,\|\, \pi^*) + \beta \log Z$$
#
# A KL divergence is never below 0 (Gibbs' inequality), and 0 only for equal distributions. So $\pi^*$ is the best model.

# %% [markdown]
# 1. So the best model is $\pi^*$, and it *says* its reward: $r = \beta \log (\pi / \pi_0) + \beta \log Z$.
# 2. Bradley and Terry need only a difference of rewards, in which $Z$ cancels.
# 3. What is left is `preference_loss` with $\beta \log (\pi / \pi_0)$ in place of a reward: `dpo_loss`, which [an exploration](explorations/17_preferences.ipynb) builds.
#
# No reward model, no drawing while it learns: pairs are enough. Ours are right against wrong, as equal in length as there are, each judged by the program.


# %% tags=["hide-input"]
def both(batch):
    """Return log p of the better answers, and of the worse ones."""
    found = []
    for side in (1, 2):
        talk = [(turns(x[0], system=None), x[side]) for x in batch]
        rows, asked, lengths = smollm2.conversations(model.tokenizer, talk)
        # an answer that was cut off has no end to learn from
        lengths = lengths - torch.tensor([side == 2 and not x[3] for x in batch]).long()
        found.append(answer_log_probs(model(rows), answer_targets(rows, asked, lengths)))
    return found


# %% tags=["training"]
begin_again()
with torch.no_grad():
    old = {x[0]: torch.cat(both([x])) for x in pairs}
gains = []


def pair_loss(model, batch):
    now, then = torch.stack(both(batch)), torch.stack([old[x[0]] for x in batch]).T
    gains.append((now - then).mean(dim=1).tolist())
    return dpo_loss(*now, *then, beta=0.1)


# %% tags=["training"]
choose = random.Random(SEED)
fours = (choose.sample(pairs, 4) for _ in range(10))
history = training.train(model, fours, pair_loss, steps=10, learning_rate=0.001, seconds=120)

# %% tags=["training", "hide-input"]
title = "The right answers gain on the others: DPO asks for no more"
figure, ax = plots.axes(title, "step", "gain in log p, nats")
for side, name, colour in ((0, "right answers", plots.COLOURS[2]), (1, "others", plots.COLOURS[1])):
    line = [x[side] for x in gains]
    ax.plot(range(1, len(line) + 1), line, color=colour)
    ax.text(len(line) + 0.2, line[-1], name, color=colour, size="small", va="center")
ax.axhline(0, color="0.7", linewidth=1, zorder=0)
told = "; ".join(f"{a:.1f} and {b:.1f}" for a, b in gains)
plots.show(figure, f"Gain in log p of the right answers and of the others, step by step: {told}.")
asked_again()
claim = "the right answers of a pair gain more than the others, by a nat at least"
training.expect(claim, gains[-1][0] > gains[-1][1] + 1, gains[-1], model)

# %% [markdown]
# It works, without a single draw while it learned: the right answers gain, the others lose, and the tested questions have more right answers than before. But the pairs are those that the first model wrote, and they stay so; GRPO's answers get better with the model.
#
# And the loss sees only the *difference*. Where both fall, the worse one faster, it is content, and what rises instead may be an answer that is in no pair. With larger rates that happens; it is called **likelihood displacement** (Razin et al. 2025).

# %% [markdown]
# ## What the large ones do
#
# **DeepSeek-R1-Zero** (Guo et al. 2025) is this lesson at full size: GRPO on a pretrained model that has seen no example answer, with rewards by rules, for a right result and for the form. On the problems that a mathematics competition, AIME, set in 2024, its pass@1 rose from 15.6 to 71.0 %, and a vote of 64 has 86.7 %. Its answers grew long, thousands of tokens, without being asked to: what pays is thinking aloud.

# %% [markdown]
# R1 itself begins with some thousand written examples, so that its texts can be read. 800,000 of these taught six smaller models, by lesson 17's loss: **distillation**.
#
# Rewards by a program are called *verifiable*, and the method RLVR (Lambert et al. 2024): results of mathematics, unit tests of code, instructions. What no program can check still needs a reward model.
#
# Does it teach anything new? Yue et al. (2025) compared pass@k up to hundreds of answers: with one answer the trained models are ahead, with hundreds the models that they came from. That is our table, at scale.

# %% [markdown]
# The loss is written in many ways. Each differs from yours in a line:
#
# | | advantage | over the tokens | besides |
# |:-|:-|:-|:-|
# | this page | $(r - \text{mean}) / \text{std}$ | one mean over all | |
# | GRPO (Shao et al. 2024) | the same | a mean for each answer, then their mean | a penalty on $\mathrm{KL}(\pi \,\Vert\, \pi_0)$ |
# | Dr. GRPO (Liu et al. 2025) | $r - \text{mean}$ | a sum, divided by a constant | |
# | DAPO (Yu et al. 2025) | as on this page | one mean over all | upper clip 1.28; groups without spread are drawn again |
# | nanochat (Karpathy 2025) | $r - \text{mean}$ | one mean over all | no ratio: one step for each draw |
#
# With a mean for each answer, a token of a long wrong answer costs less than one of a short wrong answer. And division by the standard deviation gives most weight to questions that are nearly always right, or nearly always wrong. These are the two biases that Dr. GRPO takes out.
#
# The library TRL has these losses under one name each, the `loss_type` of its `GRPOTrainer`: `"bnpo"` averages as this page does, `"grpo"`, `"dr_grpo"` and `"dapo"` as the papers do.

# %% [markdown]
# ## Break it
#
# - Hand `answer_tokens` with its fault to the training. Where do the answers end now?
# - Let `reward` ask for the word alone, and not for an end. What is learned then?
# - Train on one question for sixteen steps. What becomes of the others?

# %% [markdown]
# ## What to remember
#
# A model learns from its own answers if a program can judge them. An answer is worth what it is better than its group, and each of its tokens becomes likelier or less likely by that: this is GRPO. It moves to the front what the model could already say now and then, in the form that is rewarded, for the kinds that are practised. The reward is the whole specification, so look at what it pays for. Where no program can judge, learn a reward from preferences, or use DPO, which needs none.
#
# | | |
# |:-|:-|
# | pass@k | $1 - \binom{n-c}{k} / \binom{n}{k}$ |
# | policy gradient | $\nabla J = \mathbb{E}[(r - b)\, \nabla \log \pi]$, any baseline $b$ |
# | advantage | $(r - \mathrm{mean}) / (\mathrm{std} + \varepsilon)$, over the answers to one question |
# | clipped loss | $-\mathrm{mean}\, \min(\rho A,\, \mathrm{clip}(\rho) A)$ |
# | reward model, DPO | $-\log \sigma(r^+ - r^-)$; DPO's $r = \beta \log (\pi / \pi_0)$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Of ten answers two are right. What is pass@1, and what is pass@9?</summary>
#
# 0.2, and 1: only eight are wrong, so nine cannot all be.
# </details>
#
# <details><summary>2. A group's rewards are 1, 1, 1, 0. Which answer changes the model most, and how?</summary>
#
# The wrong one: its advantage is −1.5, that of the others 0.5 each. It becomes less likely.
# </details>
#
# <details><summary>3. Why may one take the same number off all rewards?</summary>
#
# Its part of the gradient is $b\, \nabla 1$, which is 0 on average. The group's mean holds the answer's own reward as well; that only shortens the step.
# </details>
#
# <details><summary>4. A model's reward rises from 0.2 to 0.9. What do you look at before you believe it?</summary>
#
# Its answers. Then pass@k of the model before, other questions, and a measure that was not the reward.
# </details>

# %% [markdown]
# ## Further reading
#
# Williams 1992 (REINFORCE); Schulman et al. 2017 (PPO); Shao et al. 2024 (GRPO); Guo et al. 2025 (R1); Yu et al. 2025 (DAPO); Liu et al. 2025 (Dr. GRPO); Chen et al. 2021 (pass@k); Wang et al. 2023 (the vote); Zelikman et al. 2022 (learning from one's own right answers); Bradley & Terry 1952, Ouyang et al. 2022 (reward models); Gao et al. 2023 (what becomes of them); Rafailov et al. 2023 (DPO); Razin et al. 2025 (where it fails); Lambert et al. 2024 (RLVR); Yue et al. 2025 (what it adds).

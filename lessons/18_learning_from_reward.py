# %% [markdown]
# # 18 · Learning from reward
#
# **75 minutes · after lesson 17 · needs `smollm2` (93 MB)**
#
# In lesson 17 each example came with its answer. Often nobody has written one, and yet a program can tell right from wrong: a test that passes, a sum that comes out. **Can a model learn from *right* and *wrong* alone?** That is **reinforcement learning**.
#
# At the end you have trained a real model on its own answers, on your machine, in two minutes. You can say what it has learned, and how a reward is cheated.

# %%
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import needs, verifiable
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import answered, results, training
from course_lib.instruments.pictures import rewards as pictures

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
pictures.judged()

# %%
needs("smollm2")
import random
from collections import Counter
from collections.abc import Sequence
from course_lib.assistant import adapt
from course_lib.pretrained import rollouts, smollm2
from course_lib.pretrained.smollm2 import STOP, turns
from torch.nn.utils import parameters_to_vector, vector_to_parameters

LowRankLinear = mine("lora/layer")
answer_targets = mine("assistant/answer_mask")
answer_log_probs = mine("dpo/mend_log_probs")

# %% [markdown]
# ## Sample, and score
#
# The model is lesson 17's, with your low-rank layers in its last ten blocks. $B$ is zero, so this is still the model as it came. We keep the first parameters, to start again later. In this field a model that acts is a **policy**, and an answer that it draws is a **rollout**.

# %%
model = smollm2.load()
names = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
with training.seeded(SEED):
    model.requires_grad_(False)
    trained = adapt(model.blocks[-10:], names, lambda linear: LowRankLinear(linear, 8, 16))
first = parameters_to_vector(trained).detach()
learning, testing = verifiable.split(4, 0)
print(len(learning), "questions to learn from,", len(testing), "to test with")

# %% [markdown]
# The questions are of five kinds, each with one right word. Capitals, opposites and plurals are the **learned kinds**; facts and sums, the **other kinds**, are never trained on. An answer is drawn token by token at temperature 0.7, ten tokens at most.
#
# The **reward** is a program of one line: 1 for the right word in an answer that has come to its end, otherwise 0.


# %%
def reward(text, tokens, word):
    return float(verifiable.is_right(text, word) and STOP in tokens)


question = verifiable.Question("opposites", "What is the opposite of hot?", "cold")
draw = torch.Generator().manual_seed(SEED)
_, drawn, texts = rollouts.answers(model, [question], draw)
for text, tokens in zip(texts, drawn):
    print(reward(text, tokens, question.word), text)

# %% [markdown]
# Most of them name the word, and none comes to its end within ten tokens: no reward. Now we ask eight test questions, eight times each. The table counts the rewarded answers, and shows the commonest; if all differ, the first. We ask again after each training.

# %%
some = [x for x in testing if x.kind != "sums"][1::2]
untrained = rollouts.rewarded(model, some, reward, SEED)
print("\n".join(rollouts.side_by_side(some, before=untrained)))

# %% [markdown]
# The share of rewarded answers is **pass@1**, the chance that one answer is right. **Pass@k** is the chance that at least one of $k$ answers is right, for a program to pick. To estimate it, draw $n \ge k$ answers, count the $c$ right ones, and ask how often $k$ of these $n$, drawn without putting back, hold a right one (Chen et al. 2021):
#
# $$\text{pass@}k = 1 - \binom{n - c}{k} \Big/ \binom{n}{k} = 1 - \prod_{i = n - c + 1}^{n} \Big(1 - \frac{k}{i}\Big)$$
#
# Why not $1 - (1 - c/n)^k$? That may draw one wrong answer twice, so on average it is too small.

# %%
# exercise: reward/pass_at_k

# %%
check("reward/pass_at_k", pass_at_k)

# %%
pass_at_k = mine("reward/pass_at_k")

# %% [markdown]
# Eight answers are of use even where no program knows the right one: **vote** (self-consistency, Wang et al. 2023). The commonest answer wins; one that did not end has no vote.

# %%
# given: reward.vote


# %% [markdown]
# Now all twenty test questions, before any training. Of the learned kinds, pass@1 is 20 %. **What is their pass@8?**

# %%
guess = None  # percent


# %% tags=["hide-input"]
kept = results.load("reward")["figures"]
before = kept["before"]
print(f"{'before training':22}{'pass@1':>8}{'vote of 8':>12}{'pass@8':>9}")
for name, kinds in answered.KINDS.items():
    right = [int(sum(x["right"])) for x in answered.of(before, kinds)]
    one, eight = (100 * sum(pass_at_k(8, c, k) for c in right) / len(right) for k in (1, 8))
    commonest = 100 * answered.voted(before, kinds)
    print(f"{len(right):2} of the {name:13}{one:7.0f}%{commonest:11.0f}%{eight:8.0f}%")
reveal(guess, round(100 * answered.share(before, verifiable.LEARNED_KINDS, 8)))

# %% [markdown]
# If the twelve were equally hard, pass@8 would be 83 %. They are not: six were missed all eight times. The vote finds as many without a check, since here nearly every answer that ends is right. Training could move the right answers to the front for good.
#
# ## Make it likelier
#
# We want a policy $\pi$ that gets much reward on average. The average is a sum over all answers $y$, and its gradient is an average again, because $\nabla \pi = \pi \, \nabla \log \pi$:
#
# $$J = \sum_y \pi(y)\, r(y) \qquad \nabla J = \sum_y \nabla \pi(y)\, r(y) = \mathbb{E}_{y \sim \pi}\big[\, r(y)\, \nabla \log \pi(y) \,\big]$$

# %% [markdown]
# This is the **policy gradient** (REINFORCE, Williams 1992). It needs no gradient of the reward: the program may be anything. Draw answers, and follow $r \, \nabla \log \pi$. An answer's probability is a product over its tokens, so $\log \pi(y) = \sum_t \log \pi(y_t \mid y_{<t})$, and its gradient is lesson 17's, times a number.

# %% [markdown]
# With rewards of 0 and 1 a right answer says *more of this*, and a wrong one nothing. Add 5 to both, and every answer that is drawn says *more of this*. The average is the same gradient, but its **variance** has grown, and a few draws hardly show it.
#
# So subtract a **baseline** $b$, and a wrong answer says *less of that*. If $b$ does not depend on the answer, the average stays, since probabilities sum to 1:
#
# $$\mathbb{E}_{y \sim \pi}\big[\, b\, \nabla \log \pi(y) \,\big] = b \sum_y \nabla \pi(y) = b\, \nabla 1 = 0$$

# %% [markdown]
# Which baseline? **PPO** (proximal policy optimization, Schulman et al. 2017) trains a second network to predict the reward. **GRPO** (group relative policy optimization, Shao et al. 2024) takes the mean of a group, eight answers to one question. An answer's distance from it, in standard deviations of the group, is its **advantage**:
#
# $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + \varepsilon}$$
#
# The mean includes the answer's own reward, but $r_i - \mathrm{mean}(r)$ is just 7/8 of the distance from the mean of the other seven. Where all eight are right, or all wrong, every advantage is 0.

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
# A lone right answer counts most, and so does a lone failure.
#
# ### Not too far
#
# The gradient holds for answers drawn from the model *as it is*. Drawing is slow, so PPO takes several steps on the same answers. It corrects by the **ratio** $\rho$ of each token's probability now to its probability when drawn, and clips the ratio: beyond $1 \pm 0.2$ there is nothing more to gain. The mean is over the $N$ tokens of all answers:
#
# $$L = -\frac{1}{N} \sum_{i, t} \min\big(\rho_{it} A_i,\; \mathrm{clip}(\rho_{it},\, 0.8,\, 1.2)\, A_i\big), \qquad \rho_{it} = \frac{\pi(y_{it})}{\pi_{old}(y_{it})}$$

# %% tags=["hide-input"]
pictures.clip()

# %%
# exercise: reward/policy_loss

# %%
check("reward/policy_loss", policy_loss)

# %%
policy_loss = mine("reward/policy_loss")

# %% [markdown]
# We take one step on each draw. Then $\pi_{old} = \pi$, every ratio is 1, and no clip is active. The gradient is still that of $-A \log \pi$, since $\nabla \rho = \rho\, \nabla \log \pi$.
#
# One part is left: which of the drawn tokens are the answer's? Rows that have ended are padded with the end token itself, `STOP`. One line of the function below is wrong, so no answer is ever rewarded for its end. Mend it; later you will bet on what the fault does.

# %%
# exercise: reward/mend_answer_tokens

# %%
check("reward/mend_answer_tokens", answer_tokens)

# %%
answer_tokens = mine("reward/mend_answer_tokens")

# %% [markdown]
# ## Two minutes
#
# All parts are there, and they are yours: two questions a step, eight answers each, a program for rewards, and one step of Adam. Nobody shows the model an answer. Then the eight questions are asked again: it has met none of them.


# %%
def loss(model, batch):
    """Return the policy's loss on answers that it has just drawn."""
    prompts, drawn, advantages = batch
    new = rollouts.log_probs(model, prompts, drawn)
    return policy_loss(new, new.detach(), advantages, answer_tokens(drawn, STOP))


# %%
def by_program(questions, texts, drawn):
    """Return the rewards of answers."""
    return torch.tensor([reward(*x) for x in zip(texts, drawn, [x.word for x in questions])])


def batches(score, seen):
    """Draw answers from the model as it is, say what each is worth, and keep the mean reward."""
    draw, choose = torch.Generator().manual_seed(SEED), random.Random(SEED)
    while True:
        questions = rollouts.alike(model, learning, choose)
        prompts, drawn, texts = rollouts.answers(model, questions, draw)
        rewards = score([x for x in questions for _ in range(8)], texts, drawn)
        seen.append(rewards.mean().item())
        yield prompts, drawn, group_advantage(rewards.view(2, 8)).flatten()


# %% tags=["training"]
vector_to_parameters(first.clone(), trained)
seen = []
paid = batches(by_program, seen)
history = training.train(model, paid, loss, steps=10, learning_rate=0.002, seconds=140)
pictures.curve(seen, kept)

# %% [markdown]
# The reward rises, without an example answer. Each step asks two other questions, so a single run jumps.

# %% tags=["training"]
grpo = rollouts.rewarded(model, some, reward, SEED)
print("\n".join(rollouts.side_by_side(some, before=untrained, GRPO=grpo)))
counts = [sum(count for count, _ in rows[:6]) for rows in (untrained, grpo)]
claim = "of 48 answers to the learned kinds, 16 more are rewarded than before"
training.expect(claim, counts[1] >= counts[0] + 16, counts, model)

# %% [markdown]
# ### Other seeds
#
# Below are stored runs of sixteen steps, measured on eight answers to each test question. Two ways train nothing: *asked* adds "Answer in one word." to each question, and *four examples* puts four questions with short answers before it. *REINFORCE* is the same code with $A = r$: with rewards of 0 and 1 it learns the rewarded answers as lesson 17 would. *DPO* comes later.
#
# Of the other kinds, 2 % of the answers were rewarded before. **What percent will it be after GRPO?**

# %%
guess = None  # percent

# %% tags=["hide-input"]
compared = {"before": "before", "asked": "asked for one word", "four examples": "four examples"}
compared |= {"REINFORCE": "rewarded alone", "GRPO": "GRPO", "DPO": "DPO"}
pictures.rewarded(
    kept, compared, "REINFORCE and GRPO lead on the learned kinds, four examples on the others"
)
runs = answered.ways(kept)
percent = [100 * answered.share(run, verifiable.OTHER_KINDS) for run in runs["GRPO"]]
reveal(guess, round(sum(percent) / len(percent)))

# %% [markdown]
# Four examples bring the *form* to every kind without a step: most answers end, and a third of the other kinds is rewarded. On the learned kinds both trainings are far ahead. With rewards of 0 and 1 REINFORCE needs no baseline: a wrong answer is worth nothing, and pushes nothing. Add 5 to each reward, and it pushes up whatever was drawn: three stored runs end at 7, 29 and 75 %, a mean of 37 in the table below. GRPO's advantages are the same with any number added.

# %% [markdown]
# Now your bet. Before training, 22 % of these answers ended within ten tokens. In three runs `answer_tokens` had its fault, and no answer was ever rewarded for its end. **What share ends after sixteen steps?**

# %%
guess = None  # percent

# %% tags=["hide-input"]
control = results.load("reward_controls")["figures"]["arms"]
runs["5 added"] = [run["after"] for run in control["rewarded alone, 5 added"]]
listed = {name: name for name in ("before", "four examples", "GRPO")}
listed |= {"GRPO, with the fault": "end left out"}
listed |= {"REINFORCE": "rewarded alone", "REINFORCE, 5 added": "5 added"}
print("\n".join(answered.table({name: runs[key] for name, key in listed.items()})))
ended = [answered.parts(run)["ended"] for run in runs["end left out"]]
reveal(guess, round(100 * sum(ended) / len(ended)))

# %% [markdown]
# Nearly all end, even so. Probabilities sum to 1: where the tokens that go on are punished, the end can gain. nanochat (Karpathy 2025) leaves the end out in this way.
#
# What has been learned? *Named* is the share of answers with the right word in their ten tokens. Before, two in three named it, and went on talking; now nearly all stop. Most of the gain is the *form*. It **transfers** to new questions of the learned kinds, hardly to the other kinds.

# %% [markdown]
# ## A reward that is learned
#
# For a poem there is no program. But people can say which of two is better, and a network can learn to agree with them: a **reward model**. It gives each answer a number $r$, and predicts that $y^+$ is preferred to $y^-$ with (Bradley & Terry 1952)
#
# $$p(y^+ \succ y^-) = \sigma\big(r(y^+) - r(y^-)\big)$$

# %%
# exercise: reward/preference_loss

# %%
check("reward/preference_loss", preference_loss)

# %%
preference_loss = mine("reward/preference_loss")

# %% [markdown]
# Ours is one linear layer on the model's last state. It learns from pairs of answers to training questions, one rewarded and one not. Then it judges the answers to test questions: does it tell right from wrong, and what is the best of eight by its choice?

# %%
pairs = kept["pairs"]  # a question, a right answer, another, and whether that one ended
for asked, better, worse, _ in pairs[:3]:
    print(f"{asked}\n  + {better}\n  - {worse}")


# %%
def fitted(better, worse):
    """Return a linear reward that agrees with pairs of states."""
    with training.seeded(SEED):
        head = nn.Linear(576, 1)
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.001, weight_decay=0.1)
    for _ in range(100):
        value = preference_loss(head(better)[:, 0], head(worse)[:, 0])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return head.requires_grad_(False)


vector_to_parameters(first.clone(), trained)
better, worse = (rollouts.last_states(model, [(x[0], x[side]) for x in pairs]) for side in (1, 2))

# %%
head = fitted(better, worse)
own = answered.of(before, verifiable.LEARNED_KINDS)
states = [rollouts.last_states(model, [(x["asked"], text) for text in x["texts"]]) for x in own]
print("\n".join(answered.told_apart(own, [head(x)[:, 0].tolist() for x in states])))

# %% [markdown]
# It tells pairs apart. But taking the *first that ends* is no worse: nearly every answer that ends is right, and in most pairs the worse one was cut off. What has the reward model learned, the right word or the full stop?
#
# ### Cheat it
#
# Here are four answers to *What is the capital of Austria?*, which is in no pair. The lower line is a reward model that has read only pairs in which both answers end.

# %%
tries = ["is Vienna.", "is Vienna. Vienna is a", "is Paris.", "is a banana."]
asked = "What is the capital of Austria?"
states = rollouts.last_states(model, [(asked, f"The capital of Austria {x}") for x in tries])
ends = [x[3] for x in pairs]
print(f"{len(pairs)} pairs, in {sum(ends)} of which both answers end")
for name, judge in (("all pairs", head), ("pairs that end", fitted(better[ends], worse[ends]))):
    liked = {x: round(r, 1) for x, r in zip(tries, judge(states)[:, 0].tolist())}
    print(f"{name:15}", liked)

# %% [markdown]
# The full stop: *Paris* has almost the reward of *Vienna*, and a banana far more than a right answer that goes on. Trained where the stop is no help, it reads the word, too: *Vienna* is first, and the banana last. But *Paris.* still beats a *Vienna* that goes on.

# %% [markdown]
# A program can be cheated, too. The question names the word, so ours accepts "The plural of sheep is sheeps.", and one of our pairs (not shown) has it as the better answer. What is rewarded gets likelier, whatever was meant: **reward hacking**. We want short answers, and pay for shortness alone: each token costs a tenth.


# %%
def by_length(questions, texts, drawn):
    """Return 1 minus a tenth for each token, and keep the share of answers that are right."""
    right = [verifiable.is_right(text, x.word) for text, x in zip(texts, questions)]
    named.append(sum(right) / len(right))
    return 1 - answer_tokens(drawn, STOP).sum(dim=1) / 10


# %% tags=["training"]
vector_to_parameters(first.clone(), trained)
named, seen = [], []
paid = batches(by_length, seen)
history = training.train(model, paid, loss, steps=24, learning_rate=0.004, seconds=100)
pictures.hacked(seen, named)

# %% tags=["training"]
hacked = rollouts.rewarded(model, some, reward, SEED)
print("\n".join(rollouts.side_by_side(some, before=untrained, short=hacked)))

# %% [markdown]
# At first it does what we hoped: shorter answers, with the right word. Then it stops answering: the end token alone is paid 0.9. At half the learning rate one stored run of three was there after sixteen steps, and two looked like a success: 73 and 83 % rewarded. Trained on for long, a learned reward rises, too, while the true one falls: **over-optimization** (Gao et al. 2023).

# %% [markdown]
# ## Without drawing
#
# **RLHF**, reinforcement learning from human feedback (Ouyang et al. 2022), learns a reward model, then lets PPO find a policy $\pi$ that gets much of its reward and stays near the model $\pi_0$ that it began as. $\mathrm{KL}(\pi \,\|\, \pi_0)$ is the mean of $\log (\pi / \pi_0)$ under $\pi$:
#
# $$\max_\pi \; \mathbb{E}_{y \sim \pi}\big[r(y)\big] - \beta\, \mathrm{KL}(\pi \,\|\, \pi_0)$$
#
# **DPO** (direct preference optimization, Rafailov et al. 2023) solves that on paper. Let $\pi^*(y) = \pi_0(y)\, e^{r(y)/\beta} / Z$, where $Z$ makes it sum to 1. With $r = \beta \log (\pi^* / \pi_0) + \beta \log Z$ the objective is
#
# $$\mathbb{E}_{y \sim \pi}\Big[\beta \log \tfrac{\pi^*}{\pi_0} - \beta \log \tfrac{\pi}{\pi_0}\Big] + \beta \log Z = -\beta\, \mathrm{KL}(\pi \,\|\, \pi^*) + \beta \log Z$$
#
# A KL divergence is never below 0 (Gibbs' inequality), and 0 only for equal distributions. So $\pi^*$ is the best model.

# %% [markdown]
# So a model has an **implicit reward**, $r = \beta \log (\pi / \pi_0) + \beta \log Z$. Bradley and Terry need only a difference of rewards, in which $Z$ cancels. What is left is your `preference_loss` with $\beta \log (\pi / \pi_0)$ in place of a reward:
#
# $$L_{DPO} = -\log \sigma\Big(\beta \log \frac{\pi(y^+)}{\pi_0(y^+)} - \beta \log \frac{\pi(y^-)}{\pi_0(y^-)}\Big)$$
#
# Pairs are enough. In the cell below `answer_log_probs` gives $\log \pi$ of a whole answer; you write it in [an exploration](explorations/17_preferences.ipynb).


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
    return torch.stack(found)


def of_all():
    with torch.no_grad():
        return torch.cat([both(pairs[i : i + 4]) for i in range(0, len(pairs), 4)], dim=1)


# %% tags=["training"]
vector_to_parameters(first.clone(), trained)
old = of_all()
place = {x[0]: i for i, x in enumerate(pairs)}


def pair_loss(model, batch, beta=0.1):
    better, worse = beta * (both(batch) - old[:, [place[x[0]] for x in batch]])
    return preference_loss(better, worse)


choose = random.Random(SEED)
fours = (choose.sample(pairs, 4) for _ in range(10))
history = training.train(model, fours, pair_loss, steps=10, learning_rate=0.001, seconds=120)

# %% tags=["training"]
gains = of_all() - old
pictures.gains(*gains)
dpo = rollouts.rewarded(model, some, reward, SEED)
print("\n".join(rollouts.side_by_side(some, before=untrained, GRPO=grpo, DPO=dpo)))
claim = "the right answers of a pair gain more than the others, by a nat on average"
means = [x.mean().item() for x in gains]
training.expect(claim, means[0] > means[1] + 1, means, model)

# %% [markdown]
# It works without drawing: above the grey line, where all pairs are, the right answer gains more than the other, and more answers are rewarded. It stays behind GRPO, here and with each stored seed.
#
# But the loss sees only the *difference*. It also falls where both answers get less likely, the worse one faster. What rises instead may be in no pair: **likelihood displacement** (Razin et al. 2025). Here no right answer fell. [An exploration](explorations/17_preferences.ipynb) tries four answers, where the best model is known.

# %% [markdown]
# ## What the large ones do
#
# **DeepSeek-R1-Zero** (Guo et al. 2025) is this lesson at full size: GRPO on a pretrained model that has seen no example answer, with rewards by rules. On the AIME of 2024, a mathematics competition, its pass@1 rose from 15.6 to 71.0 %, and a vote of 64 reaches 86.7 % (reported, in the preprint). Its answers grew to thousands of tokens: what pays is thinking aloud.

# %% [markdown]
# Learning from a program's rewards is **RLVR**, reinforcement learning with verifiable rewards (Lambert et al. 2024). R1's checked answers taught smaller models by lesson 17's loss: **distillation** ([an exploration](explorations/18_distillation.ipynb)).
#
# Does RLVR teach anything new? Yue et al. (2025) compared pass@k: with one answer the trained models are ahead, with hundreds the models that they came from.

# %% [markdown]
# The loss is written in many ways. Each differs from yours in a line:
#
# | | advantage | over the tokens | besides |
# |:-|:-|:-|:-|
# | this page | $(r - \text{mean}) / \text{std}$ | one mean over all | |
# | GRPO (Shao et al. 2024) | the same | a mean for each answer, then their mean | a penalty on $\mathrm{KL}(\pi \,\Vert\, \pi_0)$ |
# | Dr. GRPO (Liu et al. 2025) | $r - \text{mean}$ | a sum, divided by a constant | |
# | DAPO (Yu et al. 2025) | as on this page | one mean over all | upper clip 1.28; groups without spread are drawn again |
# | nanochat (Karpathy 2025) | $r - \text{mean}$ | a mean over a question's answers, without the end | no ratio: one step for each draw |
#
# Dr. GRPO removes two biases: towards long wrong answers, and towards questions that are nearly always right, or wrong. In TRL, Hugging Face's library, `loss_type` sets the mean, here `"bnpo"`; `scale_rewards` sets the advantage.

# %% [markdown]
# ## Break it
#
# - Hand `answer_tokens` with its fault to the training with $A = r$, where nothing is punished. Do the answers end now?

# %% [markdown]
# ## What to remember
#
# A model learns from its own answers if a program can judge them. GRPO makes an answer's tokens likelier by how far its reward is above the mean of its group. It moves to the front what the model could already say, in the form that is rewarded, for the learned kinds. Look at what a reward pays for. Where no program can judge, learn a reward model from preferences, or use DPO, which needs none.
#
# | | |
# |:-|:-|
# | pass@k | $1 - \binom{n-c}{k} / \binom{n}{k}$ |
# | policy gradient | $\nabla J = \mathbb{E}[(r - b)\, \nabla \log \pi]$, any $b$ that does not depend on the answer |
# | advantage | $(r - \mathrm{mean}) / (\mathrm{std} + \varepsilon)$, over the answers to one question |
# | clipped loss | $-\mathrm{mean}\, \min(\rho A,\, \mathrm{clip}(\rho) A)$ |
# | reward model, DPO | $-\log \sigma(r^+ - r^-)$; DPO's $r = \beta \log (\pi / \pi_0)$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>A model's reward rises from 0.2 to 0.9. What do you look at before you believe it?</summary>
#
# Its answers. Then pass@k of the model before, other questions, and a measure that was not the reward.
# </details>

# %% [markdown]
# ## Further reading
#
# Williams 1992 (REINFORCE); Schulman et al. 2017 (PPO); Shao et al. 2024 (GRPO); Guo et al. 2025 (R1); Yu et al. 2025 (DAPO); Ouyang et al. 2022 (RLHF); Rafailov et al. 2023 (DPO).
#
# **This was the last lesson.** You have built each part of the model that you have just trained, from its attention to its reward. [Start here](00_start_here.ipynb) has the map: look at it once more, and say what each box does.

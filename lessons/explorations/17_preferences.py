# %% [markdown]
# # Better than, not equal to
#
# **25 minutes · an exploration of lesson 17 · needs no data**
#
# Often nobody has written the one right answer, and it is easier to say which of two is better. **How does a model learn from preferences, without a second network and without sampling?** You derive the loss of direct preference optimization (DPO, Rafailov et al. 2023) in three steps, build it, and watch it find the best model there is.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots

# %% [markdown]
# ## What is the best model?
#
# Let $r(x, y)$ be the **reward** of an answer $y$ to $x$. We want a model $\pi$ that gets much of it, and stays near the model $\pi_0$ that we began with, since what $\pi_0$ knows is worth keeping (Ouyang et al. 2022):
#
# $$\max_\pi \; \mathbb{E}_{y \sim \pi}\big[r(x, y)\big] - \beta\, \mathrm{KL}(\pi \,\|\, \pi_0)$$

# %% [markdown]
# **Step 1: the best model, without training.** Write the divergence out and divide by $-\beta$. With $\pi^*(y) = \pi_0(y)\, e^{r(y)/\beta} / Z$, where $Z$ makes it sum to 1, the objective is
#
# $$-\beta \sum_y \pi(y) \log \frac{\pi(y)}{\pi_0(y)\, e^{r(y)/\beta}} = \beta \log Z - \beta\, \mathrm{KL}(\pi \,\|\, \pi^*)$$
#
# By **Gibbs' inequality** a divergence is never negative, and 0 only where both are equal. So $\pi = \pi^*$ is best: each answer is as likely as before, times $e^{r/\beta}$.

# %% [markdown]
# **Step 2: the reward can be read off the model.** Solve for it: $r(x, y) = \beta \log \frac{\pi^*(y \mid x)}{\pi_0(y \mid x)} + \beta \log Z(x)$. A model *is* a reward.
#
# **Step 3: preferences need differences only.** A reward predicts that $y^+$ is preferred to $y^-$ with probability $\sigma\big(r(x, y^+) - r(x, y^-)\big)$, where $\sigma$ is the logistic function (Bradley & Terry 1952). In the difference $Z(x)$, which nobody could compute, is gone.

# %% [markdown]
# So maximize the likelihood of the preferences that were seen. The loss, averaged over $m$ pairs, is
#
# $$L = -\frac{1}{m} \sum_{\text{pairs}} \log \sigma\Big(\beta \log \frac{\pi(y^+ \mid x)}{\pi_0(y^+ \mid x)} - \beta \log \frac{\pi(y^- \mid x)}{\pi_0(y^- \mid x)}\Big)$$

# %% [markdown]
# ## The probability of a whole answer
#
# It needs $\log \pi(y \mid x)$: the sum over the answer's tokens. Here is a function for it, with a bug: with it an answer gets less likely the longer its *prompt* is.

# %%
# exercise: dpo/mend_log_probs

# %%
check("dpo/mend_log_probs", answer_log_probs)

# %% [markdown]
# ## The loss

# %%
# exercise: dpo/loss

# %%
check("dpo/loss", preference_loss)

# %%
preference_loss = mine("dpo/loss")

# %% [markdown]
# **What is the loss before the first step of training?** Two digits; the formula says it.

# %%
guess = None  # in nats

# %%
start = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()  # log p of four answers to one question
better, worse = torch.tensor([3, 2, 2, 1]), torch.tensor([0, 0, 1, 0])
before = start[better], start[worse]
first = preference_loss(*before, *before, beta=0.5).item()
reveal(guess, round(first, 2))
assert abs(first - 0.6931) < 1e-3

# %% [markdown]
# At first $\pi = \pi_0$, so both logarithms are 0, and $-\log \sigma(0) = \log 2$.
#
# ## Does it find the best model?
#
# Step 1 says what the best model is, so we can check. Four answers to one question have known rewards; the least likely one is the best. Judges compare two at random, and prefer by Bradley and Terry's rule. The loss sees nothing but 20,000 such preferences, and never a reward.

# %%
reward, beta = torch.tensor([0.0, 0.5, 1.0, 1.5]), 0.5
draw = torch.Generator().manual_seed(0)
one, other = torch.randint(4, (2, 20_000), generator=draw)
wins = torch.rand(20_000, generator=draw) < torch.sigmoid(reward[one] - reward[other])
better, worse = torch.where(wins, one, other), torch.where(wins, other, one)

# %%
logits = start.clone().requires_grad_()
optimizer = torch.optim.Adam([logits], lr=0.05)
for _ in range(300):
    log_p = logits.log_softmax(-1)
    loss = preference_loss(log_p[better], log_p[worse], start[better], start[worse], beta)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
best = (start + reward / beta).softmax(-1)
found = logits.softmax(-1).detach()
print("before", start.exp(), "learned", found, "best", best, sep="\n")
assert (found - best).abs().max() < 0.03

# %% tags=["hide-input"]
figure, ax = plots.axes(
    "From preferences alone, the model that the formula calls best", "answer", "probability"
)
for i, (name, p) in enumerate({"before": start.exp(), "learned": found, "best": best}.items()):
    ax.bar([j + 0.27 * (i - 1) for j in range(4)], p, 0.25, color=plots.COLOURS[i], label=name)
ax.set_xticks(range(4), [f"reward {r:.1f}" for r in reward])
ax.legend()
rows = zip(start.exp(), found, best, strict=True)
told = "; ".join(f"answer {i}: {a:.2f}, {b:.2f}, {c:.2f}" for i, (a, b, c) in enumerate(rows, 1))
plots.show(figure, f"Probabilities of four answers before, learned, and best: {told}.")

# %% [markdown]
# It does: $\beta$ says how far the model may go.
#
# The guarantee holds for a table of answers with all pairs compared. A network shares its parameters between answers, and sees few pairs. The loss knows only a *difference* of two log probabilities: both may fall, the worse one faster, and the loss still falls (**likelihood displacement**, Razin et al. 2025). So watch the better answers' own log probability while you train, or add it to the loss (Pang et al. 2024). What over-optimization costs in larger models, Rafailov et al. 2024 measure.

# %% [markdown]
# ## What to remember
#
# A model is a reward: $\beta$ times the log of how much likelier it has made an answer. Put that into the likelihood of preferences, and the reward network and the sampling are gone.
#
# <details><summary>1. Where does the normalisation Z(x) go?</summary>
#
# It is the same for both answers to a question, and cancels in the difference of their rewards.
# </details>
#
# <details><summary>2. Under DPO the better answers became less likely. Is that a bug?</summary>
#
# No, only the difference counts: if both fall, the worse one faster, the loss falls. But it is a warning.
# </details>
#
# Rafailov et al. 2023 (DPO); Ouyang et al. 2022 (rewards and a divergence); Bradley & Terry 1952; Christiano et al. 2017. Titles and links: docs/REFERENCES.md.

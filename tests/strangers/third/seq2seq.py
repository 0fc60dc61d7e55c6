# %% seq2seq/greedy | wrong | the first step's state goes into every step
def decode_greedy(step, state, start, stop, most):
    tokens = torch.full((state.shape[0],), start, dtype=torch.long, device=state.device)
    done = torch.zeros_like(tokens, dtype=torch.bool)
    out = []
    for _ in range(most):
        logits, _ = step(tokens, state)
        tokens = logits.argmax(-1).masked_fill(done, stop)
        out.append(tokens)
        done = done | (tokens == stop)
        if done.all():
            break
    if not out:
        return torch.empty(state.shape[0], 0, dtype=torch.long, device=state.device)
    return torch.stack(out, dim=1)

# %% seq2seq/greedy | wrong | ends when any row has stopped
def decode_greedy(step, state, start, stop, most):
    tokens = torch.full((state.shape[0],), start, dtype=torch.long, device=state.device)
    done = torch.zeros_like(tokens, dtype=torch.bool)
    out = []
    for _ in range(most):
        logits, state = step(tokens, state)
        tokens = torch.where(done, torch.full_like(tokens, stop), logits.argmax(-1))
        out.append(tokens)
        done = done | (tokens == stop)
        if done.any():
            break
    if not out:
        return torch.empty(state.shape[0], 0, dtype=torch.long, device=state.device)
    return torch.stack(out, dim=1)

# %% seq2seq/greedy | wrong | the start token is fed in at every step
def decode_greedy(step, state, start, stop, most):
    first = torch.full((state.shape[0],), start, dtype=torch.long, device=state.device)
    done = torch.zeros_like(first, dtype=torch.bool)
    out = []
    for _ in range(most):
        logits, state = step(first, state)
        tokens = logits.argmax(-1).masked_fill(done, stop)
        out.append(tokens)
        done = done | (tokens == stop)
        if done.all():
            break
    if not out:
        return torch.empty(state.shape[0], 0, dtype=torch.long, device=state.device)
    return torch.stack(out, dim=1)

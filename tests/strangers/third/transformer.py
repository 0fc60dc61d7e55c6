# %% transformer/greedy | wrong | only the last token is read, not all that is written
@torch.no_grad()
def greedy(model, source, start, stop, most, source_mask=None):
    written = torch.full((source.shape[0], 1), start, dtype=torch.long, device=source.device)
    memory = model.encoder(source, source_mask)
    done = torch.zeros(source.shape[0], dtype=torch.bool, device=source.device)
    for _ in range(most):
        if done.all():
            break
        last = written[:, -1:]
        states = model.decoder(last, memory, memory_mask=source_mask)
        token = model.output(states)[:, -1].argmax(-1)
        written = torch.cat([written, token[:, None]], 1)
        done = done | (token == stop)
    return written[:, 1:]

# %% transformer/greedy | wrong | the source's mask is forgotten
@torch.no_grad()
def greedy(model, source, start, stop, most, source_mask=None):
    written = torch.full((source.shape[0], 1), start, dtype=torch.long, device=source.device)
    done = torch.zeros(source.shape[0], dtype=torch.bool, device=source.device)
    for _ in range(most):
        if done.all():
            break
        token = model(source, written)[:, -1].argmax(-1)
        written = torch.cat([written, token[:, None]], 1)
        done = done | (token == stop)
    return written[:, 1:]

# %% transformer/greedy | wrong | one token too few: it counts the start
@torch.no_grad()
def greedy(model, source, start, stop, most, source_mask=None):
    written = torch.full((source.shape[0], 1), start, dtype=torch.long, device=source.device)
    done = torch.zeros(source.shape[0], dtype=torch.bool, device=source.device)
    while written.shape[1] < most and not done.all():
        token = model(source, written, source_mask)[:, -1].argmax(-1)
        written = torch.cat([written, token[:, None]], 1)
        done = done | (token == stop)
    return written[:, 1:]

# %% transformer/greedy | wrong | the start is searched for a stop too, so it ends at once where the two are one token
@torch.no_grad()
def greedy(model, source, start, stop, most, source_mask=None):
    written = source.new_full((source.shape[0], 1), start)
    while written.shape[1] <= most and not (written == stop).any(1).all():
        token = model(source, written, source_mask)[:, -1].argmax(-1, keepdim=True)
        written = torch.cat([written, token], 1)
    return written[:, 1:]

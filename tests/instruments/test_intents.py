"""Models of lesson 16 that learn actions: the baseline counts, and what is frozen stays."""

import torch
from torch import nn

from course_lib.data import home_commands
from course_lib.instruments import intents

COMMANDS = home_commands.split(60, 20, 0)


def test_counts_are_of_the_labelled_words_alone():
    model = intents.WithCounts([home_commands.Command("on on lamp", "{}")])
    assert model.words == ["lamp", "on"]
    assert model.counts(["on lamp on off"]).tolist() == [[1, 2]]


def test_the_baseline_learns_its_labels_and_says_what_they_say():
    model = intents.WithCounts(COMMANDS["learning"])
    before = intents.share_right(model, COMMANDS["learning"])
    intents.train(model, COMMANDS["learning"], 0.1, seed=0, steps=100)
    assert before < 0.5 < 0.9 < intents.share_right(model, COMMANDS["learning"])
    first = COMMANDS["learning"][0]
    assert intents.act(model, first.said).startswith(home_commands.action(first))


def test_what_is_frozen_is_not_trained():
    model = intents.WithCounts(COMMANDS["learning"])
    assert isinstance(model.head, nn.Linear)
    model.head.weight.requires_grad_(False)
    kept = model.head.weight.clone()
    intents.train(model, COMMANDS["learning"], 0.1, seed=0, steps=100)
    assert torch.equal(model.head.weight, kept)

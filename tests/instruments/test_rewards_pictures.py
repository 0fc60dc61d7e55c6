"""Lesson 18's pictures: what is drawn is what was measured, and so is what is read aloud."""

import torch

from course_lib.instruments.pictures import rewards as pictures


def test_drawings_are_told_in_words(said):
    pictures.judged()
    pictures.clip()
    assert "draws four answers: cold, warm, cold" in said[0]
    assert "rises with the ratio up to 1.2 and is flat above" in said[1]


def answered(kind, right):
    return [{"kind": kind, "right": [1.0] * right + [0.0] * (8 - right)}]


def test_rewarded_answers_are_told_for_each_way_and_seed(said):
    few = answered("capitals", 2) + answered("sums", 0)
    many = answered("capitals", 6) + answered("sums", 1)
    runs = [{"after": few}, {"after": many}]
    figures = dict.fromkeys(("before", "asked for one word", "four examples"), few)
    compared = {"at first": "before", "GRPO": "GRPO"}
    pictures.rewarded(figures | {"arms": {"GRPO": runs}}, compared, "found")
    assert "learned kinds, at first, pass@1: 25; learned kinds, at first, pass@8: 100" in said[0]
    assert "other kinds, GRPO, pass@1: 0, 12; other kinds, GRPO, pass@8: 0, 100" in said[0]


def test_the_curve_is_told_step_by_step_for_the_mean_of_the_seeds_and_the_live_run(said):
    seeds = [[0.0, 0.25, 0.5, 1.0], [0.5, 0.25, 1.0, 1.0]]
    runs = [{"seen": [{"reward": x} for x in run]} for run in seeds]
    pictures.curve([0.125, 0.25], {"arms": {"GRPO": runs}})
    assert "mean of the stored seeds: 25, 25, 75, 100; live run: 12, 25" in said[0]


def test_what_is_paid_for_is_told_beside_what_was_meant(said):
    pictures.hacked([0.1, 0.9], [0.8, 0.0])
    assert "names the right word: 0.80, 0.00; the reward, for shortness: 0.10, 0.90" in said[0]


def test_pairs_are_told_by_which_answer_gained_more(said):
    pictures.gains(torch.tensor([1.0, -1.0, -3.0]), torch.tensor([0.0, -2.0, -2.0]))
    assert "gained -1.0 nats on average, the others -1.3" in said[0]
    assert "In 2 pairs the right answer gained more than the other, and in 2 it lost" in said[0]

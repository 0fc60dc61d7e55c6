"""What lessons 13 and 14 say of stored figures is what they are."""

import torch

from course_lib.efficient.bigbird import PARTS, bigbird_mask, neighbours
from course_lib.instruments import results

NEEDLE = results.load("needle")["figures"]
RECALL = results.load("recall")["figures"]["runs"]


def paths(part):
    """Tell for each distance whether two layers of this pattern lead to the needle."""
    sees = bigbird_mask(neighbours(32, *PARTS[part], seed=0), 4).float()
    both = sees @ (sees + torch.eye(128)) > 0
    return both[-1, [127 - distance for distance in NEEDLE["distances"]]]


def test_a_needle_is_found_only_where_a_path_leads_and_nearly_always_with_two_exceptions():
    for part in PARTS:
        for run in NEEDLE["one"][part]:
            found, there = torch.tensor(run["found"]), paths(part)
            assert there.all() or found[~there].mean() < 0.2
            assert found[there].mean() > 0.95 or part in ("random", "global")
    random = torch.tensor([run["found"] for run in NEEDLE["one"]["random"]]).mean(0)
    assert 0.4 < random[paths("random")].mean() < 0.6
    assert all(0.5 < run["curve"][-1] < 0.97 for run in NEEDLE["one"]["global"])


def test_near_needles_help_a_global_block_that_has_a_window_beside_it():
    far = results.load("needle_controls")["figures"]["far"]
    soon = {name: [run["curve"][3] for run in NEEDLE["one"][name]] for name in PARTS}
    assert min(soon["window + global"]) > 0.9 > 0.3 > max(soon["global"])
    ends = {name: sum(run["curve"][-1] for run in runs) for name, runs in far.items()}
    assert ends["window + global"] < ends["global"]


def test_linear_attention_finds_every_needle_since_one_needle_is_one_pair():
    assert all(min(run["found"]) > 0.99 for run in NEEDLE["one"]["linear"])


def test_exact_attention_tells_short_keys_apart_and_a_sum_needs_three_features_for_four_keys():
    found = {row: [curve[-1] for curve in runs["64"]] for row, runs in RECALL.items()}
    assert all(0.3 < share < 0.36 for row in ("window", "Linformer") for share in found[row])
    exact = ("dense", "dense, 8 and 8", "dense, 8 and 4", "dense, 4 and 8")
    assert all(share > 0.98 for row in ("linear, d_k = 64", *exact) for share in found[row])
    assert all(0.6 < share < 0.65 for share in found["dense, 2 and 8"])
    assert all(share < 0.46 for share in found["linear"])
    assert all(share > 0.98 for share in found["linear, d_k = 48"])
    assert all(0.7 < share < 0.8 for share in found["linear, d_k = 32"])


def test_another_learning_rate_changes_little_of_what_is_recalled():
    rates = results.load("recall")["figures"]["other rates"]
    linear = ("linear", "linear, d_k = 32", "linear, d_k = 48", "linear, d_k = 64")
    exact = ("dense", "dense, 8 and 8", "dense, 8 and 4")
    for row in ("window", "Linformer", *linear, *exact):
        own = RECALL[row]["64"][0][-1]
        assert all(abs(share - own) < 0.03 for share in rates[row].values())
    assert all(0.94 < share <= 1 for share in rates["dense, 4 and 8"].values())
    assert 0.73 < rates["dense, 2 and 8"]["0.015"] < 0.75


def test_the_table_of_the_gpu_is_the_stored_step():
    step = results.load("attention_on_gpu")["figures"]["one step"]
    rows = [
        (round(own["operations"] / 1e9), round(own["bytes"] / 1e9, 3), 1000 * own["seconds"])
        for own in (step["full matrix"], step["compiled"])
    ]
    assert [row[0] for row in rows] == [206, 241]
    assert [round(rows[0][1], 1), rows[1][1]] == [18.6, 0.177]
    assert 13 < rows[0][2] / rows[1][2] < 15


def test_nine_chosen_blocks_of_32_do_as_well_as_all_and_cost_half_a_nat_if_they_are_longer():
    by_block = results.load("chosen_blocks")["figures"]
    means = {block: {k: sum(x) / len(x) for k, x in by_block[block].items()} for block in by_block}
    assert means["4"]["chosen"] < means["4"]["all"]
    assert 0.4 < means["8"]["chosen"] - means["8"]["all"] < 0.7
    assert all(min(by["random"]) > max(by["chosen"]) + 4 for by in by_block.values())

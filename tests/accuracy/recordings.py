# SPDX-License-Identifier: Apache-2.0
"""The recordings of an H200 that the project holds, in the sets by which they are judged, and how to judge them."""
import concurrent.futures
import json
import pathlib

from scoring import books_of, score

SEVEN = ("two_staggered", "spin_vs_fp32", "three_mixed", "churn", "short_jobs", "holders", "power_capped")
FOLDERS = ("h200", "h200_exact", "h200_real", "h200_validation", "h200_long")
# Sets in which processes share the GPU in turns and are not always together.
SHARED = ("seven", "loops", "real", "validation", "a", "b", "c", "d", "e", "minutes")
# Those of them that were recorded with the context-switch trace.
TRACED = ("loops", "real", "a", "b", "c", "d", "e", "minutes")
# Processes that wait busily for seconds and then work for seconds, in turns, beside others.
TURNING = ("d_poll_crowd", "d_poll_train", "d_train_poll", "d_two_turn", "e_two_wait", "e_wait_crowd", "e_wait_first",
           "e_wait_render", "e_work_wait", "f_turns", "g_turns", "h_turns", "h_two_turn", "i_turns")
THREADS = 2


def set_of(trace):
    """Name of the set that a recording belongs to."""
    name, folder = trace.name.removesuffix(".jsonl.gz"), trace.parent.name
    if name.startswith("solo_"):
        return "solo"
    if "mps" in name:
        return "mps"
    if name.endswith("never_alone"):
        return "never_alone"
    if name in TURNING:
        return "turning"
    if folder == "h200_long":
        return "minutes"
    if folder == "h200_real":
        return name[0]
    if folder == "h200_exact":
        return name.partition("_")[0]
    return "validation" if folder == "h200_validation" else "seven"


def recordings(data):
    """{set: [trace, ...]}"""
    sets = {}
    for folder in FOLDERS:
        for trace in sorted((pathlib.Path(data) / folder).glob("*.jsonl.gz")):
            sets.setdefault(set_of(trace), []).append(trace)
    return sets


def judge_one(command, trace):
    truth = trace.with_name(trace.name.removesuffix(".jsonl.gz") + ".truth.json")
    return score(json.loads(truth.read_text()), books_of(command))


def judge(command_for, sets):
    """{set: {name: score}}; command_for(trace) is the command that prints the books."""
    jobs = [(name, trace) for name, traces in sets.items() for trace in traces]
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        scores = list(pool.map(lambda job: judge_one(command_for(job[1]), job[1]), jobs))
    results = {}
    for (name, trace), result in zip(jobs, scores):
        results.setdefault(name, {})[trace.name.removesuffix(".jsonl.gz")] = result
    return results


def percents(results):
    return [r["misattributed_percent"] for r in results.values()]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def within(results):
    """(process totals within two standard errors, all), over every set, of recordings with something to divide."""
    scores = [r for name, of_set in results.items() if name != "solo" for r in of_set.values()]
    return sum(r["within"] for r in scores), sum(r["of"] for r in scores)

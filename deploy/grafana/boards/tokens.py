# SPDX-License-Identifier: Apache-2.0
"""What a token of an inference server costs: energy, money and CO2e, by model, namespace and pod."""

from grafana import lines, stat, table
from queries import CO2E, COST, PRICE, board, by, in_range, line_link, recorded, row_link

RULES = "From tokens.rules.yml; price, CO2e and PUE are in parameters.rules.yml."
WHAT = "Energy of the servers' pods for each token, prompt and generated together."
LINE = "cluster, namespace, pod, model"
CHOSEN = ("namespace", "model")


def tokens(**kind):
    return recorded("pod_model:gpu_ledger_tokens:rate5m", *CHOSEN, **kind)


def watts(what="power_watts"):
    return recorded(f"pod_model:gpu_ledger_{what}:rate5m", *CHOSEN, "idle")


def per_token(labels, spent, made=None):
    """Of the time chosen: watts over tokens a second, both added up first."""
    return f"{by(labels, in_range(spent))} / ({by(labels, in_range(made or tokens()))} > 0)"


def per_million(labels, price):
    """Joules per token are megajoules per million tokens."""
    spent = by(labels, f"{by(LINE, in_range(watts()))} {price}")
    return f"{spent} / ({by(labels, in_range(tokens()))} > 0) / 3.6"


def totals():
    made = lambda **kind: f"sum({in_range(tokens(**kind))}) * 60"
    total = lambda query: f"sum({in_range(query)}) / (sum({in_range(tokens())}) > 0)"
    priced = lambda price: f"sum({by(LINE, in_range(watts()))} {price}) / (sum({in_range(tokens())}) > 0) / 3.6"
    return "All of it, in the time chosen", [
        stat("Tokens read and generated", f"Of prompts and generated, by the servers' own counters. {RULES}", made(), "short"),
        stat("Tokens generated", "By the servers' own counters.", made(kind="generation"), "short"),
        stat("Joules per token", f"{WHAT} {RULES}", total(watts())),
        stat("Standard error of joules per token", "At the most: as if the errors of all pods had the same sign.",
             total(watts("power_error_watts"))),
        stat(f"{COST} of a million tokens", f"With PUE, at the price of now. {RULES}", priced(PRICE)),
        stat("CO2e of a million tokens", f"With PUE and the CO2e per kWh of now. {RULES}", priced(CO2E), "massg"),
    ]


def over_time():
    each = lambda labels, made: f"{by(labels, watts())} / ({by(labels, made)} > 0)"
    price = by("namespace", f"{by(LINE, watts())} {PRICE}")
    to_team = [line_link("tokens", "team", "namespace")]
    return "Over time", [
        lines("Joules per token by model", f"{WHAT} Mean over five minutes.", (each("model", tokens()), "{{model}}")),
        lines("Joules per generated token by model", "All energy of the servers' pods, that of prompts too, for each "
              "generated token.", (each("model", tokens(kind="generation")), "{{model}}")),
        lines("Tokens per second by model", "Of prompts, and generated.", (by("model, kind", tokens()), "{{model}} {{kind}}")),
        lines(f"{COST} of a million tokens by namespace", "With PUE, at the price of now.",
              (f"{price} / ({by('namespace', tokens())} > 0) / 3.6", "{{namespace}}"), links=to_team),
    ]


def pods():
    return "Pods", [
        table("Servers by pod and model", "In the time chosen; cost at the price of now. A pod's models share its energy by their "
              "tokens. Click on a pod to open it.",
              ("Tokens", "short", f"{by(LINE, in_range(tokens()))} * 60"),
              ("kWh", "kwatth", f"{by(LINE, in_range(watts()))} / 60000"),
              ("Joules per token", "none", per_token(LINE, watts())),
              ("Standard error", "none", per_token(LINE, watts("power_error_watts"))),
              ("Joules per generated token", "none", per_token(LINE, watts(), tokens(kind="generation"))),
              (f"{COST} of a million", "none", per_million(LINE, PRICE)),
              links={"namespace": row_link("tokens", "team", "namespace"),
                     "pod": row_link("tokens", "pod", "namespace", "pod")}),
    ]


def make():
    return board("tokens", "Energy, cost and CO2e per token of inference servers. Idle says whether energy that belongs to no "
                 "process is shared out. " + RULES, "24h", totals(), over_time(), pods())

# SPDX-License-Identifier: Apache-2.0
"""Who works when, for validate.py: one list of scenarios a set (VALIDATION_SET)."""
from typing import NamedTuple


class Job(NamedTuple):
    """Jobs with the same `at` begin to work at one moment."""

    kind: str
    duty: str
    at: float
    until: float


class Scenario(NamedTuple):
    name: str
    jobs: list
    mps: bool = False

    def seconds(self):
        return max(job.until for job in self.jobs)


def short_jobs(first, every, kinds):
    """Jobs of one second, one after the other."""
    return [Job(kind, "steady", first + every * i, first + every * i + 1) for i, kind in enumerate(kinds.split())]


SHORT_KINDS = ("conv", "gather", "fp32", "attention", "matvec", "gelu", "conv", "fp32")
SCENARIOS_1 = (
    Scenario("v_conv_gather", [Job("conv", "steady", 2, 24), Job("gather", "steady", 12, 36)]),
    Scenario("v_three_kinds", [Job("gelu", "steady", 2, 37), Job("fp32", "steady", 9, 26), Job("attention", "burst:3", 17, 35)]),
    Scenario("v_short_beside_train", [Job("train", "steady", 2, 38)]
             + [Job(kind, "steady", 7 + 3.5 * i, 9.5 + 3.5 * i) for i, kind in enumerate(SHORT_KINDS)]),
    Scenario("v_duty_30", [Job("attention", "steady", 2, 34), Job("gather", "cycle:0.3:1.0", 10, 37)]),
    Scenario("v_never_alone", [Job("attention", "steady", 2, 34), Job("matvec", "steady", 2, 34)]),
    Scenario("v_holders", [Job("hold", "steady", 2, 37), Job("hold", "steady", 3, 36), Job("copy", "steady", 5, 32),
                           Job("spin", "steady", 12, 28), Job("matvec", "burst:7", 18, 36)]),
    Scenario("v_mps", [Job("fp32", "steady", 2, 28), Job("matvec", "cycle:1:2", 9, 36), Job("train", "steady", 16, 37)], mps=True),
    Scenario("v_equal_kinds", [Job("conv", "steady", 2, 24), Job("conv", "steady", 11, 36)]),
)
# Other companies of the same kinds, for a look with fresh eyes after a change: VALIDATION_SET=2.
SCENARIOS_2 = (
    Scenario("w_gelu_attention", [Job("gelu", "steady", 2, 26), Job("attention", "steady", 14, 36)]),
    Scenario("w_train_matvec", [Job("train", "steady", 2, 37), Job("matvec", "burst:5", 9, 30), Job("spin", "steady", 20, 35)]),
    Scenario("w_short_beside_matvec", [Job("matvec", "steady", 2, 38)]
             + [Job(kind, "steady", 8 + 3.5 * i, 10.5 + 3.5 * i) for i, kind in enumerate(SHORT_KINDS[:7])]),
    Scenario("w_spin_gather", [Job("spin", "steady", 2, 37), Job("gather", "cycle:0.5:2.0", 10, 33)]),
    Scenario("w_never_alone", [Job("train", "steady", 2, 34), Job("spin", "steady", 2, 34)]),
    Scenario("w_equal_fp32", [Job("fp32", "steady", 2, 37), Job("fp32", "steady", 12, 30)]),
    Scenario("w_mps", [Job("gelu", "cycle:0.6:1.5", 2, 30), Job("spin", "steady", 9, 36), Job("conv", "burst:4", 16, 37)], mps=True),
)
# And others again: longer, with more neighbours, and one that comes back (VALIDATION_SET=3).
SCENARIOS_3 = (
    Scenario("x_conv_train", [Job("conv", "steady", 2, 40), Job("train", "cycle:0.4:1.6", 8, 44)]),
    Scenario("x_four_kinds", [Job("matvec", "steady", 2, 46), Job("gelu", "steady", 8, 30), Job("fp32", "burst:4", 14, 40),
                              Job("gather", "steady", 24, 44)]),
    Scenario("x_comes_back", [Job("attention", "steady", 2, 40), Job("spin", "steady", 9, 17), Job("spin", "steady", 25, 34)]),
    Scenario("x_short_beside_gelu", [Job("gelu", "steady", 2, 38)]
             + [Job(kind, "steady", 6 + 3.8 * i, 8.6 + 3.8 * i) for i, kind in enumerate(reversed(SHORT_KINDS))]),
    Scenario("x_equal_attention", [Job("attention", "steady", 2, 38), Job("attention", "steady", 10, 30)]),
    Scenario("x_mps", [Job("matvec", "steady", 2, 36), Job("fp32", "burst:3", 9, 38), Job("gather", "steady", 18, 34)], mps=True),
    Scenario("x_never_alone", [Job("fp32", "steady", 2, 30), Job("gather", "steady", 2, 30)]),
)
# As people share a GPU: serving beside training, two newcomers at once, one after the other (VALIDATION_SET=4).
SCENARIOS_4 = (
    Scenario("y_train_serve", [Job("train", "steady", 2, 42), Job("matvec", "cycle:0.4:1.0", 8, 42)]),
    Scenario("y_two_newcomers", [Job("gelu", "steady", 2, 44), Job("conv", "steady", 8, 44), Job("attention", "steady", 11, 34)]),
    Scenario("y_handover", [Job("fp32", "steady", 2, 20), Job("gather", "steady", 11, 33), Job("conv", "steady", 26, 44)]),
    Scenario("y_bursts", [Job("attention", "burst:5", 2, 42), Job("train", "steady", 8, 40)]),
    Scenario("y_short_beside_conv", [Job("conv", "steady", 2, 38)]
             + [Job(kind, "steady", 6 + 4.2 * i, 8.8 + 4.2 * i)
                for i, kind in enumerate(("matvec", "attention", "gelu", "gather", "fp32", "gelu", "matvec"))]),
    Scenario("y_mps", [Job("train", "steady", 2, 32), Job("gather", "cycle:0.5:1.5", 8, 38), Job("attention", "steady", 17, 38)],
             mps=True),
    Scenario("y_never_alone", [Job("conv", "steady", 2, 30), Job("gelu", "steady", 2, 30)]),
)
# The other way round: the uneven ones are there first (VALIDATION_SET=5).
SCENARIOS_5 = (
    Scenario("z_serve_conv", [Job("matvec", "cycle:0.5:1.2", 2, 37), Job("conv", "steady", 8, 34)]),
    Scenario("z_burst_newcomer", [Job("fp32", "steady", 2, 37), Job("attention", "burst:4", 8, 35)]),
    Scenario("z_three", [Job("train", "steady", 2, 38), Job("gather", "steady", 11, 38), Job("gelu", "steady", 17, 33)]),
    Scenario("z_short_beside_attention", [Job("attention", "steady", 2, 35)]
             + [Job(kind, "steady", 6 + 4.6 * i, 8.9 + 4.6 * i)
                for i, kind in enumerate(("gelu", "matvec", "conv", "fp32", "gather", "matvec"))]),
    Scenario("z_mps", [Job("fp32", "steady", 2, 28), Job("conv", "steady", 8, 36), Job("matvec", "cycle:0.6:1.4", 17, 36)],
             mps=True),
)
# Real models in their usual company: crowds, pairs, replicas, jobs of a second (VALIDATION_SET=6; models_a.py).
SCENARIOS_6 = (
    Scenario("a_crowd", [Job("bert", "steady", 2, 42), Job("vit", "requests:61:15:8", 5, 40), Job("graph", "steady", 9, 31),
                         Job("stencil", "steady", 13, 36), Job("recsys", "steady", 17, 43), Job("boost", "steady", 22, 34),
                         Job("video", "steady", 26, 40)]),
    Scenario("a_pair", [Job("gpt", "steady", 2, 32), Job("graph", "steady", 2, 32)]),
    Scenario("a_replicas", [Job("gpt", "requests:62:4:48", 2, 38), Job("gpt", "requests:63:4:48", 3, 36),
                            Job("gpt", "requests:64:4:48", 4, 33), Job("gpt", "requests:65:4:48", 20, 38)]),
    Scenario("a_short", [Job("gpt", "steady", 2, 41)]
             + short_jobs(6, 2.4, "mlp mlp boost mlp graph mlp mlp boost mlp mlp graph mlp boost mlp")),
    Scenario("a_mps", [Job("gpt", "steady", 2, 28), Job("recsys", "cycle:0.7:1.6", 9, 35), Job("bert", "steady", 16, 36)],
             mps=True),
    Scenario("a_serve_train", [Job("bert", "steady", 2, 36), Job("vit", "requests:66:18:12", 8, 36)]),
    Scenario("a_handover", [Job("stencil", "steady", 2, 15), Job("video", "steady", 12, 25), Job("recsys", "steady", 22, 35)]),
    Scenario("a_holders", [Job("hold", "steady", 2, 34), Job("hold", "steady", 3, 33), Job("vit", "burst:67", 5, 34),
                           Job("boost", "cycle:0.5:1.7", 11, 29)]),
)
# Other models of other shapes, more of them at once (VALIDATION_SET=7; models_b.py).
SCENARIOS_7 = (
    Scenario("b_crowd", [Job("moe", "steady", 2, 42), Job("chat", "requests:71:4:64", 4, 43), Job("lstm", "steady", 8, 30),
                         Job("spectral", "steady", 12, 35), Job("denoiser", "steady", 16, 40), Job("join", "steady", 20, 32),
                         Job("points", "steady", 24, 43), Job("mobile", "steady", 28, 41)]),
    Scenario("b_pairs", [Job("denoiser", "steady", 2, 37), Job("lstm", "steady", 2, 37),
                         Job("spectral", "steady", 13, 28), Job("chat", "steady", 13, 28)]),
    Scenario("b_replicas", [Job("speech", "steady", 2, 38), Job("speech", "steady", 2, 35), Job("speech", "steady", 4, 38),
                            Job("speech", "steady", 6, 30), Job("mobile", "steady", 13, 33), Job("speech", "steady", 21, 38)]),
    Scenario("b_short", [Job("chat", "steady", 2, 41)]
             + short_jobs(5, 2.2, "kmeans kmeans render kmeans points kmeans kmeans render "
                                  "kmeans kmeans points kmeans render kmeans points kmeans")),
    Scenario("b_mps", [Job("denoiser", "steady", 2, 28), Job("join", "cycle:0.6:1.5", 9, 35), Job("mobile", "steady", 16, 36)],
             mps=True),
    Scenario("b_serve_train", [Job("moe", "steady", 2, 36), Job("speech", "requests:72:12:6", 8, 36)]),
    Scenario("b_handover", [Job("render", "steady", 2, 15), Job("lstm", "steady", 12, 25), Job("moe", "steady", 22, 35)]),
    Scenario("b_holders", [Job("hold", "steady", 2, 34), Job("hold", "steady", 3, 33), Job("points", "burst:73", 5, 34),
                           Job("join", "requests:74:3:10", 11, 29)]),
)
# Models of both sets in other company, and processes that change what they do (VALIDATION_SET=8).
SCENARIOS_8 = (
    Scenario("c_crowd", [Job("lstm", "steady", 2, 38), Job("vit", "requests:81:14:9", 4, 36), Job("join", "steady", 8, 28),
                         Job("gpt", "steady", 12, 34), Job("points", "steady", 16, 38), Job("stencil", "steady", 21, 32)]),
    Scenario("c_turns", [Job("recsys+bert", "turns:8", 2, 36), Job("chat", "steady", 9, 32)]),
    Scenario("c_pair", [Job("chat", "requests:82:5:48", 2, 30), Job("lstm", "steady", 2, 30)]),
    Scenario("c_replicas", [Job("vit", "requests:83:10:12", 2, 34), Job("vit", "requests:84:10:12", 3, 34),
                            Job("vit", "requests:85:10:12", 4, 30), Job("bert", "steady", 12, 28),
                            Job("vit", "requests:86:10:12", 18, 34)]),
    Scenario("c_short", [Job("moe", "steady", 2, 37)]
             + short_jobs(5, 2.2, "mlp kmeans mlp points mlp kmeans kmeans mlp points mlp kmeans mlp points mlp")),
    Scenario("c_mps", [Job("moe", "steady", 2, 26), Job("points", "cycle:0.7:1.6", 8, 32), Job("chat", "steady", 15, 34)],
             mps=True),
    Scenario("c_turns_crowd", [Job("bert", "steady", 2, 36), Job("join+gpt", "turns:7", 6, 36), Job("vit", "requests:87:9:10", 13, 33)]),
    Scenario("c_services", [Job("hold", "steady", 2, 34), Job("gpt", "requests:88:3:40", 3, 34),
                            Job("chat", "requests:89:3:40", 7, 34), Job("recsys", "burst:90", 12, 30), Job("hold", "steady", 4, 33)]),
    Scenario("c_mps_requests", [Job("bert", "steady", 2, 30), Job("vit", "requests:91:12:8", 8, 32), Job("stencil", "steady", 16, 30)],
             mps=True),
)
# Processes that wait busily and then work, or work and then wait, beside others: a second of the one costs many times a
# second of the other. And models in company that none of them had before (VALIDATION_SET=9).
SCENARIOS_9 = (
    Scenario("d_poll_train", [Job("spin+bert", "turns:10", 2, 38), Job("gpt", "steady", 7, 36)]),
    Scenario("d_train_poll", [Job("moe+spin", "turns:9", 2, 36), Job("vit", "requests:92:12:8", 6, 34)]),
    Scenario("d_two_turn", [Job("spin+lstm", "turns:8", 2, 36), Job("denoiser+spin", "turns:11", 5, 36)]),
    Scenario("d_poll_crowd", [Job("recsys", "steady", 2, 36), Job("spin+stencil", "turns:7", 5, 34),
                              Job("chat", "requests:93:4:48", 9, 36), Job("points", "steady", 14, 30)]),
    Scenario("d_pair", [Job("denoiser", "requests:94:6:10", 2, 30), Job("join", "steady", 2, 30)]),
    Scenario("d_short", [Job("speech", "steady", 2, 36)]
             + short_jobs(5, 2.3, "gpt mlp lstm gpt kmeans mlp gpt lstm mlp gpt kmeans lstm")),
    Scenario("d_services", [Job("chat", "requests:95:4:40", 2, 34), Job("speech", "requests:96:9:8", 4, 34),
                            Job("moe", "burst:97", 10, 30), Job("hold", "steady", 3, 33)]),
    Scenario("d_mps", [Job("vit", "steady", 2, 28), Job("lstm", "requests:98:10:8", 8, 32), Job("recsys", "steady", 15, 32)],
             mps=True),
)
# Others that wait busily and work in turns, beside models that no such process had beside it before (VALIDATION_SET=10).
SCENARIOS_10 = (
    Scenario("e_wait_render", [Job("render", "steady", 2, 36), Job("spin+speech", "turns:9", 6, 36)]),
    Scenario("e_wait_first", [Job("spin+moe", "turns:6", 2, 34), Job("mobile", "steady", 8, 36)]),
    Scenario("e_work_wait", [Job("gpt+spin", "turns:12", 2, 38), Job("spectral", "steady", 9, 34)]),
    Scenario("e_two_wait", [Job("spin+vit", "turns:7", 2, 36), Job("spin+denoiser", "turns:9", 4, 36)]),
    Scenario("e_wait_crowd", [Job("join", "steady", 2, 36), Job("spin+bert", "turns:8", 5, 34),
                              Job("lstm", "requests:101:10:8", 9, 36), Job("render", "steady", 14, 30)]),
    Scenario("e_pair", [Job("speech", "requests:102:8:9", 2, 28), Job("spectral", "steady", 2, 28)]),
    Scenario("e_turns", [Job("vit+join", "turns:8", 2, 34), Job("mobile", "steady", 7, 34)]),
)
# Minutes in which hardly anybody is alone: three that begin together (VALIDATION_SET=11), services beside training and one that
# waits busily and works in turns (12), a crowd with two replicas (13), MPS (14).
SCENARIOS_11 = (
    Scenario("f_never_alone", [Job("moe", "steady", 2, 400), Job("spin", "steady", 2, 400), Job("gpt", "steady", 2, 400)]),
)
SCENARIOS_12 = (
    Scenario("f_services", [Job("bert", "steady", 2, 188), Job("vit", "requests:111:12:9", 2, 188),
                            Job("chat", "requests:112:4:48", 3, 188), Job("hold", "steady", 3, 188)]),
    Scenario("f_turns", [Job("denoiser", "steady", 2, 188), Job("spin+lstm", "turns:20", 2, 188), Job("join", "requests:113:5:8", 4, 188)]),
)
SCENARIOS_13 = (
    Scenario("f_crowd", [Job("recsys", "steady", 2, 380), Job("stencil", "steady", 2, 380), Job("speech", "requests:114:9:8", 2, 380),
                         Job("gpt", "requests:115:4:40", 3, 380), Job("gpt", "requests:116:4:40", 3, 380),
                         Job("mobile", "burst:117", 4, 380)]),
)
SCENARIOS_14 = (
    Scenario("f_mps", [Job("gpt", "steady", 2, 180), Job("vit", "requests:118:12:9", 2, 180), Job("moe", "steady", 40, 180)], mps=True),
)
# Minutes again, in other company, for a look with fresh eyes after a change of the model (VALIDATION_SET=15).
SCENARIOS_15 = (
    Scenario("g_never_alone", [Job("bert", "steady", 2, 170), Job("video", "steady", 2, 170), Job("spin", "steady", 2, 170)]),
    Scenario("g_turns", [Job("render", "steady", 2, 120), Job("spin+gpt", "turns:14", 2, 120), Job("mobile", "steady", 5, 120)]),
    Scenario("g_services", [Job("recsys", "steady", 2, 110), Job("speech", "requests:121:9:8", 2, 110),
                            Job("lstm", "requests:122:10:8", 3, 110)]),
)
# Minutes of models that the sets 11 to 15 did not have, and in other company (VALIDATION_SET=16): three together, one that waits
# busily and works in turns, services. And (17) a crowd, MPS, a pair of which one comes late and one leaves early, two that turn.
SCENARIOS_16 = (
    Scenario("h_never_alone", [Job("attention", "steady", 2, 150), Job("graph", "steady", 2, 150), Job("points", "steady", 2, 150)]),
    Scenario("h_turns", [Job("kmeans", "steady", 2, 120), Job("spin+train", "turns:10", 2, 120), Job("boost", "steady", 4, 120)]),
    Scenario("h_services", [Job("mlp", "steady", 2, 100), Job("attention", "requests:161:12:100", 2, 100),
                            Job("denoiser", "requests:162:6:10", 3, 100)]),
)
SCENARIOS_17 = (
    Scenario("h_crowd", [Job("spectral", "steady", 2, 116), Job("vit", "requests:171:10:9", 2, 116), Job("conv", "burst:172", 2, 116),
                         Job("gather", "cycle:0.6:2.0", 3, 116), Job("mlp", "steady", 3, 116), Job("hold", "steady", 4, 116)]),
    Scenario("h_mps", [Job("matvec", "steady", 2, 90), Job("conv", "cycle:0.7:1.8", 2, 90), Job("mlp", "steady", 25, 90)], mps=True),
    Scenario("h_pair", [Job("vit", "steady", 2, 71), Job("gather", "steady", 17, 86)]),
    Scenario("h_two_turn", [Job("spin+conv", "turns:9", 2, 98), Job("spectral+gather", "turns:13", 2, 98), Job("matvec", "steady", 3, 98)]),
)
# The same kinds of company once more, with other models, to be looked at after a model was chosen (VALIDATION_SET=18 and 19).
SCENARIOS_18 = (
    Scenario("i_never_alone", [Job("video", "steady", 2, 150), Job("spin", "steady", 2, 150), Job("kmeans", "steady", 2, 150)]),
    Scenario("i_turns", [Job("render", "steady", 2, 120), Job("spin+moe", "turns:12", 2, 120), Job("vit", "requests:181:9:10", 2, 120)]),
    Scenario("i_services", [Job("gpt", "steady", 2, 100), Job("speech", "requests:182:8:9", 2, 100),
                            Job("recsys", "requests:183:10:9", 3, 100)]),
)
SCENARIOS_19 = (
    Scenario("j_crowd", [Job("bert", "steady", 2, 116), Job("chat", "requests:191:10:9", 2, 116), Job("stencil", "burst:192", 2, 116),
                         Job("join", "cycle:0.6:2.0", 3, 116), Job("lstm", "steady", 3, 116), Job("hold", "steady", 4, 116)]),
    Scenario("j_mps", [Job("gelu", "steady", 2, 90), Job("attention", "cycle:0.8:2.1", 2, 90), Job("boost", "steady", 25, 90)], mps=True),
    Scenario("j_together", [Job("denoiser", "steady", 2, 75), Job("mobile", "steady", 2, 75)]),
    Scenario("j_two_turn", [Job("spin+graph", "turns:8", 2, 98), Job("points+fp32", "turns:11", 2, 98), Job("conv", "steady", 3, 98)]),
)
# And once more, with models in company that they never had (VALIDATION_SET=20 and 21).
SCENARIOS_20 = (
    Scenario("k_never_alone", [Job("lstm", "steady", 2, 150), Job("stencil", "steady", 2, 150), Job("spin", "steady", 2, 150)]),
    Scenario("k_turns", [Job("bert", "steady", 2, 120), Job("spin+denoiser", "turns:13", 2, 120), Job("chat", "requests:201:9:10", 3, 120)]),
    Scenario("k_services", [Job("video", "steady", 2, 100), Job("mobile", "requests:202:8:9", 2, 100),
                            Job("gpt", "requests:203:10:9", 3, 100)]),
)
SCENARIOS_21 = (
    Scenario("k_crowd", [Job("mlp", "steady", 2, 110), Job("moe", "requests:211:10:9", 2, 110), Job("render", "burst:212", 2, 110),
                         Job("graph", "cycle:0.6:2.0", 3, 110), Job("recsys", "steady", 3, 110), Job("hold", "steady", 4, 110)]),
    Scenario("k_two_turn", [Job("spin+train", "turns:9", 2, 98), Job("kmeans+speech", "turns:12", 2, 98), Job("points", "steady", 3, 98)]),
    Scenario("k_together", [Job("vit", "steady", 2, 75), Job("spectral", "steady", 2, 75)]),
    Scenario("k_mps", [Job("attention", "steady", 2, 80), Job("bert", "cycle:0.8:2.1", 2, 80), Job("gelu", "steady", 22, 80)], mps=True),
)
SETS = {"1": SCENARIOS_1, "2": SCENARIOS_2, "3": SCENARIOS_3, "4": SCENARIOS_4, "5": SCENARIOS_5, "6": SCENARIOS_6,
        "7": SCENARIOS_7, "8": SCENARIOS_8, "9": SCENARIOS_9, "10": SCENARIOS_10,
        "11": SCENARIOS_11, "12": SCENARIOS_12, "13": SCENARIOS_13, "14": SCENARIOS_14,
        "15": SCENARIOS_15, "16": SCENARIOS_16, "17": SCENARIOS_17, "18": SCENARIOS_18, "19": SCENARIOS_19,
        "20": SCENARIOS_20, "21": SCENARIOS_21}


def working_kinds(scenarios):
    """In the order of their coming."""
    kinds = (kind for scenario in scenarios for job in scenario.jobs for kind in job.kind.split("+"))
    return [kind for kind in dict.fromkeys(kinds) if kind != "hold"]


def with_kinds(scenario, kinds):
    """The same without the jobs of other kinds; None where no two that work are left."""
    jobs = [job for job in scenario.jobs if set(job.kind.split("+")) <= set(kinds)]
    return scenario._replace(jobs=jobs) if sum(job.kind != "hold" for job in jobs) >= 2 else None

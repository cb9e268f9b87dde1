#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures gpu-ledger on a real GPU. See README.md here."""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PORT = 19400
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def scrape():
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    samples = []
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match:
            samples.append((match[1], dict(LABEL.findall(match[2] or "")), match[3]))
    return samples


def micro(text):
    """Joules printed as decimals, as integer microjoules: no rounding on our side."""
    whole, _, fraction = text.partition(".")
    return int(whole) * 10**6 + int((fraction + "000000")[:6])


def imbalance(samples):
    """Per GPU: device energy - owners - unattributed, in microjoules."""
    books = {}
    for name, labels, value in samples:
        gpu = labels.get("gpu")
        if name == "gpu_ledger_device_energy_joules_total":
            books[gpu] = books.get(gpu, 0) + micro(value)
        elif name == "gpu_ledger_device_unattributed_joules_total" or re.fullmatch(
            r"gpu_ledger_(pod|slurm_job|container|host|unknown_owner)_energy_joules_total|gpu_ledger_closed_energy_joules", name
        ):
            books[gpu] = books.get(gpu, 0) - micro(value)
    return books


def value(samples, name, **labels):
    return sum(float(v) for n, l, v in samples if n == name and all(l.get(k) == w for k, w in labels.items()))


def start_ledger(program, *flags):
    process = subprocess.Popen(
        [program, "--backend=nvml", f"--listen-address=127.0.0.1:{PORT}", *flags], stderr=subprocess.PIPE, text=True)
    for _ in range(100):
        try:
            scrape()
            return process
        except OSError:
            if process.poll() is not None:
                sys.exit("gpu-ledger did not start: " + process.stderr.read())
            time.sleep(0.1)
    sys.exit("gpu-ledger does not answer")


def stop(process):
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=5)
    return time.monotonic() - began


def load(kind, seconds, duty=1.0):
    process = subprocess.Popen([sys.executable, os.path.join(HERE, "load.py"), kind, str(seconds), str(duty)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "ready"
    return process


def units_per_second(process):
    words = process.communicate(timeout=120)[0].split()
    return float(words[1]) / float(words[3])


def changing_load(program):
    """A minute of processes that come, share and go, a scrape every half second."""
    ledger = start_ledger(program)
    scrapes, worst, loads = 0, 0, []
    plan = {2: ("hold", 50, 1), 4: ("gemm", 18, 1), 12: ("copy", 22, 1), 26: ("spin", 12, 1), 34: ("gemm", 14, 0.4),
            44: ("gemm", 3, 1), 50: ("copy", 3, 1)}
    began, before, fell = time.monotonic(), {}, 0
    while time.monotonic() - began < 62:
        second = int(time.monotonic() - began)
        if second in plan:
            kind, seconds, duty = plan.pop(second)
            # Not waiting for "ready" here: the scrapes go on.
            loads.append(subprocess.Popen(
                [sys.executable, os.path.join(HERE, "load.py"), kind, str(seconds), str(duty)],
                stdout=subprocess.DEVNULL))
        samples = scrape()
        scrapes += 1
        worst = max([worst] + [abs(v) for v in imbalance(samples).values()])
        for name, labels, text in samples:
            if name.endswith("_joules_total"):
                key = (name, tuple(sorted(labels.items())))
                fell += micro(text) < before.get(key, 0)
                before[key] = micro(text)
        time.sleep(0.5)
    last = scrape()
    processes = sorted({l["pid"] for n, l, _ in last if n == "my_gpu_process_energy_joules_total"})
    result = {
        "scrapes": scrapes, "worst_imbalance_microjoules": worst, "counters_fell": fell,
        "device_joules": value(last, "gpu_ledger_device_energy_joules_total"),
        "host_joules": value(last, "gpu_ledger_host_energy_joules_total"),
        "unattributed": {l["reason"]: float(v) for n, l, v in last
                         if n == "gpu_ledger_device_unattributed_joules_total"},
        "processes": len(processes),
        "sm_ratio_seen": [float(v) for n, _, v in last if n == "my_gpu_process_sm_utilization_ratio"],
        "source_errors": {l.get("code"): float(v) for n, l, v in last if n == "gpu_ledger_source_errors_total"},
    }
    for process in loads:
        process.wait(timeout=60)
    result["stop_seconds"] = stop(ledger)
    return result


def cost(program, seconds, under_load):
    """CPU time of the program over some seconds, and how much of its cycles the driver takes."""
    ledger = start_ledger(program, "--collector.driver-calls")
    work = load("gemm", seconds + 8) if under_load else None
    time.sleep(2)
    first, began = scrape(), time.monotonic()
    ticks = os.times()
    stat = lambda: [int(x) for x in open(f"/proc/{ledger.pid}/stat").read().rsplit(")", 1)[1].split()[11:13]]
    user0, system0 = stat()
    time.sleep(seconds)
    user1, system1 = stat()
    last, elapsed = scrape(), time.monotonic() - began
    del ticks
    hertz = os.sysconf("SC_CLK_TCK")
    driver = (value(last, "gpu_ledger_driver_call_duration_seconds_sum")
              - value(first, "gpu_ledger_driver_call_duration_seconds_sum"))
    cycles = value(last, "gpu_ledger_sample_duration_seconds_sum") - value(first, "gpu_ledger_sample_duration_seconds_sum")
    calls = {l["call"]: round(1000 * (float(v) - value(first, "gpu_ledger_driver_call_duration_seconds_sum", call=l["call"])) / elapsed, 3)
             for n, l, v in last if n == "gpu_ledger_driver_call_duration_seconds_sum"}
    result = {
        "seconds": elapsed, "cpu_percent_of_a_core": 100 * (user1 - user0 + system1 - system0) / hertz / elapsed,
        "cpu_user_percent": 100 * (user1 - user0) / hertz / elapsed,
        "cpu_system_percent": 100 * (system1 - system0) / hertz / elapsed,
        "cycle_wall_percent": 100 * cycles / elapsed, "driver_wall_percent": 100 * driver / elapsed,
        "driver_ms_per_second_by_call": {k: v for k, v in sorted(calls.items(), key=lambda i: -i[1]) if v > 0},
        "resident_bytes": value(last, "process_resident_memory_bytes"),
    }
    stop(ledger)
    if work:
        work.communicate(timeout=60)
    return result


def gemm_impact(program, repeats, seconds):
    """Throughput of a matrix product without and with the program, in turns, so that heat hits both alike."""
    without, with_ledger = [], []
    warm = load("gemm", 10)
    warm.communicate(timeout=60)
    for _ in range(repeats):
        without.append(units_per_second(load("gemm", seconds)))
        ledger = start_ledger(program)
        with_ledger.append(units_per_second(load("gemm", seconds)))
        stop(ledger)
    loss = [100 * (1 - w / o) for o, w in zip(without, with_ledger)]
    return {"without": without, "with": with_ledger, "loss_percent_each": loss,
            "loss_percent_mean": statistics.mean(loss),
            "loss_percent_standard_error": statistics.stdev(loss) / len(loss) ** 0.5}


def main():
    program, out = sys.argv[1], sys.argv[2]
    results = {"date": time.strftime("%Y-%m-%d")}
    for name, measure in (("changing_load", lambda: changing_load(program)),
                          ("cost_idle", lambda: cost(program, 30, False)),
                          ("cost_under_gemm", lambda: cost(program, 30, True)),
                          ("gemm_impact", lambda: gemm_impact(program, 6, 10))):
        results[name] = measure()
        print(name, json.dumps(results[name], indent=1), flush=True)
        json.dump(results, open(out, "w"), indent=1)
    balanced = results["changing_load"]["worst_imbalance_microjoules"] == 0 and not results["changing_load"]["counters_fell"]
    print("books balance in every scrape" if balanced else "THE BOOKS DO NOT BALANCE")
    return 0 if balanced else 1


if __name__ == "__main__":
    sys.exit(main())

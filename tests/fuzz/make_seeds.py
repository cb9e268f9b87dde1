#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds that are not text, or that come from tables and expected files of other tests.

  tests/fuzz/make_seeds.py FOLDER     FOLDER/TARGET/NAME, beside those in tests/fuzz/seeds
"""
import csv
import gzip
import json
import pathlib
import struct
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
EXPECTED = TESTS / "golden" / "expected"
BEGIN = 1790000000  # of the bill in fuzz_bill.cc


def rows(table):
    with open(TESTS / "data" / table, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def lines_within(path, begin, most):
    """Whole lines of a file from the line number on."""
    out = b""
    for line in path.read_bytes().splitlines(keepends=True)[begin:]:
        if len(out) + len(line) > most:
            break
        out += line
    return out


def cgroup_path():
    for row in rows("cgroups.tsv"):
        yield row["name"], b"\x01" + row["cgroup"].encode().decode("unicode_escape").encode("latin-1")
    for first in range(0, 54, 9):
        yield f"sentence-{first}", bytes([0] + list(range(first, first + 9)))


def device_id():
    for number, row in enumerate(rows("device_ids.tsv")):
        yield str(number), row["id"].encode()


def upstream():
    for name in ("older_dcgm.dcgm.prom", "mixed_node.dcgm-modern.prom", "sick_gpu.dcgm.prom", "hostile_names.prom"):
        for begin in (0, 40):
            yield f"{name}-{begin}", lines_within(EXPECTED / name, begin, 3000)


def books():
    snapshot = json.loads((EXPECTED / "mixed_node.json").read_text())

    def cut(of, later):
        keep = {name: of[name] for name in ("schema_version", "at", "cycle", "simulated", "version")}
        keep["at"] += later
        keep["cycle"] += later
        keep["node"] = "n1"
        keep["gpus"] = [{**gpu, "energy_joules": gpu["energy_joules"] + 500 * later} for gpu in of["gpus"][:1]]
        keep["processes"] = of["processes"][:1]
        jobs = [owner for owner in of["owners"] if owner["owner"] == "slurm_job"]
        keep["owners"] = [of["owners"][0]] + [
            {**owner, "job_gpus": 2, "job_start_time_seconds": of["at"] - 60, "account": "physics"} for owner in jobs[:1]]
        keep["sources"] = [{"source": "cri", "up": False, "reason": "no socket"}] + of["sources"][:1]
        return json.dumps(keep, separators=(",", ":")).encode()

    yield "one", cut(snapshot, 0)
    for typed in ("gw", "/a\n", "er", "\t", "h"):
        yield "keys-" + typed.encode().hex(), typed.encode() + cut(snapshot, 0) + b"\n" + cut(snapshot, 2)


def bill():
    def series(name, value, at, **labels):
        metric = {"node": "n", "instance": "n:9400", **labels}
        if name:
            metric["__name__"] = name
        return {"metric": metric, "value": [at, str(value)]}

    def looks(value, **labels):
        return {"metric": labels, "values": [[BEGIN + 60 * i, str(value)] for i in range(1, 4)]}

    def answer(kind, result):
        return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}},
                          separators=(",", ":")).encode()

    def counters(step, joules):
        at = BEGIN + 3600 * step
        pod = {"gpu": "0", "namespace": "ml", "pod": "a", "pod_uid": "u"}
        return answer("vector", [
            series("gpu_ledger_device_energy_joules_total", joules, at, gpu="0", uuid="G"),
            series("gpu_ledger_pod_energy_joules_total", joules - 50, at, energy_estimated="true", **pod),
            series("gpu_ledger_device_unattributed_joules_total", 50, at, gpu="0", uuid="G", reason="idle"),
            series("gpu_ledger_pod_gpu_seconds_total", joules / 400, at, **pod),
            series("gpu_ledger_pod_energy_standard_error_joules", joules / 90, at, **pod),
            series("gpu_ledger_pod_info", 1, at, label_team="red", namespace="ml", pod="a", pod_uid="u"),
            series("gpu_ledger_device_info", 1, at, gpu="0", uuid="G", model="H200"),
            series("gpu_ledger_snapshot_timestamp_seconds", at, at)])

    held = {"node": "n", "instance": "n:9400", "namespace": "ml", "pod": "a", "pod_uid": "u", "uuid": "G"}
    starts = answer("vector", [series("process_start_time_seconds", BEGIN - 9000, BEGIN)])
    resets = answer("vector", [series("", 0, BEGIN, gpu="0")])
    given = answer("vector", [{"metric": held, "value": [BEGIN, "60"]}])
    unused = answer("vector", [{"metric": held, "value": [BEGIN, "20"]}])
    seen = answer("vector", [series("", 60, BEGIN, gpu="0", uuid="G")])
    all_looks = answer("vector", [{"metric": {}, "value": [BEGIN, "60"]}])
    plain = [counters(step, 1000 + 360000 * step) for step in range(3)]
    yield "plain", b"\n".join(plain)
    grams = answer("vector", [{"metric": {"cluster": ""}, "value": [BEGIN, "420.5"]}])
    yield "held", b"\n".join(plain + [starts, b"", resets, given, unused, seen, all_looks, grams])
    yield "hole", b"\n".join(plain + [starts, b"", resets, answer("matrix", [looks(1, **held)]), b"",
                                      answer("matrix", [looks(1, node="n", instance="n:9400", gpu="0", uuid="G")]),
                                      answer("matrix", [looks(1)])])
    yield "restarted", b"\n".join([plain[0], counters(1, 700), counters(2, 900),
                                   starts.replace(str(BEGIN - 9000).encode(), str(BEGIN + 3000).encode()),
                                   counters(1, 700)])
    yield "newcomer", b"\n".join([b"", plain[1], plain[2], starts, counters(1, 700), resets])
    yield "gone", b"\n".join([plain[0], b"", b"", starts, b"", resets])


def field(number, content):
    """Of a protobuf message: text, bytes or a small whole number."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    tag, size = number << 3 | 2, len(content)

    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7])

    return varint(tag) + varint(size) + content


def entry(number, key, value):
    return field(number, field(1, key) + field(2, value))


def pod_proto():
    terminated = field(3, field(3, field(7, "containerd://c0")))
    pod = (field(1, field(1, "a") + field(3, "ml") + field(5, "u1") + entry(11, "team", "red") +
                 entry(12, "hami.io/vgpu-devices-allocated", "GPU-1,NVIDIA,1024,10:;") +
                 entry(12, "kubernetes.io/config.hash", "0123456789abcdef" * 2)) +
           field(2, field(2, field(1, "main") + field(8, entry(1, "nvidia.com/gpu", field(1, "1"))))) +
           field(3, field(1, "Running") + field(8, field(1, "main") + terminated + field(8, "containerd://c1")) +
                 field(10, field(1, "init") + field(8, "cri-o://c2"))))
    yield "pod", pod
    for kind in (1, 2, 3, 4):
        yield f"event-{kind}", field(1, kind) + field(2, pod)


def cri():
    sandbox = (field(1, "s1") + field(2, field(1, "a") + field(2, "u1") + field(3, "ml")) + field(3, 0) +
               entry(5, "team", "red") + entry(6, "kubernetes.io/config.hash", "0123456789abcdef" * 2))
    container = (field(1, "c1") + field(2, "s1") + field(3, field(1, "main")) +
                 entry(8, "io.kubernetes.container.name", "main"))
    sandboxes = field(1, sandbox)
    yield "pods", bytes([len(sandboxes)]) + sandboxes + field(1, container) * 2
    devices = field(2, field(1, "nvidia.com/gpu") + field(2, "GPU-1"))
    claims = field(5, field(4, field(2, "gpu.nvidia.com") + field(4, "gpu-0")))
    grant = field(1, "a") + field(2, "ml") + field(3, field(1, "main") + devices + claims)
    yield "grants", field(1, grant) * 2


def switch_records():
    # As record_of in fuzz_switch_records.cc: tag, sequence, context, pid, time, time.
    start, end, context, save = 0, 1, 2, 3
    turn = [(start, 1), (context, 1), (end, 1), (save, 1), (start, 2), (context, 2), (end, 2), (save, 2)]
    for gap in (1, 20, 200):
        records = b"".join(bytes([tag, 0, who, who, gap, 7]) for tag, who in turn * 4)
        yield f"turns-{gap}", records
        yield f"lost-{gap}", records[:60] + bytes([4, 255, 1, 1, gap, 7]) + records


def driver_values():
    entries = [(100, 1 << 30, 0xffffffff, 0xffffffff), (200, 2 << 30, 1, 0), (0, 0, 0, 0)]
    for width, form in ((16, "<IxxxxQ"), (24, "<IxxxxQII"), (32, "<IxxxxQIIQ")):
        packed = b"".join(struct.pack(form, *one[:2 if width == 16 else 4], *([0] if width == 32 else []))
                          for one in entries)
        yield f"list-{width}", bytes([0, len(entries)]) + packed
    contents = {"i": struct.pack("<q", 5), "d": struct.pack("<d", 61.5), "s": b"580.159.04\0",
                "b": struct.pack("<IIQ", 0x01000010, 713, 1 << 30), "t": struct.pack("<q", BEGIN * 10**6)}
    for kind, content in contents.items():
        yield f"v1-{kind}", b"\x01" + struct.pack("<IHHixxxxq", 0, 155, ord(kind), 0, 1) + content
        yield f"v2-{kind}", b"\x01" + struct.pack("<IiIHHiIq", 0, 1, 0, 155, ord(kind), 0, 0, 1) + content


def http():
    for number, value in enumerate((
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "gzip;q=1.0, *;q=0",
            "Basic YWxpY2U6c2VjcmV0", "node-1.example.org:9400", "[::1]:9400", "120", "100-continue", "chunked",
            "Accept: a\r\n b\r\n\r\n", "sec-fetch-site")):
        yield f"header-{number}", b"\x00" + value.encode()
    for first in (1, 21, 255):
        packed = gzip.compress(b"gpu_ledger_up 1\n" * 60, mtime=0)
        yield f"gzip-{first}", bytes([first]) + packed
    yield "gzip-cut", b"\x0b" + gzip.compress(b"a" * 3000, mtime=0)[:-9]
    yield "gzip-twice", b"\x0b" + gzip.compress(b"a", mtime=0) * 2


def push_queue():
    good = b"block-000000000007-1790000000000-12.push\n#\x01body"
    newer = b"block-000000000008-1790000015000-12.push\n#\x02body"
    yield "two", newer + b"\0" + good
    yield "damaged", good + b"\0block-000000000009-1-1.push\ngpu-ledger push 1 00000000\nbody"
    yield "others", b".block-000000000007-1-1.push.aB3xyz\nhalf\0notes.push\nmine\0" + good


def main():
    folder = pathlib.Path(sys.argv[1])
    for target in (bill, books, cgroup_path, cri, device_id, driver_values, http, pod_proto, push_queue, switch_records,
                   upstream):
        place = folder / target.__name__
        place.mkdir(parents=True, exist_ok=True)
        for name, content in target():
            (place / name).write_bytes(content)


main()

# SPDX-License-Identifier: Apache-2.0
"""A clean root of another system, to install into and to run in: a chroot in namespaces of its own. No service starts."""

import http.client
import pathlib
import socket

import harness
from deploy_parts import call, run

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
# exec all the way: signals for the child reach the program.
ENTER = 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'


class CleanRoot:
    def __init__(self, tar, folder):
        self.path = folder
        folder.mkdir()
        call("tar", "-C", folder, "-xf", tar)
        self.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)

    def write(self, name, text, mode=0o644):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def command(self, *command):
        # No network, no mount that outlasts it.
        return ["unshare", "--mount", "--net", "--ipc", "--uts", "sh", "-c", ENTER, self.path, *command]

    def run(self, *command):
        return run(*self.command(*command), env=ENVIRONMENT)

    def simulated(self, test, program="gpu-ledger"):
        """The metrics of `serve --backend=sim` in this root, which must come, balance, and end well."""
        address = self.path / "tmp/ledger.sock"
        command = ["env", "-i", program, "serve", "--backend=sim", "--listen-address=unix:/tmp/ledger.sock",
                   "--sample-interval=200ms"]
        with harness.Program(self.command(*command), ENVIRONMENT) as ledger:
            def ready():
                test.assertTrue(ledger.alive(), ledger.log())
                return address.exists() and get(address, "/readyz")[0] == 200

            harness.wait_until(ready, "a first snapshot")
            status, text = get(address, "/metrics")
            test.assertEqual(status, 200)
            metrics = harness.Metrics(text)
            test.assertGreaterEqual(len(metrics.find("gpu_ledger_device_energy_joules_total")), 4)
            for gpu, joules in metrics.imbalance().items():
                test.assertLess(abs(joules), 0.001, f"the books of GPU {gpu} do not balance")
            test.assertEqual(ledger.stop(), 0, ledger.log())
        test.assertEqual(list((self.path / "tmp").glob("gpu-ledger-sim-*")), [], "the simulated node's files are gone")
        return metrics


def get(address, path):
    connection = http.client.HTTPConnection("localhost", timeout=harness.NET)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(harness.NET)
    try:
        connection.sock.connect(str(address))
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    except ConnectionError:
        return 0, ""
    finally:
        connection.close()


def everything_in(root):
    """Every file of a root with its mode, to see what an installation leaves behind."""
    root = pathlib.Path(root)
    return {str(path.relative_to(root)): oct(path.lstat().st_mode) for path in root.rglob("*")}

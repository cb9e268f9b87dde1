# SPDX-License-Identifier: Apache-2.0
"""`gpu-ledger top --url`: the books of a running exporter, one that goes away, and servers that are none."""

import contextlib
import http.server
import json
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
import unittest

import harness
from terminal import Screen

UNITS = ["J", "kJ", "MJ", "GJ"]


def energy_text(joules):
    """As top writes it."""
    unit = 0
    while joules >= 1000 and unit + 1 < len(UNITS):
        joules, unit = joules / 1000, unit + 1
    return f"{joules:.{0 if unit == 0 or joules >= 100 else 1}f}{UNITS[unit]}"


@contextlib.contextmanager
def serving(answer):
    """A server on loopback; answer(handler) writes what it says to a GET."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self)

        def log_message(self, *_):
            pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def silent(handler):
    """Says nothing for as long as the other side waits."""
    handler.rfile.read()


def reply(status, body=b"", **headers):
    def answer(handler):
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(body)
    return answer


class TopUrlTest(harness.Case):
    def batch(self, *arguments, environment=None):
        return subprocess.run([harness.BINARY, "top", "--batch", *arguments], capture_output=True, text=True,
                              timeout=harness.NET, env=harness.clean_environment(environment))

    def refuse(self, url, *words, environment=None):
        """One line that names the address and says these words."""
        done = self.batch(f"--url={url}", "--sample-interval=200ms", environment=environment)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("gpu-ledger: "), done.stderr)
        self.assertLess(len(done.stderr), 300)
        for word in words:
            self.assertIn(word, done.stderr)

    def snapshot(self, ledger):
        return json.loads(ledger.get("/api/v1/snapshot").text)

    def test_shows_the_joules_of_the_exporter(self):
        with harness.Ledger("--sample-interval=2s", "--node-name=n7") as ledger:
            with Screen(f"--url=http://127.0.0.1:{ledger.port}", "--sample-interval=200ms") as screen:
                def shown():
                    cells = [re.sub("uncertain", "?", line).split() for line in screen.rows()]
                    return {row[1]: next(c for c in row[2:] if re.fullmatch(r"[\d.]+[kMG]?J", c)) for row in cells}

                def told():
                    return {str(p["pid"]): energy_text(p["energy_joules"]["total"])
                            for p in self.snapshot(ledger)["processes"]}

                screen.wait(lambda: len(shown()) > 8 and shown() == told() and "0J" not in shown()["41001"],
                            "the joules of the JSON")
                self.assertIn("gpu-ledger n7: 6 GPUs", screen.line(0))
                self.assertIn(f"books of http://127.0.0.1:{ledger.port}", screen.line(1))
                gpus = lambda: [line.split()[-1] for line in screen.frame() if re.search(r"\d+C +[\d.]+[kMG]?J$", line)]
                screen.wait(lambda: gpus() == [energy_text(g["energy_joules"]) for g in self.snapshot(ledger)["gpus"]],
                            "the GPUs' joules")

                screen.press("g")

                def owner_joules():
                    return energy_text(sum(o["energy_joules"]["total"] for o in self.snapshot(ledger)["owners"]
                                           if o["owner_text"] == "ml-team/llm-train-0"))
                screen.wait(lambda: any("ml-team/llm-train-0" in line and f" {owner_joules()} " in line
                                        for line in screen.rows()), "an owner's joules")
                screen.press("q")
                self.assertEqual(screen.end(), 0)

    def test_an_exporter_that_lost_its_gpus(self):
        """Its books stay, and are shown; what is not known is not 0 W."""
        with harness.Ledger(*harness.FAST) as ledger:
            harness.wait_until(lambda: self.snapshot(ledger)["cycle"] > 5, "some joules")
            ledger.send(signal.SIGUSR1)
            harness.wait_until(lambda: ledger.get("/readyz").status == 503, "the release")
            done = self.batch(f"--url=http://127.0.0.1:{ledger.port}", "--sample-interval=200ms")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        title, source, *lines = done.stdout.splitlines()
        self.assertRegex(title, r"^gpu-ledger: 6 GPUs, \d+ processes, SIMULATED$")
        self.assertIn("books of http", source)
        self.assertEqual(sum(line.endswith("  does not answer") for line in lines), 6)
        rows = [line.split() for line in lines[next(i for i, line in enumerate(lines) if "OWNER" in line) + 1:]]
        self.assertGreater(len(rows), 8)
        self.assertEqual({row[2] for row in rows}, {"-"})
        self.assertIn("ml-team/llm-train-0", done.stdout)

    def test_an_exporter_that_goes_away_and_comes_back(self):
        with harness.Ledger(*harness.FAST) as ledger:
            port = ledger.port
            screen = Screen(f"--url=http://127.0.0.1:{port}", "--sample-interval=200ms")
            with screen:
                screen.wait(lambda: "41001" in screen.pids(), "the table")
                ledger.stop()
                screen.text = ""
                screen.wait(lambda: "no answer since" in screen.line(1), "a line that says since when")
                self.assertRegex(screen.line(1), rf"^! http://127.0.0.1:{port}: .*; no answer since \d\d:\d\d:\d\d$")
                self.assertIn("41001", screen.pids(), "the last table stays")
                self.assertRegex(screen.text, "\x1b\\[2m[^\x1b]*41001", "dimmed")
                screen.press("p")
                screen.wait(lambda: "by pid" in screen.line(2), "keys still work")
                with harness.Ledger(*harness.FAST, port=port):
                    screen.wait(lambda: "no answer" not in "".join(screen.frame()) and screen.pids(), "it comes back")
                    screen.press("q")
                    self.assertEqual(screen.end(), 0)

    def test_the_exporter_of_this_machine_is_found(self):
        with harness.Ledger(*harness.FAST) as ledger:
            here = {"GPU_LEDGER_LISTEN_ADDRESS": f"127.0.0.1:{ledger.port}"}
            done = self.batch("--sample-interval=200ms", environment=here)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"books of http://127.0.0.1:{ledger.port}", done.stdout)
            own = self.batch("--sample-interval=200ms", "--backend=sim", environment=here)
            self.assertIn("own books since", own.stdout, "whoever names a backend wants it")

    def test_books_of_its_own_beside_an_exporter_that_it_cannot_read(self):
        with serving(reply(401)) as port:
            done = self.batch("--sample-interval=200ms", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
                              environment={"GPU_LEDGER_LISTEN_ADDRESS": f"127.0.0.1:{port}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("own books since", done.stdout.splitlines()[1])
        self.assertIn(f"\n! http://127.0.0.1:{port}: needs a password", done.stdout)

    def test_an_exporter_of_this_machine_that_does_not_give_its_books(self):
        def own(port):
            done = self.batch("--sample-interval=200ms", f"--nvml-library={harness.SIM}/libnvidia-ml.so.1",
                              environment={"GPU_LEDGER_LISTEN_ADDRESS": f"127.0.0.1:{port}"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("own books since", done.stdout.splitlines()[1])
            return [line for line in done.stdout.splitlines() if line.startswith("! http")]

        self.assertEqual(own(harness.free_port()), [], "nobody is there")
        for answer, words in ((reply(503), "no books yet (503)"), (lambda handler: None, "if it uses TLS, write --url=https://"),
                              (silent, "no answer in time")):
            with serving(answer) as port:
                (line,) = own(port)
                self.assertIn(f"! http://127.0.0.1:{port}: ", line)
                self.assertIn(words, line)

    def test_neither_exporter_nor_driver(self):
        free = harness.free_port()
        done = self.batch(environment={"GPU_LEDGER_LISTEN_ADDRESS": f"127.0.0.1:{free}"})
        if done.returncode == 0:
            self.skipTest("this machine has an NVIDIA driver")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
        self.assertRegex(done.stderr, rf"^gpu-ledger: no gpu-ledger answers at http://127.0.0.1:{free}, and this machine has "
                         r"no NVIDIA driver \(libnvidia-ml.so.1: .*\); to watch a node: "
                         r"gpu-ledger top --url=http://NODE:9400; to try it: --backend=sim$")
        with serving(reply(401)) as port:
            done = self.batch(environment={"GPU_LEDGER_LISTEN_ADDRESS": f"127.0.0.1:{port}"})
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
        self.assertRegex(done.stderr, rf"no NVIDIA driver \(.*\); http://127.0.0.1:{port}: needs a password")

    def test_control_c_while_the_first_answer_is_waited_for(self):
        asked = threading.Event()

        def hold(handler):
            asked.set()
            silent(handler)

        def ends_at_once():
            asked.clear()
            with serving(hold) as port, Screen(f"--url=http://127.0.0.1:{port}") as screen:
                screen.wait(asked.is_set, "the request")
                screen.press("\x03")
                self.assertEqual(screen.end(), -signal.SIGINT, "its own end for want of an answer is 1")

        harness.wait_to_pass(ends_at_once)  # that end comes after 5 s: a key that a slow machine pressed later proves nothing

    def test_a_unix_socket_and_a_password(self):
        path = self.folder / "ledger.sock"
        with harness.Ledger(*harness.FAST, f"--listen-address=unix:{path}"):
            done = self.batch(f"--url=unix:{path}", "--sample-interval=200ms")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("llm-train-0", done.stdout)
        self.refuse(f"unix:{path}", str(path), "is gpu-ledger serving there?")

        def locked(handler):
            right = handler.headers.get("Authorization") == "Basic YW5uOnNAY3JldA=="
            reply(200 if right else 401, self.books() if right else b"")(handler)

        with serving(locked) as port:
            self.refuse(f"http://127.0.0.1:{port}", "needs a password", "GPU_LEDGER_URL")
            self.refuse(f"http://ann:wrong@127.0.0.1:{port}", "refuses this user and password")
            done = self.batch("--sample-interval=200ms", environment={
                "GPU_LEDGER_URL": f"http://ann:s%40cret@127.0.0.1:{port}"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("cret", done.stdout)

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_tls_and_a_real_password(self):
        web = harness.tls_and_a_password(self.folder)
        with harness.Ledger(*harness.FAST, f"--web-config-file={web}", ready=False) as ledger:
            here = f"127.0.0.1:{ledger.port}"
            trust = f"--url-ca-file={self.folder}/tls.crt"
            ask = lambda user: self.batch(f"--url=https://{user}{here}", trust, "--sample-interval=200ms")
            harness.wait_until(lambda: "needs a password" in ask("").stderr, "a server that wants a password")
            done = harness.wait_until(lambda: ask(f"prometheus:{harness.PASSWORD}@").stdout, "books")
            self.assertIn(f"books of https://{here}", done)
            self.assertNotIn(harness.PASSWORD, done)
            self.refuse(f"https://prometheus:wrong@{here}", "refuses this user and password",
                        environment={"GPU_LEDGER_URL_CA_FILE": f"{self.folder}/tls.crt"})
            self.refuse(f"https://{here}", "certificate is refused", "--url-ca-file=FILE")
            self.refuse(f"http://{here}", f"if it uses TLS, write --url=https://{here}")

    def books(self, name="worker", steps=None):
        """A snapshot, one step further each time."""
        steps = steps if steps is not None else self.__dict__.setdefault("steps", [0])
        steps[0] += 1
        process = {"active": True, "energy_joules": {"total": 10.0 * steps[0]}, "gpu": 0, "gpu_uuid": "GPU-0",
                   "name": name, "owner": "pod", "owner_text": f"n/{name}", "pid": 77, "start_time_seconds": 5}
        gpu = {"index": 0, "model": f"Model {name}", "up": True, "energy_joules": 5.0, "uuid": "GPU-0", "health": [name]}
        return json.dumps({"at": 1000.0 + steps[0], "cycle": steps[0], "gpus": [gpu], "node": name,
                           "processes": [process], "owners": [process],
                           "sources": [{"source": "x", "up": False, "reason": name}]}).encode()

    def test_wrong_servers(self):
        free = harness.free_port()
        self.refuse(f"http://127.0.0.1:{free}", f"http://127.0.0.1:{free}", "Connection refused", "serving there?")
        self.refuse("http://no-such-host.invalid:9400", "no-such-host.invalid", "host name")
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            def talk():
                for _ in range(1):
                    peer, _ = server.accept()
                    with peer:
                        peer.recv(1000)
                        peer.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n")
            thread = threading.Thread(target=talk)
            thread.start()
            self.refuse(f"http://127.0.0.1:{port}", "serving there?")
            thread.join()
        for answer, words in ((reply(404), ["404", "http://NODE:9400"]),
                              (reply(200, b'{"status":"success","data":[]}'), ["not gpu-ledger's JSON"]),
                              (reply(200, b"# HELP x\nx 1\n"), ["not gpu-ledger's JSON"]),
                              (reply(302, Location="http://elsewhere/"), ["302"]),
                              (reply(200, Content_Length=str(1 << 40)), []),
                              (reply(500, b"x" * 100000), ["500"])):
            with serving(answer) as port:
                self.refuse(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}: ", *words)
        with harness.Ledger(*harness.FAST) as ledger:
            self.refuse(f"http://127.0.0.1:{ledger.port}/metrics", "404", "http://NODE:9400")
            self.refuse(f"https://127.0.0.1:{ledger.port}", f"it does not speak TLS; write --url=http://127.0.0.1:{ledger.port}")
            self.refuse(f"https://127.0.0.1:{ledger.port}", f"--url-ca-file: cannot read {self.folder}/none.pem: No such",
                        environment={"GPU_LEDGER_URL_CA_FILE": f"{self.folder}/none.pem"})

    def test_wrong_addresses(self):
        for url in ("node7", "ftp://node7", "http://", "unix:relative", "http://ann:secret@"):
            done = self.batch(f"--url={url}")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("--url: ", done.stderr)
            self.assertIn("http://NODE:9400", done.stderr)
            self.assertNotIn("secret", done.stderr)

    def test_hostile_names_do_not_reach_the_terminal(self):
        hostile = "a\x1b]0;owned\x07b\x1b[2J\x9b31m\r\n\u202e\u200d" + "e\u0301" * 50 + "训练" * 40
        with serving(lambda handler: reply(200, self.books(hostile))(handler)) as port:
            done = self.batch(f"--url=http://127.0.0.1:{port}", "--sample-interval=200ms")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u0301\u200d\u202e]", done.stdout))
            with Screen(f"--url=http://127.0.0.1:{port}", "--sample-interval=200ms", columns=60, rows=16,
                        environment={"NO_COLOR": "1"}) as screen:
                screen.wait(lambda: screen.pids(), "the table")
                ours = re.compile(r"\x1b\[(\?1049h|\?25l|\?7l|H|K|J)")
                self.assertIsNone(re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", ours.sub("", screen.text)))
                wide = sum(2 if c in "训练" else 1 for c in screen.rows()[0])
                self.assertLessEqual(wide, 60)
                screen.press("q")
                self.assertEqual(screen.end(), 0)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bill --serve before a server that takes its time: who left, and who asks much, holds nobody else up."""

import contextlib
import http.server
import json
import socket
import threading
import unittest

import harness


class SlowServer(http.server.ThreadingHTTPServer):
    """A query API that answers when it is told to, and knows for whom it works."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), SlowQuery)
        self.lock = threading.Lock()
        self.open = set()  # questions that wait
        self.go_on = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def is_asked_for(self, at):
        with self.lock:
            return any(f"&time={at}&" in query.path for query in self.open)

    def close(self):
        self.go_on.set()
        self.shutdown()
        self.server_close()


class SlowQuery(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with self.server.lock:
            self.server.open.add(self)
        self.connection.settimeout(0.05)
        try:
            while not self.server.go_on.is_set():
                with contextlib.suppress(TimeoutError):
                    if not self.connection.recv(1):
                        return
            body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}).encode()
            self.connection.settimeout(harness.NET)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass
        finally:
            with self.server.lock:
                self.server.open.discard(self)

    def log_message(self, *_):
        pass


class BillServe(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = SlowServer()
        self.addCleanup(self.server.close)
        self.port = harness.free_port()
        self.program = harness.Program(
            [harness.BINARY, "bill", "--serve", f"--serve-address=127.0.0.1:{self.port}", "--query-timeout=10m",
             f"--prometheus-url=http://127.0.0.1:{self.server.server_port}"])
        self.addCleanup(self.program.__exit__)

        def is_up():
            self.assertTrue(self.program.alive(), self.program.log())
            try:
                return harness.get(self.port, "/healthz").status == 200
            except OSError:
                return False

        harness.wait_until(is_up, "the allocation API")

    def ask(self, window, address="127.0.0.1"):
        asker = socket.create_connection(("127.0.0.1", self.port), timeout=harness.NET, source_address=(address, 0))
        self.addCleanup(asker.close)
        asker.sendall(f"GET /allocation?window={window} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return asker

    def test_a_question_whose_asker_left_is_dropped(self):
        askers = [self.ask(f"{hours}h") for hours in range(1, 41)]
        harness.wait_until(lambda: len(self.server.open) == 2, "two questions that are computed")
        for asker in askers:
            asker.close()
        stays = self.ask("2026-10-01T00:00:00Z,2026-10-01T01:00:00Z", "127.0.0.1")
        harness.wait_until(lambda: self.server.is_asked_for(1790812800), "a worker for who is there")
        self.server.go_on.set()
        self.assertIn(b" 200 OK", stays.recv(100))
        self.assertEqual(self.program.stop(), 0, self.program.log())


if __name__ == "__main__":
    unittest.main()

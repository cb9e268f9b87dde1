# SPDX-License-Identifier: Apache-2.0
"""What inference servers show of their tokens, under the names of each, on loopback. docs/tokens.md says where they are from."""

import http.server
import threading

# (Prompt, generated, labels) of each server.
NAMES = {
    "vllm": ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", 'model_name="qwen",engine="0"'),
    "sglang": ("sglang:prompt_tokens_total", "sglang:generation_tokens_total", 'model_name="glm",is_streaming="true"'),
    "tgi": ("tgi_request_input_length_sum", "tgi_request_generated_tokens_sum", ""),
    "trtllm-serve": ("trtllm_prompt_tokens_total", "trtllm_generation_tokens_total",
                     'model_name="llama",engine_type="trtllm"'),
    "triton": ("nv_llm_input_token_len_sum", "nv_llm_output_token_len_sum", 'model="tensorrt_llm",version="1"'),
    "llamacpp": ("llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total", ""),
}


class TokenServers(http.server.ThreadingHTTPServer):
    """Shows /NAME as that server would; counted(name) gives its (prompt, generated) tokens at every scrape."""

    daemon_threads = True

    def __init__(self, counted):
        super().__init__(("127.0.0.1", 0), Answers)
        self.counted = counted
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def text(self, name):
        lines = []
        for series, tokens in zip(NAMES[name][:2], self.counted(name)):
            # The sum of a histogram is shown under the histogram's TYPE, with its other two.
            family, labels = series.removesuffix("_sum"), NAMES[name][2]
            if family == series:
                lines += [f"# TYPE {series} counter", f"{series}{{{labels}}} {tokens}"]
                continue
            every = f"{labels}," if labels else ""
            lines += [f"# TYPE {family} histogram", f'{family}_bucket{{{every}le="+Inf"}} 1', f"{series}{{{labels}}} {tokens}",
                      f"{family}_count{{{labels}}} 1"]
        return "\n".join(lines) + "\n"

    def job(self, name, labels, **more):
        """A scrape of one of them, with the labels of its target."""
        return {"job_name": f"{name}-{labels['pod']}{labels.get('cluster', '')}", "metrics_path": f"/{name}", **more,
                "static_configs": [{"targets": [f"127.0.0.1:{self.server_address[1]}"], "labels": labels}]}


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.text(self.path[1:]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

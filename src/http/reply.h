// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpuledger::http {

struct Reply {
  unsigned status = 200;
  std::string content_type;
  std::shared_ptr<const std::string> body;  // for HEAD too: for its length
  std::vector<std::pair<std::string, std::string>> headers;
};

// A short plain text; a newline is added.
Reply text_reply(unsigned status, std::string text);

// A request whose answer must be computed. Owns its text, because the answer may come later.
struct Question {
  std::string method;
  std::string target;  // the path and the query, as sent
  std::string peer;    // who asks, for a fair share: peer_of() the connection
};

// To be called once nobody waits for the answer any more: the client left, or the answer took too long. Not needed
// after the answer, and harmless then.
using Forget = std::function<void()>;

// Answers a question by calling `done` once, on any thread, at once or later; calling it after the server has stopped
// does nothing. Called on the server's io thread, as what it returns, so neither may wait.
using Answerer = std::function<Forget(Question question, std::function<void(Reply)> done)>;

}  // namespace gpuledger::http

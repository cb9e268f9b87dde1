// SPDX-License-Identifier: Apache-2.0
// What must hold of a watch on pods whatever comes: the objects are cut the same wherever the pieces end, and an event
// names a pod or nothing.

#include <cstdint>
#include <string>
#include <vector>

#include "identity/sources/json_stream.h"
#include "identity/sources/watch_event.h"
#include "pod_invariant.h"

using namespace gpuledger::identity;
using gpuledger::fuzz::check_pod;
using gpuledger::fuzz::require;

namespace {

std::vector<std::string> cut(std::string_view text, size_t piece) {
  std::vector<std::string> objects;
  JsonStream stream(JsonStream::Shape::kObjects, [&](std::string_view object) { objects.emplace_back(object); });
  for (size_t at = 0; at < text.size(); at += piece)
    if (!stream.feed(text.substr(at, piece))) break;
  return objects;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  const auto objects = cut(text, 1 + bytes[0] % 64);
  require(objects == cut(text, text.size() + 1), "cut the same in pieces");
  const PodLabelList labels = {"team"};
  for (const std::string& object : objects) {
    require(object.starts_with('{') && object.find_last_of("}]") == object.size() - 1, "as much as an object");
    const WatchEvent event = parse_watch_event(object, labels);
    if (event.pod) check_pod(*event.pod);
    require(!event.pod || event.kind == WatchEvent::Kind::kChanged || event.kind == WatchEvent::Kind::kDeleted,
            "a pod where it belongs");
    require(event.status.message.find('\n') == std::string::npos && event.status.message.size() < 4096,
            "a reason is one short line");
  }
  (void)parse_api_status(text);
  return 0;
}

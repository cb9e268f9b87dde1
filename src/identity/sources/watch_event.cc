// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/watch_event.h"

#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "identity/pod_json.h"
#include "identity/sources/pod_list_stream.h"

namespace gpuledger::identity {
namespace {

using Json = nlohmann::json;
constexpr size_t kLongestWatchMessage = 200;
constexpr size_t kLongestWatchVersion = 128;

const Json& at(const Json& object, const char* key) {
  static const Json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : nothing;
}

std::string text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

ApiStatus status_of(const Json& object) {
  ApiStatus status;
  const Json& code = at(object, "code");
  if (code.is_number_unsigned() && code.get<uint64_t>() < 1000) status.code = code.get<unsigned>();
  status.reason = text(at(object, "reason")).substr(0, kLongestWatchMessage);
  const std::string message = text(at(object, "message"));
  if (!message.empty()) status.message = in_quotes(message.substr(0, kLongestWatchMessage));
  // Servers before 1.19 give no cause, just a message.
  status.too_new = message.find("Too large resource version") != std::string::npos;
  const Json& causes = at(at(object, "details"), "causes");
  if (causes.is_array()) {
    for (const Json& cause : causes) status.too_new |= text(at(cause, "reason")) == "ResourceVersionTooLarge";
  }
  return status;
}

}  // namespace

ApiStatus parse_api_status(std::string_view json) {
  const Json object = Json::parse(json, nullptr, false);
  return status_of(object);
}

WatchEvent parse_watch_event(std::string_view json, const PodLabelList& labels) {
  using Kind = WatchEvent::Kind;
  WatchEvent event;
  const Json whole = Json::parse(json, nullptr, false);
  const std::string type = text(at(whole, "type"));
  const Json& object = at(whole, "object");
  if (type == "ERROR") {
    event.kind = Kind::kError;
    event.status = status_of(object);
    return event;
  }
  event.version = text(at(at(object, "metadata"), "resourceVersion"));
  if (event.version.size() > kLongestWatchVersion) event.version.clear();
  if (type == "BOOKMARK") event.kind = Kind::kBookmark;
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") return event;
  event.pod = parse_pod(object, labels);
  event.node = node_of(object);
  if (event.pod) event.kind = type == "DELETED" ? Kind::kDeleted : Kind::kChanged;
  return event;
}

}  // namespace gpuledger::identity

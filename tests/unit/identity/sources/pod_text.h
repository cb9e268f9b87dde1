// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gpuledger::identity {

// A pod as Kubernetes writes it, with a bit of what nobody needs.
inline std::string pod_text(const std::string& name, const std::string& node = "node-1",
                            const std::string& version = "1", const std::string& container_id = "") {
  const std::string id = container_id.empty() ? std::string(64, 'a') : container_id;
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"(","namespace":"ml","uid":"uid-)" + name +
         R"(","resourceVersion":")" + version + R"(","labels":{"app":"a {\"b\"}","team":"x"}},"spec":{"nodeName":")" +
         node + R"(","containers":[{"name":"main","env":[{"name":"SECRET","value":"}{][\\\""}]}]},"status":{"phase":)" +
         R"("Running","containerStatuses":[{"name":"main","containerID":"containerd://)" + id + R"("}]}})";
}

inline std::string pod_list_text(const std::string& version, const std::vector<std::string>& pods) {
  std::string text =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":")" + version + R"("},"items":[)";
  for (size_t i = 0; i < pods.size(); ++i) text += (i == 0 ? "" : ",") + pods[i];
  return text + "]}\n";
}

inline std::string event_text(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

inline std::string bookmark_text(const std::string& version) {
  return event_text("BOOKMARK", R"({"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":")" + version +
                                    R"(","creationTimestamp":null},"spec":{"containers":null},"status":{}})");
}

inline std::string status_text(int code, const std::string& reason, const std::string& message = "",
                               const std::string& cause = "") {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" + message + R"(","reason":")" + reason +
         R"(","details":{"causes":[{"reason":")" + cause + R"("}]},"code":)" + std::to_string(code) + "}";
}

}  // namespace gpuledger::identity

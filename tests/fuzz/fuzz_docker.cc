// SPDX-License-Identifier: Apache-2.0
// What must hold of a list of containers whatever docker or podman, or somebody in their place, says: read in pieces it
// gives the objects it gives as a whole, and no id or name is longer than they are.

#include <cstdint>
#include <string>
#include <vector>

#include "identity/sources/docker_container.h"
#include "identity/sources/json_stream.h"
#include "invariant.h"

namespace {

using namespace gpuledger::identity;
using gpuledger::fuzz::require;

std::vector<std::string> objects_of(std::string_view text, size_t piece) {
  std::vector<std::string> objects;
  JsonStream list(JsonStream::Shape::kArray, [&](std::string_view object) { objects.emplace_back(object); });
  for (size_t at = 0; at < text.size(); at += piece) {
    if (!list.feed(text.substr(at, piece)).ok()) break;
  }
  return objects;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  const std::vector<std::string> objects = objects_of(text, 1 + bytes[0] % 64);
  require(objects == objects_of(text, text.size() + 1), "the same objects in pieces as in one");
  for (const std::string& object : objects) {
    const auto container = parse_docker_container(object);
    if (!container) continue;
    require(!container->id.empty() && container->id.size() <= 128, "an id is bounded");
    require(container->name.size() <= 253, "a name is bounded");
    require(container->name.find('/') == std::string::npos, "a name has no slash");
  }
  return 0;
}

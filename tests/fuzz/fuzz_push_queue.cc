// SPDX-License-Identifier: Apache-2.0
// What must hold of the queue on disk whatever lies in its folder: nothing but whole blocks come out, oldest first; a
// new block comes last, after a restart as well; files with other names stay. The input is files, a line with the name
// and then the content, each ended by a zero. A content that begins with "#" gets the head that fits, for a random one
// would let nothing through.

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "app/push/push_queue.h"
#include "base/log.h"
#include "base/text.h"
#include "invariant.h"

namespace {

using gpuledger::app::PushBlock;
using gpuledger::app::PushQueue;
using gpuledger::fuzz::require;

constexpr std::string_view kNewBody = "the newest";

std::string make_folder() {
  std::string folder = std::filesystem::temp_directory_path() / "queue-XXXXXX";
  require(::mkdtemp(folder.data()) != nullptr, "a folder to work in");
  return folder;
}

struct Folder {
  const std::string path = make_folder();
  ~Folder() { std::filesystem::remove_all(path); }
};

void write_file(const std::string& folder, std::string_view name, std::string_view content) {
  const bool usable = !name.empty() && name != "." && name != ".." && name.size() < 256 &&
                      name.find('/') == std::string_view::npos && name != "gpu-ledger-push.lock";
  if (!usable) return;
  std::ofstream file(folder + "/" + std::string(name));
  if (content.starts_with('#')) {
    content.remove_prefix(1);
    const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    file << fmt::format("gpu-ledger push 1 {:08x}\n", sum);
  }
  file << content;
}

void drain(PushQueue& queue) {
  uint64_t last = 0;
  std::string body;
  while (true) {
    const auto front = queue.front();
    require(front.ok(), "a block can be read or is dropped");
    if (!*front) break;
    body = (*front)->block.body;
    require(!body.empty() && (*front)->number >= last, "whole blocks, oldest first");
    last = (*front)->number;
    require(queue.remove(last), "what was sent can be removed");
  }
  require(body == kNewBody, "a new block comes last");
  require(queue.blocks() == 0 && queue.bytes() == 0 && queue.samples() == 0, "an empty queue holds nothing");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return gpuledger::configure_log("error", "text").ok() ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const Folder folder;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  size_t foreign = 0;
  for (size_t files = 0; files < 8 && !text.empty(); ++files) {
    std::string_view content = gpuledger::take_until(text, '\0');
    const std::string_view name = gpuledger::take_until(content, '\n');
    if (name == "notes.push") ++foreign;
    write_file(folder.path, name, content);
  }
  {
    const auto queue = PushQueue::open(folder.path, {});
    require(queue.ok(), "a folder that can be used");
    require((*queue)->append(PushBlock{1, 1, std::string(kNewBody)}).ok(), "a block can be added");
  }
  {
    const auto queue = PushQueue::open(folder.path, {});
    require(queue.ok(), "a folder that can be used again");
    drain(**queue);
  }
  require(foreign == 0 || ::access((folder.path + "/notes.push").c_str(), F_OK) == 0, "files of others stay");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) std::filesystem::remove(entry.path());
  return 0;
}

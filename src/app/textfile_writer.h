#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "model/sample.h"

namespace gpuledger::app {

// Writes the textfile on a thread of its own: an fsync takes as long as the disk likes, and the sampler cannot wait.
// A text that is not yet being written when the next one comes is dropped for it.
class TextfileWriter {
 public:
  using Write = std::function<Status(const std::string& path, std::string_view text)>;

  // write: must own what it uses, for it may outlive this object in a file system that hangs.
  explicit TextfileWriter(std::string path, Write write = write_whole);
  ~TextfileWriter();  // the file stays
  TextfileWriter(const TextfileWriter&) = delete;
  TextfileWriter& operator=(const TextfileWriter&) = delete;

  // On the caller's thread, before the first post().
  void write_now(std::string_view text);
  void post(std::string text);
  // Of the writes that are over.
  SourceHealth health() const;

  // Drops what waits, lets a write that is under way end and removes the file, so that nobody reads numbers of a
  // program that has ended. Nothing is written afterwards. False: the file system hangs; the thread is left to it.
  bool remove(Nanoseconds patience);

  static Status write_whole(const std::string& path, std::string_view text);

 private:
  struct Shared;
  static void run(Shared& shared);
  bool end(bool remove, Nanoseconds patience);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace gpuledger::app

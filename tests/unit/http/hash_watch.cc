// SPDX-License-Identifier: Apache-2.0
#include "unit/http/hash_watch.h"

#include <crypt.h>

#include <condition_variable>
#include <mutex>

#include "support/eventually.h"

namespace gpuledger::http {
namespace {

struct Hashing {
  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  std::vector<HashWatch::Hash> begun;
};

// Never destroyed: a thread that was left behind may still hash when the program ends.
Hashing& hashing() {
  static Hashing* const all = new Hashing;
  return *all;
}

}  // namespace

HashWatch::HashWatch() {
  const std::lock_guard lock(hashing().mutex);
  hashing().begun.clear();
}

HashWatch::~HashWatch() {
  let_go();
}

void HashWatch::hold() {
  const std::lock_guard lock(hashing().mutex);
  hashing().held = true;
}

void HashWatch::let_go() {
  const std::lock_guard lock(hashing().mutex);
  hashing().held = false;
  hashing().changed.notify_all();
}

std::vector<HashWatch::Hash> HashWatch::begun() const {
  const std::lock_guard lock(hashing().mutex);
  return hashing().begun;
}

bool HashWatch::wait_for(size_t count) const {
  return eventually([&] { return begun().size() >= count; });
}

}  // namespace gpuledger::http

// The linker's names.
extern "C" char* __real_crypt_r(const char* password, const char* setting, crypt_data* scratch);

extern "C" char* __wrap_crypt_r(const char* password, const char* setting, crypt_data* scratch);
char* __wrap_crypt_r(const char* password, const char* setting, crypt_data* scratch) {
  {
    auto& hashing = gpuledger::http::hashing();
    std::unique_lock lock(hashing.mutex);
    hashing.begun.push_back({password, setting});
    hashing.changed.wait(lock, [&] { return !hashing.held; });
  }
  return __real_crypt_r(password, setting, scratch);
}

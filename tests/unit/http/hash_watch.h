// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gpuledger::http {

// Which passwords this program hashes while this lives, and a way to hold them up. The linker puts it between the
// program and crypt_r: CMakeLists.txt says --wrap. One at a time.
class HashWatch {
 public:
  HashWatch();
  ~HashWatch();  // lets go
  HashWatch(const HashWatch&) = delete;
  HashWatch& operator=(const HashWatch&) = delete;

  // From now on a hash does not come to its end.
  void hold();
  void let_go();

  struct Hash {
    std::string password;
    std::string setting;  // the kind and the cost are its first seven characters
  };
  // Those that have begun, in their order.
  std::vector<Hash> begun() const;
  // Waits until so many have begun.
  bool wait_for(size_t count) const;
};

}  // namespace gpuledger::http

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/snapshot.h"

namespace gpuledger::http {

// The gzip form of the current snapshot's texts, each made when the first client wants it, as the texts themselves are.
// One thread.
class PackedSnapshot {
 public:
  // plain: one of the snapshot's texts. Null should zlib fail. Another snapshot than the last: all is forgotten.
  std::shared_ptr<const std::string> pack(const std::shared_ptr<const Snapshot>& snapshot, const std::string& plain);

 private:
  std::weak_ptr<const Snapshot> snapshot_;  // weak: the plain bytes may go as soon as nobody else wants them
  std::map<const std::string*, std::shared_ptr<const std::string>> packed_;
};

}  // namespace gpuledger::http

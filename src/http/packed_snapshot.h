// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/snapshot.h"

namespace gpuledger::http {

// The current snapshot's texts in gzip, each made when the first client wants it, like the texts themselves. One
// thread.
class PackedSnapshot {
 public:
  // plain: one of the snapshot's texts. Null if zlib fails. A new snapshot drops all earlier texts.
  std::shared_ptr<const std::string> pack(const std::shared_ptr<const Snapshot>& snapshot, const std::string& plain);

 private:
  std::weak_ptr<const Snapshot> snapshot_;  // weak: the plain bytes may be freed when unused
  std::map<const std::string*, std::shared_ptr<const std::string>> packed_;
};

}  // namespace gpuledger::http

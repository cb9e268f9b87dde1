// SPDX-License-Identifier: Apache-2.0
#include "http/packed_snapshot.h"

#include "http/gzip.h"

namespace gpuledger::http {

std::shared_ptr<const std::string> PackedSnapshot::pack(const std::shared_ptr<const Snapshot>& snapshot,
                                                        const std::string& plain) {
  if (snapshot_.lock() != snapshot) {
    packed_.clear();
    snapshot_ = snapshot;
  }
  auto& packed = packed_[&plain];
  if (packed) return packed;
  if (auto bytes = gzip(plain); bytes.ok()) packed = std::make_shared<const std::string>(std::move(*bytes));
  return packed;
}

}  // namespace gpuledger::http

// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/list_items.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/wire_format_lite.h>

namespace gpuledger::identity {

bool parse_items(google::protobuf::io::ZeroCopyInputStream& bytes, google::protobuf::MessageLite& item,
                 const std::function<void()>& each) {
  using google::protobuf::internal::WireFormatLite;
  constexpr uint32_t kItem = WireFormatLite::MakeTag(1, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  google::protobuf::io::CodedInputStream in(&bytes);
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != kItem) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t length = 0;
    // A negative limit would be none.
    if (!in.ReadVarint32(&length) || length > INT32_MAX) return false;
    const auto limit = in.PushLimit(static_cast<int>(length));
    item.Clear();
    if (!item.MergeFromCodedStream(&in) || !in.CheckEntireMessageConsumedAndPopLimit(limit)) return false;
    each();
  }
  return in.ConsumedEntireMessage();
}

}  // namespace gpuledger::identity

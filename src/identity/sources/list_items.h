// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace google::protobuf {
class MessageLite;
namespace io {
class ZeroCopyInputStream;
}
}  // namespace google::protobuf

namespace gpuledger::identity {

// Every list we read has its items in field 1. They are parsed into `item` one by one. False: not such a message;
// `each` may have seen a part of it.
bool parse_items(google::protobuf::io::ZeroCopyInputStream& bytes, google::protobuf::MessageLite& item,
                 const std::function<void()>& each);

}  // namespace gpuledger::identity

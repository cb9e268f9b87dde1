// SPDX-License-Identifier: Apache-2.0
#include "net/inflater.h"

#include <zlib.h>

#include <array>

namespace gpuledger::net {

Inflater::Inflater() : stream_(new z_stream{}) {
  if (inflateInit2(stream_, 15 + 16) != Z_OK) {  // + 16: only gzip
    delete stream_;
    stream_ = nullptr;
  }
}

Inflater::~Inflater() {
  if (stream_ != nullptr) inflateEnd(stream_);
  delete stream_;
}

Status Inflater::feed(std::string_view packed, const std::function<bool(std::string_view)>& take) {
  if (stream_ == nullptr) return Error{Code::kInternal, "zlib: out of memory"};
  if (complete_ && !packed.empty()) return Error{Code::kMalformed, "bytes after the end of a gzip body"};
  std::array<char, 16 << 10> plain;
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream_->avail_in = static_cast<uInt>(packed.size());
  do {
    stream_->next_out = reinterpret_cast<Bytef*>(plain.data());
    stream_->avail_out = static_cast<uInt>(plain.size());
    const int outcome = inflate(stream_, Z_NO_FLUSH);
    // Z_BUF_ERROR: it needs more input, which is no error.
    if (outcome != Z_OK && outcome != Z_STREAM_END && outcome != Z_BUF_ERROR)
      return Error{Code::kMalformed, "a body that is not gzip"};
    const size_t size = plain.size() - stream_->avail_out;
    if (size > 0 && !take({plain.data(), size})) return ok_status();
    if (outcome == Z_STREAM_END) {
      complete_ = true;
      if (stream_->avail_in > 0) return Error{Code::kMalformed, "bytes after the end of a gzip body"};
      return ok_status();
    }
  } while (stream_->avail_out == 0 || stream_->avail_in > 0);
  return ok_status();
}

}  // namespace gpuledger::net

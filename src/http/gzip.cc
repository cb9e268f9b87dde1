// SPDX-License-Identifier: Apache-2.0
#include "http/gzip.h"

#include <zlib.h>

#include <limits>

namespace gpuledger::http {

Result<std::string> gzip(std::string_view plain, int level) {
  if (plain.size() > std::numeric_limits<uInt>::max() / 2) return Error{Code::kNotSupported, "gzip: input too large"};
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;  // +16: a gzip header and not zlib's
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return Error{Code::kInternal, "gzip: zlib could not start"};
  std::string packed(deflateBound(&stream, plain.size()), '\0');
  // zlib's interface is older than const; it does not write to the input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int outcome = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  packed.shrink_to_fit();  // it is kept, at a fifth of the possible size
  deflateEnd(&stream);
  packed.shrink_to_fit();  // allocated as large as the plain text
  if (outcome != Z_STREAM_END) return Error{Code::kInternal, "gzip: zlib failed"};
  return packed;
}

}  // namespace gpuledger::http

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "expose/family_sink.h"
#include "model/format.h"

namespace gpuledger::expose {

// Appends families to one string, in either format. HELP and TYPE are written with the first sample, so that a family
// without samples is absent.
class TextWriter final : public FamilySink {
 public:
  TextWriter(Format format, size_t expected_bytes) : format_(format) { out_.reserve(expected_bytes); }

  void begin_family(FamilyHead head) override;
  size_t bytes() const { return out_.size(); }
  std::string take();

 private:
  void write(std::string_view labels, const Value& value, std::string_view extra) override;
  void write_histogram(std::string_view labels, const DurationHistogram& histogram);
  void write_header();
  void begin_sample(std::string_view suffix, std::string_view labels, std::string_view extra);

  Format format_;
  std::string out_;
  FamilyHead head_;
  bool header_due_ = false;
};

}  // namespace gpuledger::expose

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expose/row.h"

namespace gpuledger::expose {

struct Family {
  std::string_view collector;
  std::string name;  // after --metric-prefix if it begins with '_'
  MetricType type;
  std::string unit;    // the end of the name, or empty
  std::string labels;  // in print order, separated by blanks
  std::string help;
  bool can_be_absent;
  bool can_be_left_out;                                           // by --max-series, a part of it
  std::function<void(const View& view, FamilySink& sink)> write;  // its samples
  // The samples of each entry; an account may have several.
  std::function<void(const View& view, const std::function<void(const Account&, size_t samples)>& take)> count;
};

// THE table of metrics, in the order of the exposition. docs/metrics.md is made from it.
std::span<const Family> catalog();

std::string full_name(const Family& family, std::string_view process_prefix);

template <typename Entry, size_t kCount>
std::span<const Row<Entry>> rows_of(const Row<Entry> (&rows)[kCount]) {
  return rows;
}

// Joins the tables of the collectors into one.
class CatalogBuilder {
 public:
  explicit CatalogBuilder(std::string_view collector) : collector_(collector) {}

  // for_each(view, visit) visits each entry of the rows' list with its labels. prefix is put before the rows' names,
  // subject in place of {} in their HELP.
  template <typename Entry, typename ForEach>
  void add(std::span<const Row<Entry>> rows, std::string_view labels, ForEach for_each, std::string_view prefix = {},
           std::string_view subject = {}) {
    for (const Row<Entry>& row : rows) {
      Family family = head_of(prefix, row.name, row.type, row.help, subject);
      family.labels = labels;
      if (!family.labels.empty() && !row.labels.empty()) family.labels += ' ';
      family.labels += row.labels;
      family.can_be_absent = row.can_be_absent;
      family.can_be_left_out = !std::is_same_v<decltype(account_of(std::declval<const Entry&>())), std::monostate>;
      family.write = [read = row.read, for_each](const View& view, FamilySink& sink) {
        for_each(view, [&](const Entry& entry, std::string_view entry_labels) {
          if (!view.shows(account_of(entry))) return;
          Samples samples(view, sink, entry_labels);
          read(entry, samples);
        });
      };
      family.count = [read = row.read, for_each](const View& view, const auto& take) {
        for_each(view, [&](const Entry& entry, std::string_view entry_labels) {
          CountingSink sink;
          Samples samples(view, sink, entry_labels);
          read(entry, samples);
          take(account_of(entry), sink.samples());
        });
      };
      families_.push_back(std::move(family));
    }
  }
  // A list of the View whose entries have their labels.
  template <typename Entry>
  void add(std::span<const Row<Entry>> rows, std::string_view labels, std::vector<Entry> View::*list,
           std::string Entry::*entry_labels = &Entry::labels, std::string_view subject = {}) {
    const auto for_each = [list, entry_labels](const View& view, const auto& visit) {
      for (const Entry& entry : view.*list) visit(entry, entry.*entry_labels);
    };
    add(rows, labels, for_each, {}, subject);
  }
  // One entry: the node.
  void add_of_node(std::span<const Row<View>> rows) {
    add(rows, "", [](const View& view, const auto& visit) { visit(view, view.labels().take()); });
  }

  std::vector<Family> take() { return std::move(families_); }

 private:
  Family head_of(std::string_view prefix, std::string_view name, MetricType type, std::string_view help,
                 std::string_view subject) const;

  std::string_view collector_;
  std::vector<Family> families_;
};

}  // namespace gpuledger::expose

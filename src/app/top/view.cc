// SPDX-License-Identifier: Apache-2.0
#include "app/top/view.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"

namespace gpuledger::app::top {
namespace {

constexpr size_t kLongestFilter = 64;

constexpr SortColumn kSortColumns[] = {
    {SortBy::kGpu, 'G', "GPU", false},       {SortBy::kPid, 'p', "pid", false},
    {SortBy::kWatts, 'w', "watts", true},    {SortBy::kShare, 's', "share", true},
    {SortBy::kMemory, 'm', "memory", true},  {SortBy::kEnergy, 'e', "energy", true},
    {SortBy::kIdle, 'i', "idle time", true}, {SortBy::kOwner, 'o', "owner", false},
    {SortBy::kProcess, 'n', "name", false},
};

constexpr KeyHelp kKeyHelp[] = {
    {"up, down, k, j", "scroll by a line"},
    {"page up, page down", "scroll by a page"},
    {"home, end", "the first, the last line"},
    {"w m e i s", "sort by watts, memory, energy, idle time, share of the GPU"},
    {"o n p G", "sort by owner, name, pid, GPU"},
    {"<  >", "sort by the column to the left, to the right"},
    {"r", "reverse the order"},
    {"/", "filter by owner, container, process or pid; Esc removes it"},
    {"0 to 9, tab", "one GPU: by its index, the next one"},
    {"a", "all GPUs"},
    {"g", "add up by pod, job, container or service, and back"},
    {"h, ?", "this help"},
    {"q, Ctrl-C", "quit"},
};

void scroll(View& view, size_t rows, bool down) {
  if (down) {
    view.offset += std::min(rows, std::numeric_limits<size_t>::max() - view.offset);
  } else {
    view.offset -= std::min(rows, view.offset);
  }
}

void sort_by(View& view, SortBy by) {
  view.sort = by;
  view.reverse = false;
  view.offset = 0;
}

void choose_next_gpu(const std::vector<uint32_t>& gpus, View& view) {
  view.offset = 0;
  if (gpus.empty()) return;
  const auto at = view.gpu ? std::find(gpus.begin(), gpus.end(), *view.gpu) : gpus.end();
  if (at == gpus.end()) {
    view.gpu = gpus.front();
  } else if (at + 1 == gpus.end()) {
    view.gpu.reset();
  } else {
    view.gpu = at[1];
  }
}

// Removes the last character, with all its bytes.
void erase_last(std::string& text) {
  while (!text.empty() && continues_utf8(text.back())) text.pop_back();
  if (!text.empty()) text.pop_back();
}

void type(const Key& key, View& view) {
  view.offset = 0;
  switch (key.kind) {
    case KeyKind::kEnter: view.typing = false; return;
    case KeyKind::kEscape:
      view.typing = false;
      view.filter.clear();
      return;
    case KeyKind::kBackspace: erase_last(view.filter); return;
    case KeyKind::kCharacter:
      if (view.filter.size() < kLongestFilter) view.filter += key.byte;
      return;
    default: return;
  }
}

bool take_letter(char letter, const Surroundings& around, View& view) {
  for (const SortColumn& column : kSortColumns) {
    if (column.key == letter) sort_by(view, column.by);
  }
  if (letter >= '0' && letter <= '9') {
    const auto index = static_cast<uint32_t>(letter - '0');
    if (std::find(around.gpus.begin(), around.gpus.end(), index) != around.gpus.end()) view.gpu = index;
    view.offset = 0;
  }
  const auto column = static_cast<size_t>(view.sort);
  switch (letter) {
    case 'q':
    case 'Q': return false;
    case 'k': scroll(view, 1, false); break;
    case 'j': scroll(view, 1, true); break;
    case 'r': view.reverse = !view.reverse; break;
    case '<':
      if (column > 0) sort_by(view, kSortColumns[column - 1].by);
      break;
    case '>':
      if (column + 1 < std::size(kSortColumns)) sort_by(view, kSortColumns[column + 1].by);
      break;
    case '/': view.typing = true; break;
    case 'a':
      view.gpu.reset();
      view.offset = 0;
      break;
    case 'g':
      view.by_owner = !view.by_owner;
      view.offset = 0;
      break;
    case 'h':
    case '?': view.help = true; break;
    default: break;
  }
  return true;
}

}  // namespace

std::span<const SortColumn> sort_columns() {
  return kSortColumns;
}

std::span<const KeyHelp> key_help() {
  return kKeyHelp;
}

bool take_key(const Key& key, const Surroundings& around, View& view) {
  if (view.help) {  // any key goes back
    view.help = false;
    return !(key.kind == KeyKind::kCharacter && (key.byte == 'q' || key.byte == 'Q'));
  }
  if (view.typing) {
    type(key, view);
    return true;
  }
  switch (key.kind) {
    case KeyKind::kCharacter: return take_letter(key.byte, around, view);
    case KeyKind::kUp: scroll(view, 1, false); break;
    case KeyKind::kDown: scroll(view, 1, true); break;
    case KeyKind::kPageUp: scroll(view, around.page, false); break;
    case KeyKind::kPageDown: scroll(view, around.page, true); break;
    case KeyKind::kHome: view.offset = 0; break;
    case KeyKind::kEnd: view.offset = std::numeric_limits<size_t>::max(); break;
    case KeyKind::kTab: choose_next_gpu(around.gpus, view); break;
    case KeyKind::kEscape: view.filter.clear(); break;
    case KeyKind::kEnter:
    case KeyKind::kBackspace: break;
  }
  return true;
}

}  // namespace gpuledger::app::top

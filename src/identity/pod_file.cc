#include "identity/pod_file.h"

#include "base/file.h"
#include "identity/pod_json.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestPodList = 64 << 20;

}  // namespace

PodFile::PodFile(std::string path, PodLabelList labels) : path_(std::move(path)), labels_(std::move(labels)) {}

std::shared_ptr<const PodView> PodFile::view() const {
  const std::lock_guard lock(mutex_);
  const auto text = read_file(path_, kLargestPodList);
  if (!text.ok()) {
    health_.fails(code_name(text.error().code), text.error().message);
    return view_;
  }
  if (*text == last_text_) return view_;
  last_text_ = *text;
  auto list = parse_pod_list(*text, labels_);
  if (!list.ok()) {
    health_.fails(code_name(list.error().code), path_ + ": " + list.error().message);
    return view_;
  }
  std::vector<std::shared_ptr<const Pod>> pods;
  for (Pod& pod : list->pods) pods.push_back(std::make_shared<const Pod>(std::move(pod)));
  view_ = std::make_shared<const PodView>(std::move(pods));
  health_.works();
  return view_;
}

}  // namespace gpuledger::identity

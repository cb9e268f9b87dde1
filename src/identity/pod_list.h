#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger::identity {

struct PodName {
  std::string name_space;
  std::string pod;
  std::string uid;
};

// The pods of this node at one moment. Immutable once made.
struct PodView {
  struct Container {
    PodName pod;
    std::string name;
  };
  std::map<std::string, PodName, std::less<>> by_uid;
  std::map<std::string, Container, std::less<>> by_container_id;
};

// Where pod names come from. view() never blocks: whoever fetches does so elsewhere.
class PodDirectory {
 public:
  virtual ~PodDirectory() = default;
  virtual std::shared_ptr<const PodView> view() = 0;  // never null
};

// A Kubernetes PodList as JSON, the form of a kubelet's /pods.
Result<PodView> parse_pod_list(std::string_view json);

// A PodList in a file; read again when it changes. What the simulated node has instead of a kubelet.
class PodListFile final : public PodDirectory {
 public:
  explicit PodListFile(std::string path) : path_(std::move(path)) {}
  std::shared_ptr<const PodView> view() override;

 private:
  std::string path_;
  std::string last_text_;
  std::shared_ptr<const PodView> view_ = std::make_shared<PodView>();
};

}  // namespace gpuledger::identity

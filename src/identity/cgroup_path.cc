// SPDX-License-Identifier: Apache-2.0
#include "identity/cgroup_path.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "identity/cgroup_segment.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestCgroupText = 64 << 10;
constexpr size_t kLongestLine = 4096 + 256;  // the kernel's path buffer and the fields before the path
constexpr int kMostUps = 32;
constexpr size_t kLongestUnit = 128;

struct Line {
  std::string_view path;  // without "/.." and " (deleted)"
  bool ups = false;       // the path had "/.." in front
  bool of_systemd = false;
};

// False for paths that the kernel never prints.
bool has_proper_segments(std::string_view path) {
  if (path == "/") return true;
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment.empty() || segment == "." || segment == "..") return false;
    path.remove_prefix(segment.size());
  }
  return true;
}

std::optional<Line> parse_line(std::string_view text) {
  if (text.size() > kLongestLine || text.find('\0') != std::string_view::npos) return {};
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos || !is_number(text.substr(0, first))) return {};
  const std::string_view controllers = text.substr(first + 1, second - first - 1);
  Line line{.path = text.substr(second + 1)};
  const bool version_two = text.substr(0, first) == "0" && controllers.empty();
  line.of_systemd = version_two || controllers == "name=systemd";
  constexpr std::string_view kDeleted = " (deleted)";
  if (version_two && line.path.ends_with(kDeleted)) line.path.remove_suffix(kDeleted.size());
  if (!line.path.starts_with('/')) return {};
  int ups = 0;
  while (line.path == "/.." || line.path.starts_with("/../")) {
    line.path.remove_prefix(3);
    if (++ups > kMostUps) return {};
  }
  line.ups = ups > 0;
  if (line.path.empty()) line.path = "/";
  if (!has_proper_segments(line.path)) return {};
  return line;
}

using Payer = CgroupHome::Payer;

// One parsed line. Views point into the line.
struct Finding {
  PodUidText pod;
  ContainerSegment container;
  ContainerSegment node;  // the container that the pod is in
  std::string_view node_path;
  const BatchScheduler* scheduler = nullptr;
  std::string_view job;
  std::string_view step;
  std::string_view step_path;
  std::string_view unit;
  std::string_view uid;
  Payer payer = Payer::kHost;
  bool whole_path = true;
  bool of_systemd = false;

  bool nested_pod() const { return payer == Payer::kContainer && !pod.empty(); }

  // Precedence of lines. On mixed nodes the v2 line often shows only the runtime's own service.
  int rank() const {
    switch (payer) {
      case Payer::kPod: return 5;
      case Payer::kContainer: return nested_pod() ? 4 : 3;
      case Payer::kJob: return 2;
      case Payer::kUser: return 1;
      case Payer::kHost: break;
    }
    return unit.empty() ? 0 : 1;
  }
};

// Walks a path from the root to the leaf.
class Walk {
 public:
  Walk(const Line& line, std::span<const BatchScheduler> schedulers) : path_(line.path), schedulers_(schedulers) {
    place_.after_up = line.ups;
    found_.whole_path = !line.ups;
    found_.of_systemd = line.of_systemd;
  }

  Finding run() {
    std::string_view rest = path_ == "/" ? std::string_view() : path_;
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::string_view segment = rest.substr(0, rest.find('/'));
      rest.remove_prefix(segment.size());
      see(segment);
      place_ = {segment, place_.parent, false, place_.below_ecs || segment == "ecs"};
    }
    return found_;
  }

 private:
  void see(std::string_view segment) {
    below_user_ = below_user_ || is_user_segment(segment);
    see_owner(segment);
    if (!below_user_) see_job(segment);
    const bool of_the_host = !payer_is_certain_;
    see_payer(segment);
    if (!found_.pod.empty() || !found_.container.runtime.empty()) return;
    if (found_.uid.empty() && found_.payer == Payer::kUser) found_.uid = uid_of_user_segment(segment);
    if (is_service(segment) && of_the_host && !below_user_ && found_.unit.empty()) found_.unit = segment;
  }

  // The first segment that may have tenants. A service that runs the node's containers or jobs has none itself.
  void see_payer(std::string_view segment) {
    if (payer_is_certain_) return;
    payer_is_certain_ = true;
    if (below_user_) {
      found_.payer = Payer::kUser;
    } else if (!found_.pod.empty()) {
      found_.payer = Payer::kPod;
    } else if (!found_.container.runtime.empty()) {
      found_.payer = Payer::kContainer;
    } else if (!found_.job.empty()) {
      found_.payer = Payer::kJob;
    } else {
      payer_is_certain_ = may_be_delegated(segment, schedulers_);
    }
  }

  void see_owner(std::string_view segment) {
    if (just_in_pod_) {
      just_in_pod_ = false;
      found_.container = pod_child(segment);
      return;
    }
    if (!found_.pod.empty()) return;
    if (const auto pod = below_user_ ? std::nullopt : pod_segment(segment, place_)) {
      found_.pod = pod->uid;
      found_.node = std::exchange(found_.container, pod->container);
      just_in_pod_ = found_.container.runtime.empty();
      return;
    }
    if (!found_.container.runtime.empty()) return;
    const ContainerSegment container = lone_container(segment, place_);
    if (below_user_ && !user_may_run(container)) return;
    found_.container = container;
    if (!container.runtime.empty()) found_.node_path = path_until(segment);
  }

  void see_job(std::string_view segment) {
    if (just_in_job_) {
      just_in_job_ = false;
      found_.step = found_.scheduler->step(segment);
      if (!found_.step.empty()) found_.step_path = path_until(segment);
    }
    for (auto it = schedulers_.begin(); found_.job.empty() && it != schedulers_.end(); ++it) {
      found_.job = it->job(segment, place_);
      found_.scheduler = &*it;
      just_in_job_ = !found_.job.empty();
    }
  }

  std::string_view path_until(std::string_view segment) const {
    return path_.substr(0, static_cast<size_t>(segment.data() + segment.size() - path_.data()));
  }

  std::string_view path_;
  std::span<const BatchScheduler> schedulers_;
  SegmentPlace place_;
  Finding found_;
  bool below_user_ = false;
  bool payer_is_certain_ = false;
  bool just_in_pod_ = false;
  bool just_in_job_ = false;
};

// Folds the lines of a file into one finding.
class Verdicts {
 public:
  void add(const Finding& line) {
    seen_ = true;
    if (line.payer == Payer::kUser && !line.container.id.empty()) users_container_ = line.container.id;
    const int rank = line.rank();
    if (rank < rank_) return;
    if (rank > rank_) {
      best_ = line;
      rank_ = rank;
      conflict_ = false;
      nested_conflict_ = false;
    } else {
      merge(line);
    }
  }

  CgroupHome home() const;

 private:
  void merge(const Finding& line) {
    see_conflict(line);
    best_.whole_path = best_.whole_path && line.whole_path;
    const bool vague = best_.container.runtime == "cri" || best_.container.runtime == "container";
    if (best_.container.runtime.empty() || (best_.container.id.empty() && !line.container.id.empty()) ||
        (vague && !line.container.id.empty())) {
      best_.container = line.container;
    }
    if (differ(line.step, best_.step)) best_.step = best_.step_path = {};
    if (best_.job.empty()) {
      best_.job = line.job;
      best_.scheduler = line.scheduler;
    }
    if (best_.step.empty()) {
      best_.step = line.step;
      best_.step_path = line.step_path;
    }
    // systemd moves a process in its own hierarchy first; the others may lag or stop at the slice.
    if ((line.of_systemd && !best_.of_systemd) || (best_.unit.empty() && best_.uid.empty())) {
      best_.unit = line.unit;
      best_.uid = line.uid;
      best_.of_systemd = line.of_systemd;
      if (rank_ <= 1) best_.payer = line.payer;
    }
  }

  // If two lines name different payers, none is named. Contradictions below the payer do not matter: a tenant must not
  // avoid payment by making them.
  void see_conflict(const Finding& line) {
    const bool containers = differ(line.container.id, best_.container.id);
    const bool pods = !(line.pod == best_.pod) || containers;
    if (best_.nested_pod()) {
      conflict_ = conflict_ || differ(line.node.id, best_.node.id);
      nested_conflict_ = nested_conflict_ || pods;
    } else if (best_.payer == Payer::kPod) {
      conflict_ = conflict_ || pods;
    } else if (best_.payer == Payer::kContainer) {
      conflict_ = conflict_ || containers;
    } else if (best_.payer == Payer::kJob) {
      conflict_ = conflict_ || differ(line.job, best_.job) || line.scheduler != best_.scheduler;
    }
  }
  static bool differ(std::string_view a, std::string_view b) { return !a.empty() && !b.empty() && a != b; }

  Finding best_;
  std::string_view users_container_;  // in a hierarchy that a user owns
  int rank_ = -1;
  bool seen_ = false;
  bool conflict_ = false;
  bool nested_conflict_ = false;
};

std::string_view runtime_without_container(const Finding& found) {
  switch (found.payer) {
    case Payer::kPod:
    case Payer::kContainer: return "pod";
    case Payer::kJob: return found.scheduler->word;
    case Payer::kUser: return "user";
    case Payer::kHost: break;
  }
  return found.unit.empty() ? "host" : "systemd";
}

CgroupHome Verdicts::home() const {
  CgroupHome home;
  if (!seen_ || conflict_) {
    home.verdict = conflict_ ? CgroupHome::Verdict::kAmbiguous : CgroupHome::Verdict::kInvalid;
    return home;
  }
  Finding found = best_;
  if (nested_conflict_) {
    found.pod = {};
    found.container = found.node;
  }
  // One user-owned hierarchy is enough to doubt it.
  if (!found.container.id.empty() && found.container.id == users_container_) found.payer = Payer::kUser;
  home.payer = found.payer;
  home.whole_path = found.whole_path;
  home.runtime = found.container.runtime;
  if (home.runtime.empty()) home.runtime = runtime_without_container(found);
  home.container_id = without_unit_escapes(found.container.id);
  home.pod_uid = found.pod.view();
  if (found.nested_pod()) {
    home.node.runtime = found.node.runtime;
    home.node.container_id = without_unit_escapes(found.node.id);
    if (found.whole_path) home.node.cgroup = found.node_path;
  }
  home.scheduler = found.job.empty() ? nullptr : found.scheduler;
  home.job = found.job;
  home.step = found.step;
  if (!is_number(found.job)) home.step_cgroup = found.step_path;
  home.unit = clean_text(found.unit, kLongestUnit);
  home.user = found.uid;
  const bool asks = found.payer == Payer::kPod || found.payer == Payer::kContainer;
  home.ask_kubernetes = asks && !home.container_id.empty();
  return home;
}

// Calls `see` for each line that the kernel could have written.
template <typename See>
void each_line(std::string_view text, See see) {
  if (text.size() >= kLargestCgroupText) {
    text = text.substr(0, kLargestCgroupText);
    text = text.substr(0, text.rfind('\n') + 1);  // a truncated line proves nothing
  }
  while (!text.empty()) {
    if (const auto line = parse_line(take_until(text, '\n'))) see(*line);
  }
}

}  // namespace

CgroupHome parse_cgroup(std::string_view text, std::span<const BatchScheduler> schedulers) {
  Verdicts verdicts;
  Line last;
  each_line(text, [&](const Line& line) {
    // v1 prints the same path a dozen times.
    if (!line.of_systemd && line.path == last.path && line.ups == last.ups) return;
    last = line;
    verdicts.add(Walk(line, schedulers).run());
  });
  return verdicts.home();
}

bool lives_below(std::string_view text, std::string_view cgroup) {
  bool below = false;
  each_line(text, [&](const Line& line) {
    const std::string_view rest = line.path.substr(std::min(line.path.size(), cgroup.size()));
    below |= !line.ups && line.path.starts_with(cgroup) && (rest.empty() || rest.front() == '/');
  });
  return below && !cgroup.empty();
}

}  // namespace gpuledger::identity

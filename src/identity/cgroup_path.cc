#include "identity/cgroup_path.h"

#include <algorithm>
#include <optional>

#include "base/quote.h"
#include "identity/cgroup_segment.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestFile = 64 << 10;
constexpr size_t kLongestLine = 4096 + 256;  // the kernel's path buffer and what stands before the path
constexpr int kMostUps = 32;
constexpr size_t kLongestUnit = 128;

struct Line {
  std::string_view path;  // without "/.." and " (deleted)"
  bool ups = false;       // the path had "/.." in front
  bool of_systemd = false;
};

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

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

// What one line says. Views point into the line.
struct Finding {
  PodUidText pod;
  ContainerSegment container;
  std::string_view job;
  std::string_view step;
  std::string_view slurm_path;
  std::string_view unit;
  std::string_view uid;
  bool user = false;  // the container, or else the process, is below a user's slice
  bool of_systemd = false;

  // Which kind of line beats which. On mixed nodes the v2 line often shows the runtime's own service only.
  int rank() const {
    if (!pod.empty()) return 4;
    if (!container.runtime.empty()) return 3;
    if (!job.empty()) return 2;
    return unit.empty() && !user ? 0 : 1;
  }
};

// Walks a path from the root to the leaf.
class Walk {
 public:
  explicit Walk(const Line& line) : path_(line.path) {
    place_.after_up = line.ups;
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
    if (!below_user_) see_slurm(segment);
    if (!found_.pod.empty() || !found_.container.runtime.empty()) return;
    found_.user = below_user_;
    if (found_.uid.empty()) found_.uid = uid_of_user_segment(segment);
    constexpr std::string_view kService = ".service";
    const bool service = segment.size() > kService.size() && segment.ends_with(kService);
    if (service && !below_user_ && found_.unit.empty()) found_.unit = segment;
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
      found_.container = pod->container;  // what was found before is the node of a cluster in containers
      just_in_pod_ = found_.container.runtime.empty();
      return;
    }
    if (!found_.container.runtime.empty()) return;
    const ContainerSegment container = lone_container(segment, place_);
    if (!below_user_ || user_may_run(container)) found_.container = container;
  }

  void see_slurm(std::string_view segment) {
    if (just_in_job_) {
      just_in_job_ = false;
      found_.step = slurm_step(segment);
      if (!found_.step.empty()) found_.slurm_path = path_until(segment);
    } else if (found_.job.empty()) {
      found_.job = slurm_job(segment, place_);
      just_in_job_ = !found_.job.empty();
    }
  }

  std::string_view path_until(std::string_view segment) const {
    return path_.substr(0, static_cast<size_t>(segment.data() + segment.size() - path_.data()));
  }

  std::string_view path_;
  SegmentPlace place_;
  Finding found_;
  bool below_user_ = false;
  bool just_in_pod_ = false;
  bool just_in_job_ = false;
};

// Folds the lines of a file into one finding.
class Verdicts {
 public:
  void add(const Finding& line) {
    seen_ = true;
    const int rank = line.rank();
    if (rank < rank_) return;
    if (rank > rank_) {
      best_ = line;
      rank_ = rank;
      conflict_ = false;
    } else {
      merge(line);
    }
  }

  CgroupHome home() const;

 private:
  void merge(const Finding& line) {
    conflict_ = conflict_ || !(line.pod == best_.pod) || differ(line.container.id, best_.container.id) ||
                differ(line.job, best_.job);
    const bool vague = best_.container.runtime == "cri" || best_.container.runtime == "container";
    if (best_.container.runtime.empty() || (best_.container.id.empty() && !line.container.id.empty()) ||
        (vague && !line.container.id.empty())) {
      best_.container = line.container;
    }
    if (differ(line.step, best_.step)) best_.step = best_.slurm_path = {};
    if (best_.job.empty()) best_.job = line.job;
    if (best_.step.empty()) {
      best_.step = line.step;
      best_.slurm_path = line.slurm_path;
    }
    // systemd moves a process in its own hierarchy first; the controllers' may lag or stop at the slice.
    if ((line.of_systemd && !best_.of_systemd) || (best_.unit.empty() && best_.uid.empty())) {
      best_.unit = line.unit;
      best_.uid = line.uid;
      best_.of_systemd = line.of_systemd;
      if (rank_ == 1) best_.user = line.user;
    }
    if (rank_ > 1) best_.user = best_.user || line.user;  // one hierarchy that a user owns is enough for doubt
  }
  static bool differ(std::string_view a, std::string_view b) { return !a.empty() && !b.empty() && a != b; }

  Finding best_;
  int rank_ = -1;
  bool seen_ = false;
  bool conflict_ = false;
};

CgroupHome Verdicts::home() const {
  CgroupHome home;
  if (!seen_ || conflict_) {
    home.verdict = conflict_ ? CgroupHome::Verdict::kAmbiguous : CgroupHome::Verdict::kInvalid;
    return home;
  }
  constexpr std::string_view kWithoutContainer[] = {"host", "", "slurm", "", "pod"};
  home.runtime = best_.container.runtime;
  if (home.runtime.empty()) home.runtime = rank_ == 1 ? (best_.user ? "user" : "systemd") : kWithoutContainer[rank_];
  home.container_id = without_unit_escapes(best_.container.id);
  home.pod_uid = best_.pod.view();
  home.slurm_job = best_.job;
  home.slurm_step = best_.step;
  if (best_.job.starts_with('s')) home.slurm_cgroup = best_.slurm_path;
  home.unit = clean_text(best_.unit, kLongestUnit);
  home.user = best_.uid;
  home.ask_kubernetes = !home.container_id.empty() && !best_.user;
  return home;
}

}  // namespace

CgroupHome parse_cgroup(std::string_view text) {
  if (text.size() >= kLargestFile) {
    text = text.substr(0, kLargestFile);
    text = text.substr(0, text.rfind('\n') + 1);  // what is left of a cut line proves nothing
  }
  Verdicts verdicts;
  Line last;
  while (!text.empty()) {
    const std::string_view raw = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), raw.size() + 1));
    const auto line = parse_line(raw);
    if (!line) continue;
    // v1 prints the same path a dozen times.
    if (!line->of_systemd && line->path == last.path && line->ups == last.ups) continue;
    last = *line;
    verdicts.add(Walk(*line).run());
  }
  return verdicts.home();
}

}  // namespace gpuledger::identity

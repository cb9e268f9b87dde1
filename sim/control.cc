// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>

#include "yaml_reader.h"

namespace gpuledger::sim {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The lines that `these` has more often than `those`.
std::vector<std::string> more_of(std::vector<std::string> these, std::vector<std::string> those) {
  std::vector<std::string> more;
  std::sort(these.begin(), these.end());
  std::sort(those.begin(), those.end());
  std::set_difference(these.begin(), these.end(), those.begin(), those.end(), std::back_inserter(more));
  return more;
}

struct Entry {
  bool begins = false;
  Millis at = 0;
  std::string line;
};

// "begin 1200 {do: gpu_lost, gpu: 1}". False: not about a command.
bool parse_entry(const std::string& text, Entry* entry) {
  std::istringstream words(text);
  std::string kind;
  if (!(words >> kind >> entry->at) || (kind != "begin" && kind != "end")) return false;
  entry->begins = kind == "begin";
  words.get();  // the space
  return static_cast<bool>(std::getline(words, entry->line));
}

}  // namespace

// The file of what was seen, locked: several programs may see one node.
class Control::Journal {
 public:
  static Result<Journal> open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ::flock(fd, LOCK_EX) != 0) {
      const std::string why = std::strerror(errno);
      if (fd >= 0) ::close(fd);
      return Error{Code::kPermission, path + ": cannot be written: " + why};
    }
    return Journal(path, fd);
  }
  Journal(Journal&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  Journal& operator=(Journal&&) = delete;
  ~Journal() {
    if (fd_ >= 0) ::close(fd_);
  }

  // The entries after its first line. That of another node, which an earlier test left, is emptied.
  std::vector<std::string> read(int64_t epoch_micros) {
    const std::string first = "epoch " + std::to_string(epoch_micros);
    std::vector<std::string> entries = lines_of(text_of(path_));
    if (entries.empty() || entries[0] != first) {
      (void)!::ftruncate(fd_, 0);
      add(first);
      return {};
    }
    entries.erase(entries.begin());
    return entries;
  }

  void add(const std::string& entry) {
    const std::string line = entry + "\n";
    (void)!::write(fd_, line.data(), line.size());
  }

 private:
  Journal(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
};

Control::Control(std::string path, int64_t epoch_micros)
    : path_(std::move(path)), seen_path_(path_ + ".seen"), epoch_micros_(epoch_micros) {}

// A file that was replaced within the clock's grain may look the same, so a young one is always read.
bool Control::file_changed() {
  struct stat stamp {};
  if (::stat(path_.c_str(), &stamp) != 0) stamp = {};
  const bool same = stamp.st_ino == stamp_.st_ino && stamp.st_size == stamp_.st_size &&
                    stamp.st_mtim.tv_sec == stamp_.st_mtim.tv_sec && stamp.st_mtim.tv_nsec == stamp_.st_mtim.tv_nsec;
  stamp_ = stamp;
  if (text_ && same && std::time(nullptr) - stamp.st_mtim.tv_sec > 1) return false;
  std::string text = text_of(path_);
  if (text_ == text) return false;
  text_ = std::move(text);
  return true;
}

std::optional<Millis> Control::look(Millis now, Scenario* scenario) {
  std::optional<Millis> earliest;
  if (path_.empty() || !file_changed()) return earliest;
  const Status taken = take_changes(now, scenario, &earliest);
  error_ = taken.ok() ? "" : taken.error().message;
  return earliest;
}

Status Control::take_changes(Millis now, Scenario* scenario, std::optional<Millis>* earliest) {
  GL_TRY(journal, Journal::open(seen_path_));
  const std::vector<std::string> seen = journal.read(epoch_micros_);
  while (followed_ < seen.size()) GL_TRY_STATUS(take(seen[followed_++], scenario, earliest));

  std::vector<std::string> active, fresh;
  for (const Command& command : active_) active.push_back(command.line);
  const std::vector<std::string> wanted = lines_of(*text_);
  for (const std::string& line : more_of(active, wanted)) fresh.push_back("end " + std::to_string(now) + " " + line);
  for (const std::string& line : more_of(wanted, active)) fresh.push_back("begin " + std::to_string(now) + " " + line);
  for (const std::string& entry : fresh) {
    GL_TRY_STATUS(take(entry, scenario, earliest));
    journal.add(entry);
    ++followed_;
  }
  return ok_status();
}

Status Control::take(const std::string& entry, Scenario* scenario, std::optional<Millis>* earliest) {
  Entry parsed;
  if (!parse_entry(entry, &parsed)) return ok_status();
  *earliest = std::min(earliest->value_or(parsed.at), parsed.at);
  if (parsed.begins) return begin(parsed.line, parsed.at, scenario);
  end(parsed.line, parsed.at, scenario);
  return ok_status();
}

Status Control::begin(const std::string& line, Millis at, Scenario* scenario) {
  const auto sizes = [](const Scenario& of) {
    return std::array{of.faults.size(), of.false_answers.size(), of.latencies.size(), of.reloads.size(),
                      of.processes.size()};
  };
  ParseFailure failure(path_);
  Scenario changed = *scenario;  // a command that is wrong changes nothing
  try {
    parse_command(YAML::Load(line), at, &failure, &changed);
  } catch (const YAML::Exception& error) {
    return Error{Code::kMalformed, path_ + ": not YAML: " + error.msg + ": " + line};
  }
  if (failure.failed()) return Error{Code::kMalformed, failure.message() + ": " + line};
  active_.push_back({line, sizes(*scenario), sizes(changed)});
  *scenario = std::move(changed);
  return ok_status();
}

void Control::end(const std::string& line, Millis at, Scenario* scenario) {
  const auto command =
      std::find_if(active_.begin(), active_.end(), [&](const Command& each) { return each.line == line; });
  if (command == active_.end()) return;
  const auto& [faults, answers, latencies, reloads, processes] = command->first;
  const auto& [faults_end, answers_end, latencies_end, reloads_end, processes_end] = command->last;
  for (size_t i = faults; i < faults_end; ++i) scenario->faults[i].until = at;
  for (size_t i = answers; i < answers_end; ++i) scenario->false_answers[i].until = at;
  for (size_t i = latencies; i < latencies_end; ++i) scenario->latencies[i].until = at;
  for (size_t i = reloads; i < reloads_end; ++i) scenario->reloads[i].back = at;
  for (size_t i = processes; i < processes_end; ++i) {
    scenario->processes[i].end = std::min(scenario->processes[i].end, at);
  }
  active_.erase(command);
}

void Control::tell(const std::string& what) const {
  if (path_.empty()) return;
  if (auto journal = Journal::open(seen_path_); journal.ok()) journal->add(what);
}

}  // namespace gpuledger::sim

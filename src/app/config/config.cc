// SPDX-License-Identifier: Apache-2.0
#include "app/config/config.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "app/config/config_given.h"
#include "app/config/config_help.h"
#include "app/config/config_values.h"
#include "base/duration.h"
#include "base/file.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr size_t kLargestConfigFile = 1 << 20;

// Where the user set it; empty: it has the default.
std::string origin_of(std::string_view name, const GivenSettings& given) {
  const auto found = given.find(find_setting(name));
  return found == given.end() ? std::string() : found->second.origin;
}

// Process scans and idle checks are made of samples, so their intervals cannot be shorter. A default adapts to a given
// value, so that POLL_INTERVAL=500ms or --dcgm-update-frequency=30s alone work; two given values that contradict each
// other are an error.
Status reconcile_intervals(const GivenSettings& given, Config& config) {
  struct Follower {
    std::string_view name;
    Nanoseconds Config::*value;
  };
  constexpr Follower kFollowers[] = {{"process-scan-interval", &Config::process_scan_interval},
                                     {"idle-interval", &Config::idle_interval}};
  const std::string sample_origin = origin_of("sample-interval", given);
  for (const Follower& follower : kFollowers) {
    const std::string origin = origin_of(follower.name, given);
    if (config.*follower.value >= config.sample_interval) continue;
    if (origin.empty()) {
      config.*follower.value = config.sample_interval;
    } else if (sample_origin.empty()) {
      config.sample_interval = config.*follower.value;
    } else {
      return wrong(origin + ": " + write_duration(config.*follower.value) + " is shorter than " + sample_origin + " (" +
                   write_duration(config.sample_interval) + ")");
    }
  }
  return ok_status();
}

// A flag that the command does not use is a mistake.
Status check_commands(const GivenSettings& flags, const Config& config) {
  const std::string name(config.command->name);
  for (const auto& [setting, value] : flags) {
    if (takes_setting(*config.command, *setting) || setting->member.same(config, Config{})) continue;
    if (!setting->command.empty()) return wrong(value.origin + ": needs the command " + commands_of(*setting));
    return wrong(value.origin + ": not with the command " + name + " (gpu-ledger " + name + " --help lists its flags)");
  }
  return ok_status();
}

Status check_push(const GivenSettings& given, const Config& config) {
  for (const Setting& setting : settings()) {
    if (setting.group != SettingGroup::kPush || config.push_url || setting.member.same(config, Config{})) continue;
    return wrong(origin_of(setting.name, given) + ": needs --push-url");
  }
  if (!config.push_url) return ok_status();
  if (const std::string origin = origin_of("push-queue-size", given);
      !origin.empty() && config.push_queue_dir.empty() && config.push_queue_size > kLargestPushQueueInMemory) {
    return wrong(origin + ": above 16MiB needs --push-queue-dir, because the queue is in memory without it");
  }
  const std::string& user = config.push_url->user_password;
  if (!config.push_password_file.empty()) {
    const std::string origin = origin_of("push-password-file", given);
    if (user.empty()) return wrong(origin + ": needs a user in --push-url (write https://USER@HOST/PATH)");
    if (!user.ends_with(':') || user.find(':') + 1 != user.size())
      return wrong(origin + ": not together with a password in --push-url");
  }
  if (!config.push_bearer_token_file.empty() && !user.empty()) {
    return wrong(origin_of("push-bearer-token-file", given) + ": not together with a user in --push-url");
  }
  return ok_status();
}

// --format is of two commands, with other words for each.
Status check_format(const GivenSettings& given, const Config& config) {
  if (config.format.empty()) return ok_status();
  const std::span<const std::string_view> words =
      config.command->name == "job" ? std::span<const std::string_view>(kJobFormats) : kBillFormats;
  if (std::find(words.begin(), words.end(), config.format) != words.end()) return ok_status();
  return wrong(origin_of("format", given) + ": " + in_quotes(config.format) + " is not one of " + join_choices(words) +
               " for " + std::string(config.command->name));
}

Status check_together(const GivenSettings& given, Config& config) {
  if (!config.sim_scenario.empty() && config.backend != Backend::kSim) {
    return wrong(origin_of("sim-scenario", given) + ": needs --backend=sim");
  }
  const std::pair<const char*, bool> for_dcgm[] = {{"dcgm-library", !config.dcgm_library.empty()},
                                                   {"dcgm-address", !config.dcgm_address.empty()},
                                                   {"dcgm-embedded", config.dcgm_embedded}};
  for (const auto& [name, is_set] : for_dcgm) {
    if (is_set && config.backend != Backend::kDcgm) return wrong(origin_of(name, given) + ": needs --backend=dcgm");
  }
  if (config.dcgm_embedded && !config.dcgm_address.empty()) {
    return wrong(origin_of("dcgm-embedded", given) + ": not together with " + origin_of("dcgm-address", given));
  }
  if (config.exact_time_budget != Config{}.exact_time_budget && config.exact_time == ExactTimeMode::kOff) {
    return wrong(origin_of("exact-time-budget", given) + ": needs --exact-time=auto or on");
  }
  if (config.dcgm_exporter_url && !config.dcgm_exporter_file.empty()) {
    return wrong(origin_of("dcgm-exporter-file", given) + ": not together with " +
                 origin_of("dcgm-exporter-url", given));
  }
  if ((config.dcgm_exporter_url || !config.dcgm_exporter_file.empty()) && config.textfile_dcgm) {
    return wrong(origin_of("textfile-dcgm", given) + ": not in add-on mode, where /gpu/metrics is another exporter's");
  }
  GL_TRY_STATUS(check_push(given, config));
  GL_TRY_STATUS(check_format(given, config));
  return reconcile_intervals(given, config);
}

Status add_config_file(const std::string& path, GivenSettings& given) {
  GL_TRY(text, read_file(path, kLargestConfigFile).about(origin_of("config", given)));
  GL_TRY(from_file, parse_yaml_settings(text, path));
  given.merge(from_file);  // keeps existing entries
  return ok_status();
}

Result<Config> resolve_config(Arguments arguments, const ConfigSources& sources) {
  const auto& environment = sources.environment;
  GivenSettings given = arguments.given;
  add_environment(environment, given);
  GL_TRY_STATUS(add_older_environment(environment, given));
  if (const auto file = given.find(find_setting("config")); file != given.end()) {
    const std::string path = file->second.values.front();
    if (path.empty()) return wrong(file->second.origin + ": needs a path");
    GL_TRY_STATUS(add_config_file(path, given));
  }
  Config config;
  config.command = arguments.command == nullptr ? &sources.commands.front() : arguments.command;
  config.argument = std::move(arguments.argument);
  // The environment and the file are for all commands: what this one does not take is for others.
  std::erase_if(given, [&](const auto& each) {
    const Setting& setting = *each.first;
    return !arguments.given.contains(&setting) && !setting.command.empty() &&
           !is_of_command(setting, config.command->name);
  });
  for (const Setting& setting : settings()) {  // in the table's order, so that the first error reported is stable
    const auto found = given.find(&setting);
    if (found == given.end()) continue;
    GL_TRY_STATUS(setting.member.apply(found->second.values, config).about(found->second.origin));
  }
  GL_TRY_STATUS(check_commands(arguments.given, config));
  GL_TRY_STATUS(check_together(given, config));
  if (config.command->check != nullptr) GL_TRY_STATUS(config.command->check(config));
  config.unknown_environment = unknown_environment(environment);
  config.revision = sources.revision;
  return config;
}

}  // namespace

ConfigSources read_sources(int argc, const char* const* argv, std::span<const Command> commands) {
  ConfigSources sources{{}, {}, commands};
  for (int i = 1; i < argc; ++i) sources.arguments.emplace_back(argv[i]);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const size_t equals = text.find('=');
    if (equals == text.npos) continue;
    sources.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return sources;
}

Result<ParseOutcome> read_config(const ConfigSources& sources) {
  GL_TRY(arguments, parse_arguments(sources.arguments, sources.commands));
  Result<ParseOutcome> outcome{ParseOutcome()};  // filled in place: g++ 12 warns falsely about a move
  if (arguments.help) {
    *outcome = PrintAndExit{arguments.command == nullptr ? write_help(sources.commands)
                                                         : write_command_help(*arguments.command)};
  } else if (arguments.version) {
    *outcome = PrintAndExit{write_version(sources)};
  } else if (arguments.command != nullptr && arguments.command->print != nullptr) {
    if (!arguments.given.empty()) {
      return wrong(arguments.given.begin()->second.origin + ": not with the command " +
                   std::string(arguments.command->name));
    }
    *outcome = PrintAndExit{arguments.command->print(sources, arguments.argument)};
  } else {
    GL_TRY(config, resolve_config(std::move(arguments), sources));
    *outcome = std::move(config);
  }
  return outcome;
}

Result<Config> reread_config(const ConfigSources& sources) {
  GL_TRY(outcome, read_config(sources));
  Config* config = std::get_if<Config>(&outcome);
  if (config == nullptr) return Error{Code::kInternal, "--help and --version have nothing to read again"};
  return std::move(*config);
}

std::vector<std::string> changes_needing_restart(const Config& old, const Config& fresh) {
  std::vector<std::string> changed;
  for (const Setting& setting : settings()) {
    if (setting.effect == SettingEffect::kRestart && !setting.member.same(old, fresh))
      changed.emplace_back(setting.name);
  }
  return changed;
}

void take_live_changes(Config& config, const Config& fresh) {
  for (const Setting& setting : settings()) {
    if (setting.effect == SettingEffect::kLive) setting.member.take(config, fresh);
  }
}

}  // namespace gpuledger::app

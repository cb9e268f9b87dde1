// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_help.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/config_settings.h"
#include "base/version.h"

namespace gpuledger::app {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kHelpColumn = 34;
struct Line {
  std::string_view left;
  std::string_view right;
};
constexpr Line kSignals[] = {
    {"SIGHUP", "reads the config file and the web config file again"},
    {"SIGTERM", "ends within 2 s"},
    {"SIGUSR1", "releases the GPUs, to change MIG or the driver"},
    {"SIGUSR2", "opens the GPUs again"},
};
constexpr Line kExitCodes[] = {{"0", "success"}, {"1", "failure"}, {"2", "usage error"}};
constexpr std::string_view kSummary =
    "books every joule, GPU second and byte of GPU memory to the process that used it";
constexpr std::string_view kOrder =
    "Order of precedence: flag, environment variable GPU_LEDGER_<FLAG_IN_CAPITALS> (GPU_LEDGER_SAMPLE_INTERVAL, "
    "GPU_LEDGER_COLLECTOR_DCGM_MODERN), older variable, config file, default. An empty variable counts as not set. "
    "Durations are written as in Prometheus and Go: 500ms, 10s, 1m30s.";
constexpr std::string_view kEffect =
    "A changed config file takes effect at SIGHUP for the settings marked SIGHUP; for all others at the next start.";

// The table is sorted by group.
bool begins_group(const Setting& setting) {
  return &setting == &settings().front() || (&setting)[-1].group != setting.group;
}

std::string_view title_of(const Setting& setting) {
  return kGroupTitles[static_cast<size_t>(setting.group)];
}

std::string usage_of(const Command& command) {
  return std::string(command.name) + (command.argument.empty() ? "" : " " + std::string(command.argument));
}

std::string flag_text(const Setting& setting) {
  std::string text = setting.form == SettingForm::kSwitch ? "--[no-]" : "--";
  text += setting.name;
  if (!setting.metavar.empty()) text.append(" ").append(setting.metavar);
  return text;
}

std::string default_of(const Setting& setting) {
  if (setting.form != SettingForm::kSwitch || setting.default_text == "auto") return std::string(setting.default_text);
  return setting.default_text == "true" ? "on" : "off";
}

std::string older_names_of(const Setting& setting) {
  std::string names;
  for (const OlderName& older : older_names()) {
    if (older.setting != setting.name) continue;
    if (!names.empty()) names += ", ";
    names.append(older.environment ? "" : "--").append(older.name);
    if (older.form == SettingForm::kSwitch) names += "=false";
  }
  return names;
}

void append_wrapped(std::string& out, std::string_view text, size_t indent, size_t column) {
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (column > indent && column + 1 + word.size() > kColumns) {
      out.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  out += '\n';
}

void append_entry(std::string& out, std::string_view left, std::string_view right) {
  std::string line = "  " + std::string(left);
  if (line.size() + 2 > kHelpColumn) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kHelpColumn, ' ');
  out += line;
  append_wrapped(out, right, kHelpColumn, kHelpColumn);
}

std::string help_of(const Setting& setting) {
  const std::string text(setting.help);
  return setting.command.empty() ? text : "with the command " + commands_of(setting) + ": " + text;
}

// "how often idleness is judged (default 5s; SIGHUP)"
std::string with_notes(const Setting& setting, std::string_view help) {
  std::string notes = setting.default_text.empty() ? "" : "default " + default_of(setting);
  if (setting.effect == SettingEffect::kLive) notes += notes.empty() ? "SIGHUP" : "; SIGHUP";
  return std::string(help) + (notes.empty() ? "" : " (" + notes + ")");
}

std::string effect_of(const Setting& setting) {
  return setting.effect == SettingEffect::kLive ? "SIGHUP" : setting.command.empty() ? "restart" : "";
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

void append_item(std::string& out, std::string_view left, std::string_view right) {
  out.append("- `").append(left).append("` ").append(markdown_cell(right)).append("\n");
}

std::string code_cell(std::string_view text) {
  return text.empty() ? "" : "`" + std::string(text) + "`";
}

// Escapes dashes, so that a copied flag keeps them, and anything at a line's start that roff would interpret.
std::string roff(std::string_view text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

void append_roff_entry(std::string& out, std::string_view left, std::string_view right) {
  out += ".TP\n.B " + roff(left) + "\n" + roff(right) + "\n";
}

}  // namespace

std::string write_help(Commands commands) {
  std::string out = "gpu-ledger:";
  append_wrapped(out, kSummary, 0, out.size());
  out += "\nUsage: gpu-ledger [COMMAND] [FLAGS]\n\nCommands (gpu-ledger help COMMAND says more):\n";
  for (const Command& command : commands) append_entry(out, usage_of(command), command.summary);
  for (const Setting& setting : settings()) {
    if (begins_group(setting)) out.append("\n").append(title_of(setting)).append(":\n");
    append_entry(out, flag_text(setting), with_notes(setting, help_of(setting)));
  }
  append_entry(out, "--help, -h", "this text");
  append_entry(out, "--version, -v, -V", "the version and the commit");
  out += "\nOlder names that still work:\n";
  for (const OlderName& older : older_names()) {
    append_entry(out, (older.environment ? "" : "--") + std::string(older.name), older.stands_for);
  }
  out += '\n';
  append_wrapped(out, kOrder, 0, 0);
  append_wrapped(out, kEffect, 0, 0);
  return out;
}

std::string write_command_help(const Command& command) {
  std::string out = "gpu-ledger " + std::string(command.name) + ":";
  append_wrapped(out, command.summary, 0, out.size());
  out += "\nUsage: gpu-ledger " + usage_of(command) + (command.print == nullptr ? " [FLAGS]\n\n" : "\n\n");
  append_wrapped(out, command.about, 0, 0);
  const auto append_flag = [&](const Setting& setting) {
    append_entry(out, flag_text(setting), with_notes(setting, setting.help));
  };
  const char* own = "\nFlags of this command:\n";
  for (const Setting& setting : settings()) {
    if (!is_of_command(setting, command.name)) continue;
    out += std::exchange(own, "");
    append_flag(setting);
  }
  std::string_view group;
  for (const Setting& setting : settings()) {
    if (!setting.command.empty() || !takes_setting(command, setting)) continue;
    if (std::exchange(group, title_of(setting)) != title_of(setting)) out.append("\n").append(group).append(":\n");
    append_flag(setting);
  }
  out.append("\nExample:\n  ").append(command.example).append("\n\nExit codes:\n");
  for (const Line& line : kExitCodes) {
    if (line.left == "1" && command.failure.empty()) continue;
    append_entry(out, line.left, line.left == "1" ? command.failure : line.right);
  }
  return out;
}

std::string write_version(const ConfigSources& sources) {
  return std::string("gpu-ledger ") + version() + " (commit " +
         (sources.revision.empty() ? "unknown" : sources.revision) + ")\n";
}

std::string write_settings_doc(Commands commands) {
  std::string out =
      "# Settings\n\nGenerated from the tables in src/app/config/config_settings.cc and "
      "src/app/commands/command_table.cc by the build target `gpu_ledger_settings_doc`; do not edit.\n\n";
  out.append(markdown_cell(kOrder)).append("\n\n").append(kEffect).append("\n\n");
  out +=
      "The config file is YAML with the names of the flags, without dashes:\n\n"
      "```yaml\n"
      "listen-address: [\":9400\", \"unix:/run/gpu-ledger.sock\"]\n"
      "sample-interval: 500ms\n"
      "collector:\n"
      "  idle: false\n"
      "```\n";
  for (const Setting& setting : settings()) {
    if (begins_group(setting)) {
      out.append("\n## ").append(title_of(setting)).append("\n\n");
      out += "| flag | variable | default | changes at | older name | meaning |\n|---|---|---|---|---|---|\n";
    }
    out += "| " + code_cell(flag_text(setting)) + " | " + code_cell(environment_name(setting.name)) + " | " +
           code_cell(default_of(setting)) + " | " + effect_of(setting) + " | " + code_cell(older_names_of(setting)) +
           " | " + markdown_cell(help_of(setting)) + " |\n";
  }
  out += "\n## Commands\n\n";
  for (const Command& command : commands) append_item(out, usage_of(command), command.summary);
  out += "\n## Signals\n\n";
  for (const Line& line : kSignals) append_item(out, line.left, line.right);
  out += "\n## Exit codes\n\n";
  for (const Line& line : kExitCodes) append_item(out, line.left, line.right);
  return out;
}

std::string write_man_page(Commands commands) {
  std::string out =
      ".\\\" Generated from the tables in src/app/config/config_settings.cc and src/app/commands/command_table.cc; do "
      "not edit.\n";
  out += std::string(".TH GPU\\-LEDGER 1 \"\" \"gpu\\-ledger ") + version() + "\" \"User Commands\"\n";
  out += ".SH NAME\ngpu\\-ledger \\- " + roff(kSummary) + "\n";
  out += ".SH SYNOPSIS\n.B gpu\\-ledger\n[\\fICOMMAND\\fR] [\\fIFLAGS\\fR]\n.SH COMMANDS\n";
  for (const Command& command : commands) {
    append_roff_entry(out, usage_of(command), std::string(command.summary) + ". " + std::string(command.about));
    out += ".IP\n.B " + roff(command.example) + "\n";
  }
  out += ".SH SETTINGS\n" + roff(kOrder) + "\n.PP\n" + roff(kEffect) + "\n";
  for (const Setting& setting : settings()) {
    if (begins_group(setting)) out += ".SS " + roff(title_of(setting)) + "\n";
    const std::string older = older_names_of(setting);
    append_roff_entry(out, flag_text(setting),
                      with_notes(setting, help_of(setting)) + (older.empty() ? "" : "; older name: " + older));
  }
  append_roff_entry(out, "--help, -h", "this text in short");
  append_roff_entry(out, "--version, -v, -V", "the version and the commit");
  out += ".SH SIGNALS\n";
  for (const Line& line : kSignals) append_roff_entry(out, line.left, line.right);
  out += ".SH EXIT STATUS\n";
  for (const Line& line : kExitCodes) append_roff_entry(out, line.left, line.right);
  return out;
}

}  // namespace gpuledger::app

// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_completion.h"

#include <algorithm>

#include "app/config/config_settings.h"
#include "app/config/config_values.h"

namespace gpuledger::app {
namespace {

using Commands = std::span<const Command>;

enum class ValueKind { kNone, kWords, kFile, kDirectory, kAny };

ValueKind value_kind(const Setting& setting) {
  if (setting.form == SettingForm::kSwitch) return ValueKind::kNone;
  if (!setting.member.words.empty()) return ValueKind::kWords;
  if (setting.metavar == "FILE") return ValueKind::kFile;
  return setting.metavar == "DIR" ? ValueKind::kDirectory : ValueKind::kAny;
}

template <typename Words>
std::string joined(const Words& words, std::string_view separator = " ") {
  std::string out;
  for (const auto& word : words) out.append(out.empty() ? "" : separator).append(word);
  return out;
}

std::string command_names(Commands commands) {
  std::vector<std::string_view> names;
  for (const Command& command : commands) names.push_back(command.name);
  return joined(names);
}

// The words that can be the command's argument; empty: a file, or none.
std::string argument_words(const Command& command, Commands commands) {
  if (command.argument == "[COMMAND]") return command_names(commands);
  const auto choices = split_list(command.argument, '|');
  return choices.size() > 1 ? joined(choices) : "";
}

// Of a switch.
std::string off_flag(const Setting& setting) {
  return "--" + ("no-" + std::string(setting.name));
}

std::vector<std::string> flags_of(const Setting& setting) {
  std::vector<std::string> flags = {"--" + std::string(setting.name)};
  if (setting.form == SettingForm::kSwitch) flags.push_back(off_flag(setting));
  return flags;
}

// The help up to its first stop, short enough to stand beside a flag.
std::string brief(std::string_view help) {
  const size_t end = std::min({help.find(';'), help.find(": "), help.find(". "), help.find(" (")});
  return std::string(help.substr(0, end));
}

// Within single quotes of any shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string names_of_kind(ValueKind kind) {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) {
    if (value_kind(setting) == kind) names.push_back("--" + std::string(setting.name));
  }
  return joined(names, "|");
}

std::string zsh_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_spec(const Setting& setting) {
  const std::string name(setting.name);
  const std::string repeat = setting.form == SettingForm::kList ? "*" : "";
  std::string spec = repeat + "--" + name;
  if (setting.form != SettingForm::kSwitch) spec += "=";
  spec += "[" + zsh_escape(brief(setting.help)) + "]";
  const std::string value = ":" + zsh_escape(setting.metavar) + ":";
  switch (value_kind(setting)) {
    case ValueKind::kNone: return quoted(spec) + " " + quoted(off_flag(setting));
    case ValueKind::kWords: return quoted(spec + value + "(" + joined(setting.member.words) + ")");
    case ValueKind::kFile: return quoted(spec + value + "_files");
    case ValueKind::kDirectory: return quoted(spec + value + "_files -/");
    case ValueKind::kAny: return quoted(spec + value + " ");
  }
  return "";
}

std::string zsh_argument(const Command& command, Commands commands) {
  const std::string words = argument_words(command, commands);
  if (!words.empty()) return quoted("1:argument:(" + words + ")");
  return command.argument.empty() ? "" : quoted("1:" + std::string(command.argument) + ":_files");
}

}  // namespace

std::string write_bash_completion(Commands commands) {
  std::string out = R"(# Completion of gpu-ledger for bash; made by: gpu-ledger completion bash
_gpu_ledger() {
  local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} command='' flags words i
  # bash cuts --flag=value at the =, unless the user told it not to.
  local before=''
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $flag == = ]] && ((COMP_CWORD > 1)); then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $cur == --*=* ]]; then
    flag=${cur%%=*} before=$flag= cur=${cur#*=}
  fi
  COMPREPLY=()
  case $flag in
)";
  for (const Setting& setting : settings()) {
    if (value_kind(setting) != ValueKind::kWords) continue;
    out.append("    --").append(setting.name).append(") words='").append(joined(setting.member.words));
    out += "' ;;\n";
  }
  out += "    " + names_of_kind(ValueKind::kFile) +
         ")\n      compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n";
  out += "    " + names_of_kind(ValueKind::kDirectory) +
         ")\n      compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n";
  out += "    " + names_of_kind(ValueKind::kAny) + ")\n      return ;;\n";
  out += R"(  esac
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$cur")
    return
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
)";
  out += "      " + joined(split_list(command_names(commands), ' '), "|") + ") command=${COMP_WORDS[i]}; break ;;\n";
  out += "    esac\n  done\n  case $command in\n";
  for (const Command& command : commands) {
    std::vector<std::string> flags;
    for (const Setting& setting : settings()) {
      if (!takes_setting(command, setting)) continue;
      for (std::string& flag : flags_of(setting)) flags.push_back(std::move(flag));
    }
    flags.emplace_back("--help");
    const bool is_default = &command == &commands.front();
    out.append("    ").append(is_default ? "''|" : "").append(command.name).append(") flags='").append(joined(flags));
    out += "'";
    if (is_default) out += "; [[ -z $command ]] && words='" + command_names(commands) + "' flags+=' --version'";
    if (const std::string words = argument_words(command, commands); !words.empty()) out += " words='" + words + "'";
    if (command.argument == "FILE") out += " words=FILE";
    out += " ;;\n";
  }
  return out + R"(  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
  elif [[ $words == FILE ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}
complete -F _gpu_ledger gpu-ledger
)";
}

std::string write_zsh_completion(Commands commands) {
  std::string out =
      "#compdef gpu-ledger\n# Completion of gpu-ledger for zsh; made by: gpu-ledger completion zsh\n"
      "_gpu_ledger() {\n  local -a commands\n  commands=(\n";
  for (const Command& command : commands) {
    out += "    " + quoted(std::string(command.name) + ":" + zsh_escape(brief(command.summary))) + "\n";
  }
  out +=
      "  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n    _describe command commands\n    return\n  fi\n"
      "  local command=" +
      std::string(commands.front().name) +
      "\n  if [[ $words[2] != -* ]]; then\n    command=$words[2]\n    shift words\n    (( CURRENT-- ))\n  fi\n"
      "  case $command in\n";
  for (const Command& command : commands) {
    out.append("    ").append(command.name).append(")\n      _arguments '--help[what it can do]'");
    if (&command == &commands.front()) out += " '--version[the version and the commit]'";
    for (const Setting& setting : settings()) {
      if (takes_setting(command, setting)) out += " \\\n        " + zsh_spec(setting);
    }
    if (const std::string argument = zsh_argument(command, commands); !argument.empty()) {
      out += " \\\n        " + argument;
    }
    out += " ;;\n";
  }
  // Loaded by its name from fpath it runs at once; sourced, it registers itself.
  return out +
         "  esac\n}\nif [[ $funcstack[1] == _gpu-ledger ]]; then\n  _gpu_ledger \"$@\"\nelse\n"
         "  compdef _gpu_ledger gpu-ledger\nfi\n";
}

std::string write_fish_completion(Commands commands) {
  std::string out =
      "# Completion of gpu-ledger for fish; made by: gpu-ledger completion fish\ncomplete -c gpu-ledger -f\n"
      "complete -c gpu-ledger -l help -s h -d 'what it can do'\n"
      "complete -c gpu-ledger -n __fish_use_subcommand -l version -s v -d 'the version and the commit'\n";
  for (const Command& command : commands) {
    const std::string name(command.name);
    out +=
        "complete -c gpu-ledger -n __fish_use_subcommand -a " + name + " -d " + quoted(brief(command.summary)) + "\n";
    const std::string seen = "complete -c gpu-ledger -n '__fish_seen_subcommand_from " + name + "' ";
    const std::string words = argument_words(command, commands);
    if (!words.empty()) out += seen + "-a " + quoted(words) + "\n";
    if (command.argument == "FILE") out += seen + "-F\n";
  }
  for (const Setting& setting : settings()) {
    std::vector<std::string_view> others;
    for (const Command& command : commands) {
      if (!takes_setting(command, setting)) others.push_back(command.name);
    }
    const bool by_default = takes_setting(commands.front(), setting);
    std::string start = "complete -c gpu-ledger -n ";
    start += by_default ? "'not __fish_seen_subcommand_from " + joined(others) + "'"
                        : "'__fish_seen_subcommand_from " + std::string(setting.command) + "'";
    const std::string help = " -d " + quoted(brief(setting.help));
    const std::string name(setting.name);
    switch (value_kind(setting)) {
      case ValueKind::kNone: out += start + " -l " + name + help + "\n" + start + " -l no-" + name; break;
      case ValueKind::kWords:
        out += start + " -l " + name + " -x -a " + quoted(joined(setting.member.words)) + help;
        break;
      case ValueKind::kFile: out += start + " -l " + name + " -r -F" + help; break;
      case ValueKind::kDirectory: out += start + " -l " + name + " -x -a '(__fish_complete_directories)'" + help; break;
      case ValueKind::kAny: out += start + " -l " + name + " -x" + help; break;
    }
    out += "\n";
  }
  return out;
}

}  // namespace gpuledger::app

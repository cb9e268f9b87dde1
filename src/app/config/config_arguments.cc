// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <utility>

#include "app/config/config_given.h"
#include "app/config/config_values.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

// The setting of a flag.
struct Flag {
  const Setting* setting = nullptr;
  SettingForm form = SettingForm::kValue;
  bool negated = false;  // --no-name
  const OlderName* older = nullptr;
};

std::optional<Flag> find_flag(std::string_view name) {
  if (const Setting* setting = find_setting(name)) return Flag{setting, setting->form, false, nullptr};
  if (const OlderName* older = find_older_flag(name)) {
    return Flag{find_setting(older->setting), older->form, false, older};
  }
  if (name.starts_with("no-")) {
    const Setting* setting = find_setting(name.substr(3));
    if (setting != nullptr && setting->form == SettingForm::kSwitch) return Flag{setting, setting->form, true, nullptr};
  }
  return std::nullopt;
}

Status add_flag(const Flag& flag, const std::string& origin, std::string value, GivenSettings& given) {
  if (flag.negated) {
    GL_TRY(off, parse_bool(value).about(origin));
    value = off ? "false" : "true";
  }
  if (flag.older != nullptr) {
    GL_TRY(translated, flag.older->translate(value).about(origin));
    value = std::move(translated);
  }
  Given& entry = given[flag.setting];
  entry.origin = origin;
  if (flag.setting->form == SettingForm::kList) {
    for (std::string& part : split_list(value)) entry.values.push_back(std::move(part));
  } else {
    entry.values = {std::move(value)};
  }
  return ok_status();
}

class ArgumentParser {
 public:
  ArgumentParser(const std::vector<std::string>& arguments, std::span<const Command> commands)
      : arguments_(arguments), commands_(commands) {}

  Result<Arguments> parse() {
    bool flags_ended = false;
    while (at_ < arguments_.size() && !parsed_.help && !parsed_.version) {
      const std::string& argument = arguments_[at_++];
      if (argument == "--" && !flags_ended) {
        flags_ended = true;
        continue;
      }
      const bool is_flag = !flags_ended && argument.size() > 1 && argument.front() == '-';
      GL_TRY_STATUS(is_flag ? parse_flag(argument) : parse_word(argument));
    }
    if (needs_argument() && !parsed_.help && !parsed_.version) {
      const std::string name(parsed_.command->name);
      return wrong(name + ": needs an argument (gpu-ledger " + name + " " + std::string(parsed_.command->argument) +
                   ")");
    }
    return std::move(parsed_);
  }

 private:
  bool wants_argument() const {
    return parsed_.command != nullptr && !parsed_.command->argument.empty() && parsed_.argument.empty();
  }
  bool needs_argument() const { return wants_argument() && !parsed_.command->argument.starts_with('['); }

  Status parse_word(const std::string& word) {
    if (parsed_.command == nullptr) return parse_command(word);
    if (!wants_argument()) return wrong("unexpected argument " + in_quotes(word));
    if (parsed_.command->argument == "[COMMAND]" && find_command(word) == nullptr) return unknown_command(word);
    const std::vector<std::string> choices = split_list(parsed_.command->argument, '|');  // one: any value
    const std::vector<std::string_view> words(choices.begin(), choices.end());
    if (words.size() > 1) {
      GL_TRY_STATUS(parse_choice(word, words).about(parsed_.command->name));
    } else if (word.empty()) {
      return wrong("unexpected argument " + in_quotes(word));
    }
    parsed_.argument = word;
    return ok_status();
  }

  Status parse_command(const std::string& word) {
    parsed_.command = find_command(word);
    return parsed_.command == nullptr ? unknown_command(word) : ok_status();
  }

  const Command* find_command(std::string_view name) const {
    const auto found =
        std::find_if(commands_.begin(), commands_.end(), [&](const Command& command) { return command.name == name; });
    return found == commands_.end() ? nullptr : &*found;
  }

  Status unknown_command(const std::string& word) const {
    std::vector<std::string_view> names;
    for (const Command& command : commands_) names.push_back(command.name);
    const std::string_view nearest = word.empty() ? std::string_view() : nearest_word(word, names);
    return wrong("unknown command " + in_quotes(word) +
                 (nearest.empty() ? " (gpu-ledger help lists them)" : " (did you mean " + std::string(nearest) + "?)"));
  }

  Status parse_flag(std::string_view argument) {
    const size_t dashes = argument.starts_with("--") ? 2 : 1;
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(dashes, equals == argument.npos ? argument.npos : equals - dashes);
    std::optional<std::string> value;
    if (equals != argument.npos) value = argument.substr(equals + 1);

    if (name == "help" || (name == "h" && dashes == 1)) {
      parsed_.help = true;
      return ok_status();
    }
    if (name == "version" || ((name == "v" || name == "V") && dashes == 1)) {
      parsed_.version = true;
      return ok_status();
    }
    const std::optional<Flag> flag = find_flag(name);
    if (!flag) return wrong("unknown flag --" + plain(name) + suggestion(name, "--"));
    const std::string origin = "--" + std::string(name);
    if (!value) value = following_value(*flag);
    if (!value) return wrong(origin + ": needs a value (" + std::string(flag->setting->help) + ")");
    return add_flag(*flag, origin, *std::move(value), parsed_.given);
  }

  // The value in the next argument. An argument with two dashes is the next flag: no setting's value starts so, and
  // taking it would hide both mistakes.
  std::optional<std::string> following_value(const Flag& flag) {
    const bool another = at_ < arguments_.size() && !arguments_[at_].starts_with("--");
    if (flag.form == SettingForm::kSwitch) {
      const bool knows_auto = flag.setting->default_text == "auto" && !flag.negated;
      const bool value = another && (arguments_[at_] == "true" || arguments_[at_] == "false" ||
                                     (knows_auto && arguments_[at_] == "auto"));
      return value ? arguments_[at_++] : "true";
    }
    if (!another) return std::nullopt;
    return arguments_[at_++];
  }

  // An unknown name with its unusual characters escaped.
  static std::string plain(std::string_view name) {
    const std::string escaped = in_quotes(name);
    return escaped.substr(1, escaped.size() - 2);
  }

  const std::vector<std::string>& arguments_;
  const std::span<const Command> commands_;
  size_t at_ = 0;
  Arguments parsed_;
};

}  // namespace

Result<Arguments> parse_arguments(const std::vector<std::string>& arguments, std::span<const Command> commands) {
  return ArgumentParser(arguments, commands).parse();
}

std::string suggestion(std::string_view name, std::string_view prefix) {
  std::vector<std::string> spellings;
  for (const Setting& setting : settings()) {
    spellings.emplace_back(setting.name);
    if (setting.form == SettingForm::kSwitch && !prefix.empty()) spellings.push_back("no-" + spellings.back());
  }
  const std::vector<std::string_view> known(spellings.begin(), spellings.end());
  const std::string_view nearest = nearest_word(name, known);
  if (nearest.empty()) return " (gpu-ledger --help lists them)";
  return " (did you mean " + std::string(prefix) + std::string(nearest) + "?)";
}

}  // namespace gpuledger::app

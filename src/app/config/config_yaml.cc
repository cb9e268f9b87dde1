// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>
#include <utility>

#include "app/config/config_given.h"
#include "app/config/config_values.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

class YamlSettings {
 public:
  explicit YamlSettings(std::string path) : path_(std::move(path)) {}

  Status add_mapping(const YAML::Node& mapping, const std::string& prefix) {
    for (const auto& entry : mapping) {
      if (!entry.first.IsScalar()) return wrong(entry.first, "a setting's name must be a plain word");
      const std::string name = prefix + entry.first.Scalar();
      const YAML::Node& value = entry.second;
      GL_TRY_STATUS(value.IsMap() && prefix.empty() ? add_mapping(value, name + ".")
                                                    : add_entry(name, entry.first, value));
    }
    return ok_status();
  }

  Error wrong(const YAML::Node& node, const std::string& message) const { return wrong_at(node.Mark(), message); }
  Error wrong_at(const YAML::Mark& mark, const std::string& message) const {
    const std::string line = mark.line >= 0 ? std::to_string(mark.line + 1) + ": " : " ";
    return {Code::kMalformed, path_ + ":" + line + message};
  }

  GivenSettings take() { return std::move(given_); }

 private:
  Status add_entry(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    const OlderName* older = find_older_flag(name);
    const Setting* setting = find_setting(older == nullptr ? name : older->setting);
    if (setting == nullptr) return wrong(key, "unknown setting " + in_quotes(name) + suggestion(name, ""));
    if (setting->name == "config") return wrong(key, "config: a config file cannot name another");
    if (given_.contains(setting)) return wrong(key, name + ": given twice");
    if (value.IsNull()) return ok_status();

    Given entry{path_ + ":" + std::to_string(key.Mark().line + 1) + ": " + name, {}};
    if (value.IsSequence() && setting->form == SettingForm::kList) {
      for (const YAML::Node& element : value) {
        if (!element.IsScalar()) return wrong(element, name + ": every element must be a plain value");
        entry.values.push_back(element.Scalar());
      }
    } else if (!value.IsScalar()) {
      return wrong(key, name + ": needs one plain value");
    } else if (setting->form == SettingForm::kList) {
      entry.values = split_list(value.Scalar());
    } else {
      entry.values = {value.Scalar()};
    }
    if (older != nullptr && entry.values.size() == 1) {
      GL_TRY(translated, older->translate(entry.values.front()).about(entry.origin));
      entry.values.front() = std::move(translated);
    }
    given_[setting] = std::move(entry);
    return ok_status();
  }

  std::string path_;
  GivenSettings given_;
};

// Finds the start of a second YAML document. LoadAll is not used: yaml-cpp 0.7 finds endless documents in a text as
// short as ",i".
class SecondDocument final : public YAML::EventHandler {
 public:
  static std::optional<YAML::Mark> find(const std::string& text) {
    std::istringstream in(text);
    YAML::Parser parser(in);
    SecondDocument second;
    if (!parser.HandleNextDocument(second) || !parser.HandleNextDocument(second)) return std::nullopt;
    return second.mark_;
  }

 private:
  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  YAML::Mark mark_;
};

}  // namespace

Result<GivenSettings> parse_yaml_settings(const std::string& text, const std::string& path) {
  YamlSettings reader(path);
  try {
    if (const auto second = SecondDocument::find(text)) return reader.wrong_at(*second, "more than one YAML document");
    const YAML::Node settings = YAML::Load(text);
    if (settings.IsNull()) return GivenSettings();
    if (!settings.IsMap()) return reader.wrong(settings, "must be settings, one \"name: value\" a line");
    GL_TRY_STATUS(reader.add_mapping(settings, ""));
    return reader.take();
  } catch (const YAML::Exception& error) { return reader.wrong_at(error.mark, "not valid YAML: " + error.msg); }
}

}  // namespace gpuledger::app

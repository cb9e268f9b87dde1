// SPDX-License-Identifier: Apache-2.0
#include "http/web_config.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <functional>
#include <set>

#include "base/duration.h"
#include "http/web_config_names.h"

namespace gpuledger::http {
namespace {

// Reads one file; the first error stays in error_, and everything after it is skipped.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<WebConfig> read(const YAML::Node& root) {
    if (root.IsNull() || (root.IsMap() && root.size() == 0)) fail(root, "the file is empty");
    for_each_key(root, "the file", [&](const std::string& key, const YAML::Node& value) {
      if (key == "tls_server_config")
        read_tls(value);
      else if (key == "http_server_config")
        read_http(value);
      else if (key == "basic_auth_users")
        read_users(value);
      else if (key == "rate_limit")
        read_rate_limit(value);
      else
        return false;
      return true;
    });
    if (!error_) check_tls();
    if (error_) return *error_;
    return std::move(config_);
  }

 private:
  using KeyReader = std::function<bool(const std::string&, const YAML::Node&)>;  // false: no such key

  // what may quote the file, so line breaks and the like are removed: a message is one line.
  void fail(const YAML::Node& where, std::string what) {
    if (error_) return;
    for (char& c : what)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    const int line = where.IsDefined() ? where.Mark().line : -1;
    error_ = Error{Code::kMalformed, line < 0 ? fmt::format("web config {}: {}", path_, what)
                                              : fmt::format("web config {}: line {}: {}", path_, line + 1, what)};
  }

  void for_each_key(const YAML::Node& map, const std::string& where, const KeyReader& read_key) {
    if (!map.IsMap()) return fail(map, where + " must be a map");
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (error_) return;
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (!seen.insert(key).second) return fail(entry.first, fmt::format("\"{}\" is given twice in {}", key, where));
      // As in a file cut off while it is written. A header without a value is not sent.
      if (entry.second.IsNull() && where != "headers")
        return fail(entry.first, fmt::format("\"{}\" has no value in {}", key, where));
      if (!read_key(key, entry.second)) fail(entry.first, fmt::format("unknown key \"{}\" in {}", key, where));
    }
  }

  std::string text_of(const YAML::Node& node, const std::string& key) {
    if (node.IsNull()) return {};
    if (node.IsScalar()) return node.Scalar();
    fail(node, key + " must be a text");
    return {};
  }

  bool flag_of(const YAML::Node& node, const std::string& key) {
    const std::string text = text_of(node, key);
    if (text != "true" && text != "false") fail(node, key + " must be true or false");
    return text == "true";
  }

  std::vector<std::string> list_of(const YAML::Node& node, const std::string& key) {
    std::vector<std::string> list;
    if (!node.IsSequence()) {
      fail(node, key + " must be a list");
      return list;
    }
    for (const auto& element : node) list.push_back(text_of(element, key));
    return list;
  }

  std::string path_of(const YAML::Node& node, const std::string& key) {
    const std::string text = text_of(node, key);
    if (text.empty() || text.front() == '/') return text;
    return (std::filesystem::path(path_).parent_path() / text).string();
  }

  // Looks a text up in one of the tables of names.
  template <typename Found>
  Found name_of(const YAML::Node& node, const std::string& key, std::optional<Found> (*find)(std::string_view)) {
    const std::string text = text_of(node, key);
    const std::optional<Found> found = find(text);
    if (!found) fail(node, fmt::format("{}: \"{}\" is not known", key, text));
    return found.value_or(Found{});
  }

  void read_tls(const YAML::Node& map) {
    if (map.IsMap() && map.size() == 0) return;
    TlsSettings& tls = config_.tls.emplace();
    for_each_key(map, "tls_server_config", [&](const std::string& key, const YAML::Node& value) {
      return read_tls_file(tls, key, value) || read_tls_policy(tls, key, value);
    });
  }

  bool read_tls_file(TlsSettings& tls, const std::string& key, const YAML::Node& value) {
    if (key == "cert_file")
      tls.cert.file = path_of(value, key);
    else if (key == "key_file")
      tls.key.file = path_of(value, key);
    else if (key == "client_ca_file")
      tls.client_ca.file = path_of(value, key);
    else if (key == "cert")
      tls.cert.text = text_of(value, key);
    else if (key == "key")
      tls.key.text = text_of(value, key);
    else if (key == "client_ca")
      tls.client_ca.text = text_of(value, key);
    else
      return false;
    return true;
  }

  bool read_tls_policy(TlsSettings& tls, const std::string& key, const YAML::Node& value) {
    if (key == "client_auth_type")
      tls.client_auth = name_of(value, key, find_client_auth);
    else if (key == "client_allowed_sans")
      tls.client_allowed_sans = list_of(value, key);
    else if (key == "min_version")
      tls.min_version = name_of(value, key, find_tls_version);
    else if (key == "max_version")
      tls.max_version = name_of(value, key, find_tls_version);
    else if (key == "prefer_server_cipher_suites")
      tls.prefer_server_cipher_suites = flag_of(value, key);
    else if (key == "cipher_suites")
      read_cipher_suites(tls, value);
    else if (key == "curve_preferences")
      read_curves(tls, value);
    else
      return false;
    return true;
  }

  void read_cipher_suites(TlsSettings& tls, const YAML::Node& value) {
    const auto names = list_of(value, "cipher_suites");
    for (const std::string& name : names) {
      if (is_tls13_suite(name)) continue;  // always on with TLS 1.3
      const auto suite = find_cipher_suite(name);
      if (!suite) return fail(value, fmt::format("cipher_suites: \"{}\" is not known", name));
      tls.cipher_suites.push_back(*suite);
    }
    tls.only_tls13_suites = !names.empty() && tls.cipher_suites.empty();
  }

  void read_curves(TlsSettings& tls, const YAML::Node& value) {
    for (const std::string& name : list_of(value, "curve_preferences")) {
      const auto curve = find_curve(name);
      if (!curve) return fail(value, fmt::format("curve_preferences: \"{}\" is not known", name));
      tls.curves.push_back(*curve);
    }
  }

  void check_tls() {
    if (!config_.tls) return;
    const TlsSettings& tls = *config_.tls;
    const YAML::Node nowhere(YAML::NodeType::Undefined);
    const auto both = [](const PemSource& source) { return !source.file.empty() && !source.text.empty(); };
    if (!tls.cert.given()) fail(nowhere, "tls_server_config needs cert_file");
    if (!tls.key.given()) fail(nowhere, "tls_server_config needs key_file");
    if (both(tls.cert) || both(tls.key) || both(tls.client_ca))
      fail(nowhere, "give a certificate, key or CA either inline or as a file, not both");
    if (tls.client_ca.given() && tls.client_auth == ClientAuth::kNone)
      fail(nowhere, "client_ca_file has no effect without client_auth_type");
    if (verifies_certificate(tls.client_auth) && !tls.client_ca.given())
      fail(nowhere, "this client_auth_type needs client_ca_file");
    if (!tls.client_allowed_sans.empty() && !requires_certificate(tls.client_auth))
      fail(nowhere, "client_allowed_sans needs client_auth_type RequireAnyClientCert or RequireAndVerifyClientCert");
    if (tls.min_version > tls.max_version) fail(nowhere, "min_version is above max_version");
    if (tls.only_tls13_suites && tls.max_version < TlsVersion::kTls13)
      fail(nowhere, "cipher_suites has nothing for the allowed TLS versions");
  }

  void read_http(const YAML::Node& map) {
    for_each_key(map, "http_server_config", [&](const std::string& key, const YAML::Node& value) {
      if (key == "http2")
        flag_of(value, key);  // checked and ignored: this server uses HTTP/1.1
      else if (key == "headers")
        read_headers(value);
      else
        return false;
      return true;
    });
  }

  void read_headers(const YAML::Node& map) {
    for_each_key(map, "headers", [&](const std::string& key, const YAML::Node& value) {
      const std::string text = text_of(value, key);
      if (!is_settable_header(key)) return false;
      if (!is_header_value(key, text)) fail(value, fmt::format("headers: {} cannot be \"{}\"", key, text));
      if (!text.empty()) config_.headers[key] = text;
      return true;
    });
  }

  void read_users(const YAML::Node& map) {
    for_each_key(map, "basic_auth_users", [&](const std::string& key, const YAML::Node& value) {
      const std::string hash = text_of(value, key);
      if (key.find(':') != std::string::npos) fail(value, fmt::format("user \"{}\": a name cannot have a colon", key));
      const std::optional<int> cost = find_bcrypt_cost(hash);
      if (!cost)
        fail(value, fmt::format("user \"{}\": not a bcrypt hash; make one with: htpasswd -nBC 10 {}", key, key));
      else if (*cost > 18)
        fail(value, fmt::format("user \"{}\": bcrypt cost {} is above 18", key, *cost));
      config_.users[key] = hash;
      return true;
    });
  }

  void read_rate_limit(const YAML::Node& map) {
    for_each_key(map, "rate_limit", [&](const std::string& key, const YAML::Node& value) {
      const std::string text = text_of(value, key);
      if (key == "interval") {
        const auto interval = parse_duration(text);
        if (!interval.ok()) fail(value, "interval: " + interval.error().message);
        config_.rate_limit.interval = interval.value_or(Nanoseconds(0));
      } else if (key == "burst") {
        const auto burst = find_count(text);
        if (!burst) fail(value, fmt::format("burst: \"{}\" is no number of requests", text));
        config_.rate_limit.burst = burst.value_or(0);
      } else {
        return false;
      }
      return true;
    });
  }

  const std::string& path_;
  WebConfig config_;
  std::optional<Error> error_;
};

}  // namespace

Result<WebConfig> parse_web_config(std::string_view text, const std::string& path) {
  // To YAML a NUL is the end of the text. Files cut off by a crash have them.
  if (text.find('\0') != std::string_view::npos)
    return Error{Code::kMalformed, fmt::format("web config {}: NUL bytes; the file is no text", path)};
  try {
    return Reader(path).read(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& problem) {
    return Error{Code::kMalformed, fmt::format("web config {}: line {}: {}", path, problem.mark.line + 1, problem.msg)};
  }
}

}  // namespace gpuledger::http

// SPDX-License-Identifier: Apache-2.0
#include "app/bill/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "app/bill/amounts.h"
#include "app/bill/grouping.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

// The same as in deploy/prometheus/tokens.rules.yml; a test compares them.
constexpr std::array<const char*, 6> kPromptTokens = {"vllm:prompt_tokens_total",     "sglang:prompt_tokens_total",
                                                      "tgi_request_input_length_sum", "trtllm_prompt_tokens_total",
                                                      "nv_llm_input_token_len_sum",   "llamacpp:prompt_tokens_total"};
constexpr std::array<const char*, 6> kGeneratedTokens = {
    "vllm:generation_tokens_total",   "sglang:generation_tokens_total", "tgi_request_generated_tokens_sum",
    "trtllm_generation_tokens_total", "nv_llm_output_token_len_sum",    "llamacpp:tokens_predicted_total"};
constexpr double kMostPerSecond = 1e9;  // of a pod; no server comes near
constexpr std::array<std::string_view, 3> kGroups = {"namespace", "pod", "cluster"};
constexpr size_t kMostNames = 3;

struct Counted {
  std::map<std::string, BillTokens> lines;
  std::set<std::string> left_out;  // pods
};

// A pod that two jobs scrape counts once; the engines and models of a server are added up. `or` and not one selector of
// all names: an increase has no name, and two with the same labels would make the whole answer an error.
std::string increase_of(const std::array<const char*, 6>& names, const BillQuery& query, const BillSpan& step) {
  std::string each;
  for (const char* name : names) {
    each += fmt::format("{}increase({}[{}s])", each.empty() ? "" : " or ",
                        select_series(query, name, "namespace!=\"\",pod!=\"\""), (step.end - step.begin).count());
  }
  return "max by (cluster, namespace, pod, model, model_name) (sum by (cluster, job, namespace, pod, model, "
         "model_name) (" +
         each + "))";
}

Status read_step(const BillAsk& ask, const BillQuery& query, const BillSpan& step, const std::vector<std::string>& by,
                 Counted& counted) {
  const double most = kMostPerSecond * static_cast<double>((step.end - step.begin).count());
  for (const auto& [names, kind] :
       {std::pair(kPromptTokens, &BillTokens::prompt), std::pair(kGeneratedTokens, &BillTokens::generated)}) {
    GL_TRY(answer, ask(increase_of(names, query, step), step.end));
    for (const BillSeries& series : answer) {
      BillFacts::Owner pod{BillFacts::Owner::Form::kOwner, std::string(owner_kind(OwnerKind::kPod).word), {}};
      for (const std::string_view label : {kNamespaceField.name, kPodField.name}) {
        pod.labels.emplace(label, series.label(label));
      }
      const double value = series.samples.back().value;
      if (!(value >= 0 && value <= most)) {
        counted.left_out.insert(fmt::format("{}/{}", series.label(kNamespaceField.name), series.label(kPodField.name)));
        continue;
      }
      const BillNode node{std::string(series.label("cluster")), ""};
      counted.lines[place_of({}, node, "", pod, by).name].*kind += value;
    }
  }
  return ok_status();
}

// The first few, and how many more.
void note(const std::set<std::string>& names, const std::string& why, Statement& statement) {
  if (names.empty()) return;
  std::string some;
  size_t count = 0;
  for (const std::string& name : names) {
    if (count++ < kMostNames) some += (some.empty() ? "" : ", ") + in_quotes(name);
  }
  if (count > kMostNames) some += fmt::format(" and {} more", count - kMostNames);
  statement.remarks.push_back("--per=token: tokens of " + some + why);
}

}  // namespace

Status check_token_groups(const std::vector<std::string>& by) {
  for (const std::string& one : by) {
    if (std::find(kGroups.begin(), kGroups.end(), one) == kGroups.end()) {
      return Error{Code::kMalformed, "--per=token: tokens are known by namespace, pod and cluster, not by " +
                                         in_quotes(one) + "; change --by"};
    }
  }
  return ok_status();
}

Status add_tokens(const BillAsk& ask, const BillQuery& query, const std::vector<std::string>& by,
                  Statement& statement) {
  Counted counted;
  for (auto begin = query.span.begin; begin < query.span.end; begin += query.step) {
    GL_TRY_STATUS(read_step(ask, query, {begin, std::min(begin + query.step, query.span.end)}, by, counted));
  }
  // Whole, so that the lines add up to their sum.
  std::map<std::string, BillTokens> tokens;
  for (const auto& [name, some] : counted.lines) {
    const BillTokens whole{std::round(some.prompt), std::round(some.generated)};
    if (whole.all() > 0) tokens.emplace(name, whole);
  }
  if (tokens.empty() && counted.left_out.empty()) {
    return Error{Code::kNotFound,
                 "--per=token: the server has no tokens of inference servers in this span, with the labels namespace "
                 "and pod and what --match wants"};
  }
  std::set<std::string> without_line;
  for (const auto& [name, some] : tokens) without_line.insert(name);
  for (BillLine& line : statement.lines) {
    const auto found = tokens.find(line.name);
    if (line.kind != LineKind::kOwner || found == tokens.end()) continue;
    line.tokens = found->second;
    without_line.erase(line.name);
  }
  note(without_line, " are in no line, because no owner of that name has GPU energy", statement);
  note(counted.left_out,
       fmt::format(" are too few: where a counter grew by no number or by more than {:.0f} a second, it is left out",
                   kMostPerSecond),
       statement);
  statement.remarks.emplace_back(
      "--per=token: what a line was charged, divided by its tokens, those of prompts and those generated together; the "
      "tokens are what the servers counted, to about one interval between scrapes for each server");
  return ok_status();
}

}  // namespace gpuledger::app

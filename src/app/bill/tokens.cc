// SPDX-License-Identifier: Apache-2.0
#include "app/bill/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "app/bill/amounts.h"
#include "app/bill/grouping.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

// The same as in deploy/prometheus/tokens.rules.yml; a test compares them.
constexpr const char* kPromptTokens =
    "vllm:prompt_tokens_total|sglang:prompt_tokens_total|tgi_request_input_length_sum|trtllm_prompt_tokens_total|"
    "nv_llm_input_token_len_sum|llamacpp:prompt_tokens_total";
constexpr const char* kGeneratedTokens =
    "vllm:generation_tokens_total|sglang:generation_tokens_total|tgi_request_generated_tokens_sum|"
    "trtllm_generation_tokens_total|nv_llm_output_token_len_sum|llamacpp:tokens_predicted_total";
constexpr std::array<std::string_view, 3> kGroups = {"namespace", "pod", "cluster"};
constexpr size_t kMostNames = 3;

using Tokens = std::map<std::string, BillTokens>;  // by line

// A pod that two jobs scrape counts once; the engines and models of a server are added up.
std::string increase_of(const char* names, const BillQuery& query, const BillSpan& step) {
  return fmt::format(
      "max by (cluster, namespace, pod, model, model_name) (sum by (cluster, job, namespace, pod, model, model_name) "
      "(increase({{{}}}[{}s])))",
      match_with(query, fmt::format("__name__=~\"{}\",pod!=\"\"", names)), (step.end - step.begin).count());
}

Status read_step(const BillAsk& ask, const BillQuery& query, const BillSpan& step, const std::vector<std::string>& by,
                 Tokens& tokens) {
  for (const auto& [names, kind] :
       {std::pair(kPromptTokens, &BillTokens::prompt), std::pair(kGeneratedTokens, &BillTokens::generated)}) {
    GL_TRY(answer, ask(increase_of(names, query, step), step.end));
    for (const BillSeries& series : answer) {
      const double value = series.samples.back().value;
      if (!(value >= 0 && value < 1e18)) {
        return Error{Code::kMalformed, "no number of tokens at " + time_text(step.end) + ": " + series.text()};
      }
      BillFacts::Owner pod{BillFacts::Owner::Form::kOwner, std::string(owner_kind(OwnerKind::kPod).word), {}};
      for (const std::string_view label : {kNamespaceField.name, kPodField.name}) {
        pod.labels.emplace(label, series.label(label));
      }
      const BillNode node{std::string(series.label("cluster")), ""};
      const BillPlace place = place_of({}, node, "", pod, by);
      if (place.kind == LineKind::kOwner) tokens[place.name].*kind += value;
    }
  }
  return ok_status();
}

// Servers whose pods used no GPU that this bill knows.
void note_without_line(const Tokens& tokens, Statement& statement) {
  std::string names;
  size_t count = 0;
  for (const auto& [name, some] : tokens) {
    if (some.all() > 0 && count++ < kMostNames) names += (names.empty() ? "" : ", ") + in_quotes(name);
  }
  if (count == 0) return;
  if (count > kMostNames) names += fmt::format(" and {} more", count - kMostNames);
  statement.remarks.push_back("--per=token: tokens of " + names +
                              " have no line, because no GPU energy is known there");
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
  Tokens tokens;
  for (auto begin = query.span.begin; begin < query.span.end; begin += query.step) {
    GL_TRY_STATUS(read_step(ask, query, {begin, std::min(begin + query.step, query.span.end)}, by, tokens));
  }
  const bool none = std::none_of(tokens.begin(), tokens.end(), [](const auto& one) { return one.second.all() > 0; });
  if (none) {
    return Error{Code::kNotFound,
                 "--per=token: the server has no tokens of inference servers in this span, with the labels namespace "
                 "and pod and what --match wants"};
  }
  for (BillLine& line : statement.lines) {
    const auto found = tokens.find(line.name);
    if (line.kind != LineKind::kOwner || found == tokens.end()) continue;
    if (found->second.all() > 0) line.tokens = found->second;
    tokens.erase(found);
  }
  note_without_line(tokens, statement);
  statement.remarks.emplace_back(
      "--per=token: what a line was charged, divided by its tokens, those of prompts and those generated together; the "
      "tokens are what the servers counted, to about one interval between scrapes for each server");
  return ok_status();
}

}  // namespace gpuledger::app

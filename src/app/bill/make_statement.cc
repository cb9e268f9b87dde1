// SPDX-License-Identifier: Apache-2.0
#include "app/bill/make_statement.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/bill/allocated.h"
#include "app/bill/amounts.h"
#include "app/bill/grouping.h"
#include "app/bill/line_words.h"
#include "app/bill/sharing.h"
#include "app/bill/unmet.h"
#include "base/quote.h"
#include "base/version.h"

namespace gpuledger::app {
namespace {

constexpr int64_t kMicrojoulesPerMillijoule = 1000;
// What floating point in the server may have changed of a GPU, at the most.
constexpr int64_t kRoundingPerGpu = 10 * kMicrojoulesPerMillijoule;
constexpr double kMicrosecondsPerHour = 3.6e9;
constexpr double kMillisecondsPerHour = 3.6e6;

// A line while it is summed up, in microjoules. Wide: a large fleet's year has more than 64 bits.
struct Sum {
  BillLine line;
  Wide alone = 0;
  Wide shared = 0;
  double squared_errors = 0;
  bool has_error = false;
  double co2e_grams = 0;    // with the PUE
  double building_kwh = 0;  // the same
  double energy_cost = 0;
  double kwh_without_price = 0;
  std::set<std::string> without_price;  // models, for some of the hours
  std::set<std::string> without_hours;  // models on which some of it worked for a time that is not known
};
using Sums = std::map<std::pair<LineKind, std::string>, Sum>;

// Keeps what all of a line have in common.
void keep_common(BillFacts::Labels& common, const BillFacts::Labels& other, bool first) {
  if (first) {
    common = other;
    return;
  }
  std::erase_if(common, [&](const auto& each) {
    const auto found = other.find(each.first);
    return found == other.end() || found->second != each.second;
  });
}

Sum& sum_of(Sums& sums, const BillPlace& place) {
  const auto [found, fresh] = sums.try_emplace({place.kind, place.name});
  BillLine& line = found->second.line;
  line.kind = place.kind;
  line.name = place.name;
  keep_common(line.properties, place.properties, fresh);
  return found->second;
}

std::string model_of(const BillFacts& facts, const std::string& gpu) {
  const auto found = facts.models.find(gpu);
  return found == facts.models.end() ? std::string() : found->second;
}

// MIG has no GPU time: work there without an allocation has no hours that could be charged.
bool hours_unknown(const BillFacts::Owner& owner, const GpuBooks::Spent& spent) {
  return !spent.gpu_time && spent.alone + spent.shared > 0 && owner.form != BillFacts::Owner::Form::kNobody &&
         owner.kind != owner_kind(OwnerKind::kUnknown).word;
}

using PricesByPeriod = std::vector<BillPrices>;

std::map<std::string, PricesByPeriod> prices_by_cluster(const BillPrices& prices, const BillBooks& books) {
  std::map<std::string, PricesByPeriod> all;
  for (const auto& [name, node] : books.nodes) all.try_emplace(name.cluster);
  for (const auto& [key, allocation] : books.allocations) all.try_emplace(key.node.cluster);
  for (auto& [cluster, periods] : all) {
    for (size_t i = 0; i <= books.price_changes.size(); ++i) {
      periods.push_back(prices.at(cluster, begin_of_period(books, i)));
    }
  }
  return all;
}

void hold(Sum& sum, const std::string& model, double hours, const BillPrices& prices) {
  BillLine& line = sum.line;
  line.held_gpu_hours[model] += hours;
  const auto price = prices.per_gpu_hour.find(model);
  if (price == prices.per_gpu_hour.end()) {
    if (hours > 0) sum.without_price.insert(model);
    return;
  }
  line.gpu_hour_costs[model] += hours * price->second;
  line.gpu_hour_cost += hours * price->second;
}

void add_gpu(const BillBooks& books, const BillNode& node, const std::string& uuid, const GpuBooks& gpu,
             const BillView& view, const PricesByPeriod& periods, const Allocated& allocated, Sums& sums) {
  const std::string model = model_of(books.facts, uuid);
  std::string last_owner;
  for (const auto& [charge, spent] : gpu.spent()) {
    const auto& [owner, period] = charge;
    const bool nothing = spent.alone == 0 && spent.shared == 0 && spent.gpu_time.value_or(0) == 0;
    if (nothing) continue;
    Sum& sum = sum_of(sums, place_of(books.facts, node, uuid, books.facts.owners.at(owner), view.by));
    sum.alone += spent.alone;
    sum.shared += spent.shared;
    const BillPrices& prices = periods.at(period);
    const double kwh = static_cast<double>(spent.alone + spent.shared) / kMicrojoulesPerKwh * prices.pue;
    sum.building_kwh += kwh;
    sum.energy_cost += kwh * prices.per_kwh;
    if (prices.per_kwh == 0) sum.kwh_without_price += kwh;
    sum.co2e_grams += spent.co2e_grams * prices.pue;
    if (spent.gpu_time) {
      const double hours = static_cast<double>(*spent.gpu_time) / kMicrosecondsPerHour;
      sum.line.gpu_hours = sum.line.gpu_hours.value_or(0) + hours;
      if (!allocated.pays(node, uuid, owner)) hold(sum, model, hours, prices);
    }
    if (hours_unknown(books.facts.owners.at(owner), spent) && !allocated.pays(node, uuid, owner)) {
      sum.without_hours.insert(model);
    }
    // Of all periods.
    if (const auto error = gpu.standard_error(owner); error && spent.shared != 0 && owner != last_owner) {
      last_owner = owner;
      sum.squared_errors += *error * *error;
      sum.has_error = true;
    }
  }
}

void add_allocations(const BillBooks& books, const BillView& view, const std::map<std::string, PricesByPeriod>& prices,
                     Sums& sums) {
  for (const auto& [key, allocation] : books.allocations) {
    Sum& sum = sum_of(sums, place_of(books.facts, key.node, key.gpu, books.facts.owners.at(key.owner), view.by));
    sum.line.allocated_gpu_hours = sum.line.allocated_gpu_hours.value_or(0) + allocation.hours;
    if (allocation.idleness_known) {
      sum.line.unused_gpu_hours = sum.line.unused_gpu_hours.value_or(0) + allocation.unused_hours;
    }
    hold(sum, model_of(books.facts, key.gpu), allocation.hours, prices.at(key.node.cluster).at(key.period));
  }
}

// Names the hours that cost nothing although hours have a price.
void note_free_energy(const std::vector<Sum*>& sums, const BillPrices& prices, std::vector<std::string>& remarks) {
  if (!prices.has_kwh_price()) return;
  double kwh = 0;
  for (const Sum* sum : sums) kwh += sum->kwh_without_price;
  if (kwh > 0)
    remarks.push_back(plain_decimal(kwh) + " kWh are of a time or cluster without a price and cost nothing here");
}

void note_unpaid(const std::vector<Sum*>& sums, const BillPrices& prices, std::vector<std::string>& remarks) {
  constexpr size_t kMostNames = 3;
  const auto priced = prices.models();
  if (priced.empty()) return;
  std::set<std::string> without_price;
  std::map<std::string, std::vector<std::string>> without_hours;  // lines by model
  for (const Sum* sum : sums) {
    without_price.insert(sum->without_price.begin(), sum->without_price.end());
    for (const std::string& model : sum->without_hours) {
      if (priced.contains(model)) without_hours[model].push_back(line_name(sum->line));
    }
  }
  const std::string setting = prices.rows.empty() ? "--price-per-gpu-hour: " : "--price-list: some ";
  const std::string start = setting + "hours of ";
  for (const std::string& model : without_price) {
    remarks.push_back(start + in_quotes(model) + " have no price and cost nothing here");
  }
  for (const auto& [model, names] : without_hours) {
    std::string who;
    for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) who += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kMostNames) who += " and " + std::to_string(names.size() - kMostNames) + " more";
    remarks.push_back(start + who + " on " + in_quotes(model) +
                      " are not known (no GPU time, as on MIG) and cost nothing here");
  }
}

// Rounded so that the lines add up to the meter.
void round_lines(std::vector<Sum*>& sums, int64_t meter_millijoules) {
  std::vector<Wide> parts;
  for (const Sum* sum : sums) {
    parts.push_back(sum->alone);
    parts.push_back(sum->shared);
  }
  const std::vector<int64_t> rounded = round_parts(parts, kMicrojoulesPerMillijoule, meter_millijoules);
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i]->line.alone_millijoules = rounded[2 * i];
    sums[i]->line.shared_millijoules = rounded[2 * i + 1];
  }
}

bool is_spread(const BillLine& line) {
  return line.kind == LineKind::kNobody || line.kind == LineKind::kUnknown;
}

Status spread_rest(std::vector<Sum*>& sums, Spread spread) {
  if (spread == Spread::kKeep) return ok_status();
  std::vector<double> weights;
  int64_t rest = 0;
  double grams = 0, kwh = 0, cost = 0, all = 0;
  for (const Sum* sum : sums) {
    const BillLine& line = sum->line;
    double weight = spread == Spread::kByUse ? static_cast<double>(std::max<int64_t>(line.own_millijoules(), 0))
                                             : line.allocated_gpu_hours.value_or(0);
    if (is_spread(line)) {
      rest += line.own_millijoules();
      grams += sum->co2e_grams;
      kwh += sum->building_kwh;
      cost += sum->energy_cost;
      weight = 0;
    }
    weights.push_back(weight);
    all += weight;
  }
  if (all <= 0 && rest == 0) return ok_status();
  if (all <= 0) {
    return Error{Code::kNotFound,
                 spread == Spread::kByUse
                     ? "--spread=use: nobody used a GPU in this span; write --spread=keep"
                     : "--spread=allocation: the server knows of no allocated GPU in this span "
                       "(gpu_ledger_allocation_info, gpu_ledger_slurm_allocation_info); write --spread=use "
                       "or keep"};
  }
  const std::vector<int64_t> parts = share_out(rest, weights);
  for (size_t i = 0; i < sums.size(); ++i) {
    BillLine& line = sums[i]->line;
    if (is_spread(line)) {
      line.spread_millijoules = -line.own_millijoules();
      sums[i]->co2e_grams = sums[i]->building_kwh = sums[i]->energy_cost = 0;
    } else {
      line.spread_millijoules = parts[i];
      sums[i]->co2e_grams += grams * weights[i] / all;
      sums[i]->building_kwh += kwh * weights[i] / all;
      sums[i]->energy_cost += cost * weights[i] / all;
    }
  }
  return ok_status();
}

// The law of the bill. Rounding may differ by a little, a line that was lost by more.
Status check_sum(const Sums& sums, Wide meter, size_t gpus) {
  Wide rest = meter;
  for (const auto& [key, sum] : sums) rest -= sum.alone + sum.shared;
  const Wide most = static_cast<Wide>(gpus) * kRoundingPerGpu + meter / (int64_t{1} << 40);
  if (rest <= most && rest >= -most) return ok_status();
  return Error{Code::kInternal, "the lines do not add up to the meter: this bill would be wrong; please report it"};
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

}  // namespace

Result<Statement> view_books(const BillBooks& books, const BillView& view) {
  Statement statement;
  statement.unmet = find_unmet(books, view);
  if (view.must_exist && !statement.unmet.empty()) return Error{Code::kNotFound, statement.unmet.begin()->second};
  statement.span = books.span;
  statement.by = join(view.by);
  statement.server = view.server;
  statement.generated_by = std::string("gpu-ledger ") + version();
  statement.generated_at = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  statement.spread = view.spread;
  statement.prices = view.prices;
  statement.has_co2e = books.has_co2e;
  statement.gaps = books.gaps;
  statement.remarks = books.remarks;
  Sums sums;
  const Allocated allocated(books);
  const auto prices = prices_by_cluster(view.prices, books);
  Wide meter = 0;
  size_t gpus = 0;
  for (const auto& [name, node] : books.nodes) {
    for (const auto& [uuid, gpu] : node.gpus) {
      add_gpu(books, name, uuid, gpu, view, prices.at(name.cluster), allocated, sums);
      meter += gpu.meter();
      ++gpus;
      statement.meter_gpu_hours += static_cast<double>(gpu.metered_ms()) / kMillisecondsPerHour;
    }
  }
  add_allocations(books, view, prices, sums);
  GL_TRY_STATUS(check_sum(sums, meter, gpus));
  constexpr Wide kMostMicrojoules = Wide{1} << 72;  // in millijoules it still fits
  if (meter > kMostMicrojoules) return Error{Code::kMalformed, "the meters have more joules than there can be"};
  statement.meter_millijoules = static_cast<int64_t>((meter + 500) / 1000);
  std::vector<Sum*> in_order;
  for (auto& [key, sum] : sums) in_order.push_back(&sum);
  std::stable_sort(in_order.begin(), in_order.end(), [](const Sum* a, const Sum* b) {
    if (a->line.kind != b->line.kind) return a->line.kind < b->line.kind;
    return a->alone + a->shared > b->alone + b->shared;
  });
  round_lines(in_order, statement.meter_millijoules);
  if (const Status spread = spread_rest(in_order, view.spread); !spread.ok()) {
    if (view.must_exist) return spread.error();
    statement.spread = Spread::kKeep;
  }
  for (Sum* sum : in_order) {
    BillLine& line = sum->line;
    if (sum->has_error) line.standard_error_joules = std::sqrt(sum->squared_errors);
    // By one price from the rounded energy, as a reader checks it.
    const bool one_price = view.prices.rows.empty();
    line.building_kwh = one_price ? to_kwh(line.charged_millijoules()) * view.prices.pue : sum->building_kwh;
    line.energy_cost = one_price ? line.building_kwh * view.prices.per_kwh : sum->energy_cost;
    line.co2e_grams = sum->co2e_grams;
  }
  note_unpaid(in_order, view.prices, statement.remarks);
  note_free_energy(in_order, view.prices, statement.remarks);
  for (Sum* sum : in_order) statement.lines.push_back(std::move(sum->line));
  return statement;
}

Result<Statement> make_statement(const BillAsk& ask, const BillQuery& query, const BillView& view,
                                 const BillProgress& progress) {
  GL_TRY(books, collect_books(ask, query, progress));
  return view_books(books, view);
}

}  // namespace gpuledger::app

// SPDX-License-Identifier: Apache-2.0
#include "app/bill/focus.h"

#include <fmt/core.h>

#include <optional>

#include "app/bill/amounts.h"
#include "app/bill/csv_cell.h"
#include "app/bill/line_words.h"
#include "base/quote.h"
#include "base/units.h"

namespace gpuledger::app {
namespace {

// Hours of GPUs of one model that have a price.
struct PricedHours {
  const std::string& model;
  double hours = 0;
  double unit_price = 0;
};

// One line of the output: a charge for one line of the statement.
struct Charge {
  const Statement& statement;
  const BillLine& line;
  int64_t all_millijoules;                          // of all lines, whose parts these are
  std::optional<PricedHours> hours = std::nullopt;  // empty: for its energy

  bool is_energy() const { return !hours; }
  // FOCUS has the measured energy of all GPUs as the charge that is split. The hours of a GPU are not.
  bool is_split() const { return is_energy() && all_millijoules > 0; }
};

// Null is an empty cell.
struct FocusColumn {
  const char* name;
  std::string (*cell)(const Charge& charge);
  FocusVersion first = FocusVersion::k1_2;
  FocusVersion last = FocusVersion::k1_4;
};

std::string null_cell(const Charge&) {
  return "";
}

std::string site_cell(const Charge& charge) {
  const std::string site = site_title(charge.statement);
  return csv_text(site.empty() ? "gpu-ledger" : site);  // must not be null
}

std::string cost_cell(const Charge& charge) {
  return plain_decimal(charge.is_energy() ? charge.line.energy_cost : charge.hours->hours * charge.hours->unit_price);
}

std::string begin_cell(const Charge& charge) {
  return utc_text(charge.statement.span.begin);
}

std::string end_cell(const Charge& charge) {
  return utc_text(charge.statement.span.end);
}

std::string optional_cell(const std::optional<double>& value) {
  return value ? plain_decimal(*value) : "";
}

std::string unit_cell(const Charge& charge) {
  return charge.is_energy() ? "kWh" : "GPU-Hours";
}

std::string service_cell(const Charge& charge) {
  return charge.is_energy() ? "GPU energy" : "GPU hours";
}

// A null sub account is what no tenant pays.
std::string account_cell(const Charge& charge) {
  return charge.line.kind == LineKind::kOwner ? csv_text(charge.line.name) : "";
}

std::string description_cell(const Charge& charge) {
  const std::string model = charge.is_energy() ? std::string() : " of " + charge.hours->model;
  return csv_text(fmt::format("{}{}: {}", service_cell(charge), model, line_name(charge.line)));
}

std::string consumed_cell(const Charge& charge) {
  return charge.is_energy() ? exact_kwh(charge.line.own_millijoules()) : plain_decimal(charge.hours->hours);
}

// What is priced: with the data centre's own use, and with the part of what belongs to nobody.
std::string priced_cell(const Charge& charge) {
  if (!charge.is_energy()) return plain_decimal(charge.hours->hours);
  const BillPrices& prices = charge.statement.prices;
  return plain_decimal(prices.rows.empty() ? to_kwh(charge.line.charged_millijoules()) * prices.pue
                                           : charge.line.building_kwh);
}

// With a price list the mean.
double pue_of(const Charge& charge) {
  const int64_t charged = charge.line.charged_millijoules();
  const BillPrices& prices = charge.statement.prices;
  return prices.rows.empty() || charged == 0 ? prices.pue : charge.line.building_kwh / to_kwh(charged);
}

std::string unit_price_cell(const Charge& charge) {
  if (!charge.is_energy()) return plain_decimal(charge.hours->unit_price);
  const BillPrices& prices = charge.statement.prices;
  if (prices.rows.empty()) return plain_decimal(prices.per_kwh);
  return charge.line.building_kwh > 0 ? plain_decimal(charge.line.energy_cost / charge.line.building_kwh)
                                      : "";  // the mean
}

// Not formed from the amount: the specification wants it to stay when the price changes.
std::string sku_cell(const Charge& charge) {
  return charge.is_energy() ? "gpu-energy" : csv_text("gpu-hours/" + charge.hours->model);
}

std::string sku_details_cell(const Charge& charge) {
  if (charge.is_energy()) return "";
  return csv_text(fmt::format(R"({{"GpuCount":1,"x_GpuModel":{}}})", in_quotes(charge.hours->model)));
}

// docs/bill-formats.md says what they mean. Another way to spread is another method.
std::string method_cell(const Charge& charge) {
  if (!charge.is_split()) return "";
  if (charge.statement.spread == Spread::kKeep) return "gpu-ledger-energy";
  return charge.statement.spread == Spread::kByUse ? "gpu-ledger-energy-spread-by-use"
                                                   : "gpu-ledger-energy-spread-by-allocation";
}

std::string method_element(const Charge& charge, int64_t millijoules, std::string_view basis) {
  const double ratio = static_cast<double>(millijoules) / static_cast<double>(charge.all_millijoules);
  return fmt::format(R"({{"AllocatedRatio":{},"UsageUnit":"kWh","UsageQuantity":{},"x_Basis":"{}")",
                     plain_decimal(ratio), exact_kwh(millijoules), basis);
}

std::string method_details_cell(const Charge& charge) {
  if (!charge.is_split()) return "";
  const BillLine& line = charge.line;
  std::string json = R"({"Elements":[)" + method_element(charge, line.alone_millijoules, "measured") + '}';
  if (line.shared_millijoules != 0) {
    json += ',' + method_element(charge, line.shared_millijoules, "estimated");
    if (line.standard_error_joules) {
      json += R"(,"x_StandardErrorKwh":)" + plain_decimal(*line.standard_error_joules / kJoulesPerKwh);
    }
    json += '}';
  }
  if (line.spread_millijoules != 0)
    json += ',' + method_element(charge, line.spread_millijoules, "unattributed_spread") + '}';
  return csv_text(json + "]}");
}

// Null is the part that is allocated to nobody.
std::string allocated_cell(const Charge& charge) {
  const LineKind kind = charge.line.kind;
  const bool is_known = kind == LineKind::kOwner || kind == LineKind::kNoGroup;
  return charge.is_split() && is_known ? csv_text(line_name(charge.line)) : "";
}

std::string tags_cell(const Charge& charge) {
  std::string json = "{";
  for (const auto& [name, value] : charge.line.properties) {
    if (json.size() > 1) json += ',';
    append_quoted(json, name);
    json += ':';
    append_quoted(json, value);
  }
  return csv_text(json + "}");
}

// Own columns are filled on the line of the energy only, so that their sums count nothing twice.
template <typename Value>
std::string once(const Charge& charge, Value value) {
  return charge.is_energy() ? value(charge.line) : std::string();
}

constexpr FocusVersion k1_3 = FocusVersion::k1_3;

const FocusColumn kColumns[] = {
    {"AllocatedMethodDetails", method_details_cell, k1_3},
    {"AllocatedMethodId", method_cell, k1_3},
    {"AllocatedResourceId", allocated_cell, k1_3},
    {"AllocatedResourceName", allocated_cell, k1_3},
    {"AllocatedTags", null_cell, k1_3},  // without those that are in Tags: none
    {"BilledCost", cost_cell},
    {"BillingAccountId", site_cell},
    {"BillingAccountName", site_cell},
    {"BillingCurrency", [](const Charge& charge) { return csv_text(charge.statement.prices.currency); }},
    {"BillingPeriodEnd", end_cell},
    {"BillingPeriodStart", begin_cell},
    {"ChargeCategory", [](const Charge&) { return std::string("Usage"); }},
    {"ChargeClass", null_cell},
    {"ChargeDescription", description_cell},
    {"ChargeFrequency", [](const Charge&) { return std::string("Usage-Based"); }},
    {"ChargePeriodEnd", end_cell},
    {"ChargePeriodStart", begin_cell},
    {"ConsumedQuantity", consumed_cell},
    {"ConsumedUnit", unit_cell},
    {"ContractedCost", cost_cell},
    {"ContractedUnitPrice", unit_price_cell},
    {"EffectiveCost", cost_cell},
    {"HostProviderName", site_cell, k1_3},
    {"InvoiceId", null_cell},  // a bill is no invoice
    {"InvoiceIssuerName", site_cell},
    {"ListCost", cost_cell},
    {"ListUnitPrice", unit_price_cell},
    {"PricingCategory", [](const Charge&) { return std::string("Standard"); }},
    {"PricingQuantity", priced_cell},
    {"PricingUnit", unit_cell},
    {"ProviderName", site_cell, FocusVersion::k1_2, k1_3},
    {"PublisherName", site_cell, FocusVersion::k1_2, k1_3},
    {"ServiceCategory", [](const Charge&) { return std::string("Compute"); }},
    {"ServiceName", service_cell},
    {"ServiceProviderName", site_cell, k1_3},
    {"ServiceSubcategory", [](const Charge&) { return std::string("Other (Compute)"); }},
    {"SkuId", sku_cell},
    {"SkuMeter", service_cell},
    {"SkuPriceDetails", sku_details_cell},
    {"SkuPriceId", sku_cell},
    {"SubAccountId", account_cell},
    {"SubAccountName", account_cell},
    {"Tags", tags_cell},
    {"x_GpuHours",
     [](const Charge& charge) {
       return once(charge, [](const BillLine& line) { return optional_cell(line.gpu_hours); });
     }},
    {"x_AllocatedGpuHours",
     [](const Charge& charge) {
       return once(charge, [](const BillLine& line) { return optional_cell(line.allocated_gpu_hours); });
     }},
    {"x_Co2eGrams",
     [](const Charge& charge) {
       if (!charge.statement.has_co2e) return std::string();
       return once(charge, [](const BillLine& line) { return plain_decimal(line.co2e_grams); });
     }},
    {"x_Pue", [](const Charge& charge) { return charge.is_energy() ? plain_decimal(pue_of(charge)) : std::string(); }},
    {"x_EnergyAloneKwh",
     [](const Charge& charge) {
       return once(charge, [](const BillLine& line) { return exact_kwh(line.alone_millijoules); });
     }},
    {"x_EnergySharedKwh",
     [](const Charge& charge) {
       return once(charge, [](const BillLine& line) { return exact_kwh(line.shared_millijoules); });
     }},
    {"x_EnergyStandardErrorKwh",
     [](const Charge& charge) {
       return once(charge, [](const BillLine& line) {
         return line.standard_error_joules ? plain_decimal(*line.standard_error_joules / kJoulesPerKwh) : std::string();
       });
     }},
    {"x_GpuModel",
     [](const Charge& charge) { return charge.is_energy() ? std::string() : csv_text(charge.hours->model); }},
    {"x_LineKind", [](const Charge& charge) { return std::string(kind_name(charge.line.kind)); }},
    {"x_Complete", [](const Charge& charge) { return std::string(charge.statement.is_final() ? "true" : "false"); }},
};

template <typename Cell>
void append_row(std::string& out, FocusVersion version, Cell cell) {
  bool first = true;
  for (const FocusColumn& column : kColumns) {
    if (version < column.first || version > column.last) continue;
    if (!first) out += ',';
    first = false;
    out += cell(column);
  }
  out += "\r\n";
}

// With a price list the mean.
std::optional<double> hour_price(const Statement& statement, const BillLine& line, const std::string& model,
                                 double hours) {
  const auto& all = statement.prices.rows.empty() ? statement.prices.per_gpu_hour : line.gpu_hour_costs;
  const auto found = all.find(model);
  if (found == all.end()) return std::nullopt;
  return statement.prices.rows.empty() ? found->second : hours > 0 ? found->second / hours : 0;
}

}  // namespace

std::string bill_focus(const Statement& statement, FocusVersion version) {
  std::string out;
  append_row(out, version, [](const FocusColumn& column) { return std::string(column.name); });
  const auto append = [&](const Charge& charge) {
    append_row(out, version, [&](const FocusColumn& column) { return column.cell(charge); });
  };
  const int64_t all = statement.sum_millijoules();
  for (const BillLine& line : statement.lines) {
    append({statement, line, all});
    for (const auto& [model, hours] : line.held_gpu_hours) {
      if (const auto price = hour_price(statement, line, model, hours))
        append({statement, line, all, PricedHours{model, hours, *price}});
    }
  }
  return out;
}

}  // namespace gpuledger::app

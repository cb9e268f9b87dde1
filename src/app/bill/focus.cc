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
  std::optional<PricedHours> hours = std::nullopt;  // empty: for its energy

  bool is_energy() const { return !hours; }
};

enum class In { kBoth, kOnly1_3 };

// Null is an empty cell.
struct FocusColumn {
  const char* name;
  std::string (*cell)(const Charge& charge);
  In in = In::kBoth;
};

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

std::string unit_price_cell(const Charge& charge) {
  if (!charge.is_energy()) return plain_decimal(charge.hours->unit_price);
  const BillPrices& prices = charge.statement.prices;
  if (prices.rows.empty()) return plain_decimal(prices.per_kwh);
  return charge.line.building_kwh > 0 ? plain_decimal(charge.line.energy_cost / charge.line.building_kwh)
                                      : "";  // the mean
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

const FocusColumn kColumns[] = {
    {"BilledCost", cost_cell},
    {"BillingAccountId", site_cell},
    {"BillingAccountName", site_cell},
    {"BillingCurrency", [](const Charge& charge) { return csv_text(charge.statement.prices.currency); }},
    {"BillingPeriodEnd", end_cell},
    {"BillingPeriodStart", begin_cell},
    {"ChargeCategory", [](const Charge&) { return std::string("Usage"); }},
    {"ChargeClass", [](const Charge&) { return std::string(); }},
    {"ChargeDescription", description_cell},
    {"ChargeFrequency", [](const Charge&) { return std::string("Usage-Based"); }},
    {"ChargePeriodEnd", end_cell},
    {"ChargePeriodStart", begin_cell},
    {"ConsumedQuantity", consumed_cell},
    {"ConsumedUnit", unit_cell},
    {"ContractedCost", cost_cell},
    {"EffectiveCost", cost_cell},
    {"HostProviderName", site_cell, In::kOnly1_3},
    {"InvoiceIssuerName", site_cell},
    {"ListCost", cost_cell},
    {"ListUnitPrice", unit_price_cell},
    {"PricingCategory", [](const Charge&) { return std::string("Standard"); }},
    {"PricingQuantity", priced_cell},
    {"PricingUnit", unit_cell},
    {"ProviderName", site_cell},
    {"PublisherName", site_cell},
    {"ServiceCategory", [](const Charge&) { return std::string("Compute"); }},
    {"ServiceName", service_cell},
    {"ServiceProviderName", site_cell, In::kOnly1_3},
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
    {"x_Pue",
     [](const Charge& charge) {
       return charge.is_energy() ? plain_decimal(charge.statement.prices.pue) : std::string();
     }},
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
    if (column.in == In::kOnly1_3 && version == FocusVersion::k1_2) continue;
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
  for (const BillLine& line : statement.lines) {
    append({statement, line});
    for (const auto& [model, hours] : line.held_gpu_hours) {
      if (const auto price = hour_price(statement, line, model, hours))
        append({statement, line, PricedHours{model, hours, *price}});
    }
  }
  return out;
}

}  // namespace gpuledger::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace gpuledger {

inline constexpr double kJoulesPerKwh = 3.6e6;

// Integer microjoules: the driver counts millijoules, power times time needs a finer unit, and with integers the books
// balance exactly.
class Energy {
 public:
  constexpr Energy() = default;
  static constexpr Energy microjoules(int64_t uj) { return Energy(uj); }
  static constexpr Energy millijoules(int64_t mj) { return Energy(mj * 1000); }
  constexpr int64_t microjoules() const { return uj_; }
  constexpr double joules() const { return static_cast<double>(uj_) / 1e6; }

  constexpr Energy& operator+=(Energy other) {
    uj_ += other.uj_;
    return *this;
  }
  constexpr Energy& operator-=(Energy other) {
    uj_ -= other.uj_;
    return *this;
  }
  friend constexpr Energy operator+(Energy a, Energy b) { return a += b; }
  friend constexpr Energy operator-(Energy a, Energy b) { return a -= b; }
  friend constexpr auto operator<=>(Energy, Energy) = default;

 private:
  constexpr explicit Energy(int64_t uj) : uj_(uj) {}
  int64_t uj_ = 0;
};

class Power {
 public:
  constexpr Power() = default;
  static constexpr Power milliwatts(int64_t mw) { return Power(mw); }
  static constexpr Power watts(double w) {
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): std::lround is not constexpr
    return Power(static_cast<int64_t>(w * 1e3 + 0.5));
  }
  constexpr int64_t milliwatts() const { return mw_; }
  constexpr double watts() const { return static_cast<double>(mw_) / 1e3; }
  friend constexpr auto operator<=>(Power, Power) = default;

 private:
  constexpr explicit Power(int64_t mw) : mw_(mw) {}
  int64_t mw_ = 0;
};

// mW * ns = 1e-6 uJ; the product of 1 kW and a day still fits.
constexpr Energy energy_of(Power power, std::chrono::nanoseconds time) {
  return Energy::microjoules(
      static_cast<int64_t>(static_cast<__int128>(power.milliwatts()) * time.count() / 1'000'000));
}
constexpr Power power_of(Energy energy, std::chrono::nanoseconds time) {
  if (time.count() <= 0) return Power();
  return Power::milliwatts(
      static_cast<int64_t>(static_cast<__int128>(energy.microjoules()) * 1'000'000 / time.count()));
}

struct Bytes {
  uint64_t count = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

// 0 to 1.
struct Ratio {
  double value = 0;
  static constexpr Ratio of_percent(double percent) { return {percent / 100}; }
  friend constexpr auto operator<=>(Ratio, Ratio) = default;
};

}  // namespace gpuledger

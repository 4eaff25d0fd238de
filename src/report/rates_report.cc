#include "report/rates_report.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace emplace {
namespace {

// Digits after the point that leave three in all.
int digits_after_point(double value) {
  if (value <= 0 || value >= 100) return 0;
  return 2 - static_cast<int>(std::floor(std::log10(value)));
}

}  // namespace

std::string format_rate(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f} million", rate / 1e6);
  if (rate >= 100) return format_count(std::llround(rate));
  return fmt::format("{:.{}f}", rate, digits_after_point(rate));
}

std::string format_money(double money) {
  if (money >= 100) return format_count(std::llround(money));
  if (money >= 1) return fmt::format("{:.2f}", money);
  return fmt::format("{:.{}f}", money, digits_after_point(money));
}

std::string rate_cell(const std::optional<double>& rate) {
  return rate ? format_rate(*rate) : "";
}

std::string percent_cell(const std::optional<double>& share) {
  return share ? fmt::format("{:.{}f} %", 100 * *share, *share < 0.1 ? 1 : 0) : "";
}

std::string money_cell(const std::optional<double>& money) {
  return money ? format_money(*money) : "";
}

std::string to_text(const Rates& rates) {
  std::vector<std::string> speed;
  if (rates.samples_per_second) {
    speed.push_back(fmt::format("{} samples/s", format_rate(*rates.samples_per_second)));
  }
  if (rates.tokens_per_second) {
    speed.push_back(fmt::format("{} tokens/s", format_rate(*rates.tokens_per_second)));
  }
  if (rates.flops_per_second) {
    speed.push_back(fmt::format("{:.3g} TFLOP/s", *rates.flops_per_second / 1e12));
  }
  if (rates.utilisation) {
    speed.push_back(
        fmt::format("{} of the peak of the devices used (MFU)", percent_cell(rates.utilisation)));
  }
  std::string text;
  if (!speed.empty()) text += fmt::format("speed     {}\n", fmt::join(speed, ", "));
  if (!rates.cost_per_hour) return text;
  std::vector<std::string> cost{
      fmt::format("{} an hour for the devices used", format_money(*rates.cost_per_hour)),
      fmt::format("{} a step", format_money(*rates.cost_per_step))};
  if (rates.cost_per_million_samples) {
    cost.push_back(
        fmt::format("{} per million samples", format_money(*rates.cost_per_million_samples)));
  }
  if (rates.cost_per_million_tokens) {
    cost.push_back(
        fmt::format("{} per million tokens", format_money(*rates.cost_per_million_tokens)));
  }
  return text + fmt::format("cost      {}\n", fmt::join(cost, ", "));
}

nlohmann::ordered_json to_json(const Rates& rates) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
  };
  add("samples_per_second", rates.samples_per_second);
  add("tokens_per_second", rates.tokens_per_second);
  add("flops_per_second", rates.flops_per_second);
  add("utilisation", rates.utilisation);
  add("cost_per_hour", rates.cost_per_hour);
  add("cost_per_step", rates.cost_per_step);
  add("cost_per_million_samples", rates.cost_per_million_samples);
  add("cost_per_million_tokens", rates.cost_per_million_tokens);
  return json;
}

}  // namespace emplace

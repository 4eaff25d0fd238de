#include "learn/nn/device_scores.h"

namespace emplace::learn {
namespace {

constexpr double kFirstOutput = 0.1;  // of Glorot's

}  // namespace

DeviceTensors::DeviceTensors(const DeviceView& view, std::int64_t units, torch::Device device)
    : graph(to_tensor(view.graph, device)), devices(to_tensor(view.devices, device)) {
  const std::int64_t count = view.devices.rows;
  pairs = to_tensor(view.pairs, device).view({units, count, DeviceView::kPairColumns});
  mask = device_mask(view.allowed, count, device);
}

DeviceScores::DeviceScores(Parameters& parameters, const std::string& name, std::int64_t unit_width,
                           std::int64_t hidden, std::int64_t more_pair_columns, Rng& rng)
    : unit_(parameters, name + ".unit", unit_width, hidden, rng),
      device_(parameters, name + ".device", DeviceView::kDeviceColumns, hidden, rng, false),
      pair_(parameters, name + ".pair", DeviceView::kPairColumns + more_pair_columns, hidden, rng,
            false),
      output_(parameters, name + ".output", hidden, 1, rng, false) {
  direct_.weight =
      parameters.constant(name + ".direct", {DeviceView::kPairColumns + more_pair_columns, 1}, 0);
  const torch::NoGradGuard no_gradients;
  output_.weight.mul_(kFirstOutput);
  direct_.weight[DeviceView::distance_column(Line::kModules)].fill_(kFirstWeight);
}

torch::Tensor DeviceScores::operator()(const torch::Tensor& h, const torch::Tensor& devices,
                                       const torch::Tensor& pairs) const {
  return (*this)(h.unsqueeze(1), prepare(devices, pairs)).squeeze(1);
}

DeviceScores::Prepared DeviceScores::prepare(const torch::Tensor& devices,
                                             const torch::Tensor& pairs) const {
  return {.hidden = device_(devices).unsqueeze(0) + pair_(pairs),
          .direct = direct_(pairs).squeeze(-1)};
}

torch::Tensor DeviceScores::operator()(const torch::Tensor& h, const Prepared& prepared) const {
  const torch::Tensor hidden = torch::relu(unit_(h).unsqueeze(2) + prepared.hidden.unsqueeze(1));
  return torch::matmul(hidden, output_.weight.squeeze(1)) + prepared.direct.unsqueeze(1);
}

}  // namespace emplace::learn

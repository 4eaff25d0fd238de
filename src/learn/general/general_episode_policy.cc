#include "learn/general/general_episode_policy.h"

#include <algorithm>
#include <utility>

namespace emplace::learn {
namespace {

// Means over neighbours and pools stay as they are from small graphs to large ones.
constexpr MessagePassingSettings kMessages{.rounds = 8, .aggregate = Aggregate::kMean};

constexpr std::int64_t kPlaceColumns = DeviceView::kDeviceColumns + DeviceView::kPairColumns;

std::int64_t node_width(const GeneralNetwork& network) {
  return std::max<std::int64_t>(1, network.width / 2);
}

Csr<DeviceId> choices_of(const DeviceView& view, const UnitGraph& units) {
  Csr<DeviceId> result;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    std::vector<DeviceId> devices;
    for (const DeviceId device : units.allowed_devices(unit)) {
      if (view.allowed[unit * units.num_devices() + device] != 0) devices.push_back(device);
    }
    result.push_back(devices);
  }
  return result;
}

// [states, devices], or zeros that fit any.
torch::Tensor leanings_of(std::span<const PlacementState* const> states) {
  const auto leans = [](const PlacementState* state) { return !state->leaning.empty(); };
  const auto first = std::find_if(states.begin(), states.end(), leans);
  if (first == states.end()) return torch::zeros({1, 1}, torch::kFloat32);
  const auto devices = static_cast<std::int64_t>((*first)->leaning.size());
  torch::Tensor result =
      torch::zeros({static_cast<std::int64_t>(states.size()), devices}, torch::kFloat32);
  float* row = result.data_ptr<float>();
  for (const PlacementState* state : states) {
    std::copy(state->leaning.begin(), state->leaning.end(), row);
    row += devices;
  }
  return result;
}

std::vector<DeviceId> nearest_slices(const DeviceView& view, const Csr<DeviceId>& choices) {
  const std::int64_t devices = view.devices.rows;
  const std::int64_t column = DeviceView::distance_column(Line::kModules);
  std::vector<DeviceId> result;
  for (std::size_t unit = 0; unit < choices.size(); ++unit) {
    const auto distance = [&](DeviceId device) {
      return view.pairs.at(static_cast<std::int64_t>(unit) * devices + device, column);
    };
    const std::span<const DeviceId> own = choices[unit];
    result.push_back(*std::min_element(
        own.begin(), own.end(), [&](DeviceId a, DeviceId b) { return distance(a) < distance(b); }));
  }
  return result;
}

}  // namespace

GeneralEpisodePolicy::GeneralEpisodePolicy(UnitGraph units, const GeneralNetwork& network,
                                           torch::Device device, Rng& rng)
    : units_(std::move(units)),
      precedence_(precedence_of(units_)),
      views_(units_),
      features_(units_, /*with_memory=*/true, /*with_devices=*/false),
      columns_(units_, views_),
      parameters_(device),
      input_(parameters_, "input", features_.columns() + kPlaceColumns + DeviceView::kGraphColumns,
             node_width(network), rng),
      network_(parameters_, precedence_.predecessors, precedence_.successors, node_width(network),
               network.width, kMessages, rng),
      scores_(parameters_, "scores", network.width, network.width, StateColumns::kColumns, rng) {
  use(views_.fastest(units_.num_devices()));
}

void GeneralEpisodePolicy::use(std::span<const DeviceId> devices) {
  const DeviceView view = views_.of(devices);
  used_ = view.used;
  choices_ = choices_of(view, units_);
  slices_ = nearest_slices(view, choices_);
  tensors_ = DeviceTensors(view, units_.size(), parameters_.device());
  const torch::Tensor by_device = tensors_.devices.unsqueeze(0).expand({units_.size(), -1, -1});
  places_ = torch::cat({by_device, tensors_.pairs}, 2).view({-1, kPlaceColumns});
}

// [states, units, columns].
torch::Tensor GeneralEpisodePolicy::rows(std::span<const PlacementState* const> states) const {
  std::vector<std::int64_t> places;
  for (const PlacementState* state : states) {
    for (UnitId unit = 0; unit < units_.size(); ++unit) {
      places.push_back(static_cast<std::int64_t>(unit) * units_.num_devices() +
                       state->devices[unit]);
    }
  }
  const auto count = static_cast<std::int64_t>(states.size());
  const auto units = static_cast<std::int64_t>(units_.size());
  const torch::Device device = parameters_.device();
  return torch::cat(
      {features_(states).to(device),
       places_.index_select(0, to_tensor(places, device)).view({count, units, kPlaceColumns}),
       tensors_.graph.unsqueeze(0).expand({count, units, -1})},
      2);
}

std::vector<DeviceId> GeneralEpisodePolicy::slices(const torch::Tensor& leaning) const {
  const torch::NoGradGuard no_gradients;
  const torch::Device device = parameters_.device();
  const torch::Tensor nearness =
      tensors_.pairs.select(2, DeviceView::distance_column(Line::kModules)) *
      DeviceScores::kFirstWeight;
  const torch::Tensor best =
      (nearness + leaning.to(device) + tensors_.mask).argmax(1).to(torch::kCPU).contiguous();
  const std::int64_t* first = best.data_ptr<std::int64_t>();
  return {first, first + best.numel()};
}

torch::Tensor GeneralEpisodePolicy::log_probs(std::span<const PlacementState* const> states) const {
  std::vector<std::int64_t> current;
  for (const PlacementState* state : states) current.push_back(state->current);
  const torch::Device device = parameters_.device();
  const torch::Tensor at = to_tensor(current, device);
  const torch::Tensor known = rows(states);
  const torch::Tensor nodes =
      torch::relu(input_(known.view({-1, known.size(2)}))).view({known.size(0), known.size(1), -1});
  const torch::Tensor pairs =
      torch::cat({tensors_.pairs.index_select(0, at), columns_(states, used_).to(device)}, 2);
  const torch::Tensor logits =
      scores_(network_(nodes, at), tensors_.devices, pairs) + leanings_of(states).to(device);
  return torch::log_softmax(logits + tensors_.mask.index_select(0, at), 1);
}

}  // namespace emplace::learn

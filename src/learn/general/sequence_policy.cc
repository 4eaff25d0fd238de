#include "learn/general/sequence_policy.h"

#include <utility>
#include <vector>

#include "learn/encoders/deep_graph_infomax.h"
#include "learn/encoders/gcn.h"
#include "learn/nn/device_scores.h"
#include "learn/nn/gradients.h"
#include "learn/policies/segment_seq2seq_net.h"
#include "learn/policies/unit_sequence.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kEncoderLayers = 3;
constexpr std::int64_t kSequenceSegment = 128;
// The logit of the previous device at first.
constexpr double kFirstRepeat = 2;

// What the placer is made of beside the sequence network.
struct DeviceParts {
  DeviceParts(Parameters& parameters, std::int64_t width, Rng& rng)
      : go(parameters.glorot("placer.go", 1, width, rng)),
        seen(parameters, "placer.seen", DeviceView::kDeviceColumns, width, rng, false),
        scores(parameters, "placer.scores", 2 * width, width, 0, rng) {
    repeat.weight = parameters.constant("placer.repeat.weight", {DeviceView::kGraphColumns, 1}, 0);
    repeat.bias = parameters.constant("placer.repeat.bias", {1}, kFirstRepeat);
  }

  torch::Tensor go;     // [1, width]: what the decoder sees before the first device
  Linear seen;          // what it sees of a device
  DeviceScores scores;  // of [h; context]
  Linear repeat;        // from the graph's columns, for the previous device
};

// The devices of a view, for one segment.
class ViewedDevices final : public DeviceHead {
 public:
  ViewedDevices(const DeviceParts& parts, const DeviceTensors& devices, const Segment& segment)
      : scores_(parts.scores),
        embeddings_(torch::cat({parts.go, parts.seen(devices.devices)})),
        prepared_(parts.scores.prepare(devices.devices,
                                       devices.pairs.narrow(0, segment.first, segment.size))) {
    const std::int64_t count = devices.devices.size(0);
    const torch::Tensor same = torch::eye(count, devices.devices.options());
    transitions_ = parts.repeat(devices.graph) * torch::constant_pad_nd(same, {0, 0, 1, 0});
  }

  torch::Tensor embeddings() const override { return embeddings_; }
  torch::Tensor transitions() const override { return transitions_; }
  torch::Tensor logits(const torch::Tensor& states, const torch::Tensor& contexts,
                       std::int64_t first, std::int64_t steps) const override {
    const torch::Tensor h = torch::cat({states, contexts}, 1);
    return scores_(h.view({steps, -1, h.size(1)}), prepared_.narrow(first, steps)).flatten(0, 1);
  }

 private:
  DeviceScores scores_;
  torch::Tensor embeddings_, transitions_;
  DeviceScores::Prepared prepared_;
};

class GeneralSequencePolicy final : public GeneralPolicy {
 public:
  GeneralSequencePolicy(UnitGraph units, std::int64_t width, torch::Device device, Rng& rng,
                        double most_bytes_kept)
      : GeneralPolicy(device),
        sequence_(std::move(units), /*by_locality=*/true, device),
        views_(sequence_.units()),
        features_(to_tensor(views_.unit_features(), device)),
        adjacency_(normalized_adjacency(sequence_.units(), device)),
        segments_(sequence_.size(), kSequenceSegment, width, most_bytes_kept),
        encoder_(parameters_, "encoder", features_.size(1) + DeviceView::kGraphColumns,
                 {.layers = kEncoderLayers, .width = width}, rng),
        discriminator_(parameters_, width, rng),
        placer_(parameters_, "placer", width,
                {.width = width,
                 .bidirectional = true,
                 .decoder_sees_memory = true,
                 .product_attention = true},
                rng),
        parts_(parameters_, width, rng) {
    use(views_.of(views_.fastest(sequence_.units().num_devices())));
  }

  const DeviceViews& views() const override { return views_; }
  void use(const DeviceView& view) override {
    devices_ = DeviceTensors(view, sequence_.size(), parameters_.device());
    devices_.pairs = sequence_.ordered(devices_.pairs);
    devices_.mask = sequence_.ordered(devices_.mask);
    inputs_ = torch::cat({features_, devices_.graph.expand({features_.size(0), -1})}, 1);
    mixed_ = adjacency_.sum(inputs_);
  }

  using GeneralPolicy::likeliest;
  Samples likeliest(const torch::Tensor& leanings) override {
    return decode(devices_.mask + leanings.to(devices_.mask.device()).unsqueeze(1), {});
  }
  Samples sample(std::int64_t count, Rng& rng) override {
    return decode(devices_.mask, uniforms({count, sequence_.size()}, rng));
  }
  Samples redraw(const Placement& placement, const torch::Tensor& open,
                 const torch::Tensor& leanings, Rng& rng) override {
    const torch::Tensor by_step = sequence_.ordered(open.t().to(parameters_.device())).t();
    const torch::Tensor masks =
        (closed_but_for(by_step, devices_.mask, sequence_.actions_for(placement)) +
         leanings.to(parameters_.device()).unsqueeze(1))
            .contiguous();
    Samples samples = decode(masks, uniforms({masks.size(0), sequence_.size()}, rng));
    samples.context = {masks};
    return samples;
  }
  Scores score(const Samples& samples) override {
    const torch::Tensor& mask = samples.context.empty() ? devices_.mask : samples.context[0];
    return segments_.score(network(), encode(), mask, samples);
  }
  Placement placement(const Samples& samples, std::int64_t index) const override {
    return sequence_.placement(samples, index);
  }
  Samples actions_for(const Placement& placement) override {
    Samples samples;
    samples.actions = sequence_.actions_for(placement);
    return samples;
  }
  // Of one step of deep graph infomax.
  std::vector<torch::Tensor> encoder_gradient(Rng& rng) override {
    const auto encode = [&](const torch::Tensor& features) {
      return encoder_(adjacency_, features);
    };
    return gradient_for(infomax_loss(discriminator_, inputs_, encode, rng), parameters_.tensors());
  }

 private:
  // In the order of the sequence.
  torch::Tensor encode() const {
    return sequence_.ordered(encoder_.from_mixed(adjacency_, mixed_));
  }
  SegmentSeq2Seq::Network network() const {
    const auto at = [this](const Segment& segment) {
      return placer_.with(std::make_shared<ViewedDevices>(parts_, devices_, segment));
    };
    return {.at = at, .parameters = parameters_.tensors()};
  }
  Samples decode(const torch::Tensor& mask, const torch::Tensor& uniform) const {
    const torch::NoGradGuard no_gradients;
    return segments_.sample(network(), encode(), mask, uniform);
  }

  UnitSequence sequence_;
  DeviceViews views_;
  torch::Tensor features_;
  Neighbours adjacency_;
  SegmentSeq2Seq segments_;
  Gcn encoder_;
  Discriminator discriminator_;
  Seq2Seq placer_;
  DeviceParts parts_;
  DeviceTensors devices_;  // pairs and mask in the order of the sequence
  torch::Tensor inputs_;   // features, and what is the same for all units
  torch::Tensor mixed_;    // A^ times these
};

}  // namespace

GeneralPolicyPtr general_sequence_policy(UnitGraph units, const GeneralNetwork& network,
                                         const std::string& device, Rng& rng,
                                         double most_bytes_kept) {
  return std::make_shared<GeneralSequencePolicy>(std::move(units),
                                                 network.width + network.width % 2,
                                                 torch::Device(device), rng, most_bytes_kept);
}

}  // namespace emplace::learn

// What operators can say that no kernel computes. It is refused before anything runs: whatever is
// not refused here, the kernels read, or it changes no number. Gradients come with their forward
// ops, which are looked at.
#include <algorithm>
#include <limits>

#include "base/error.h"

#include "exec/native.h"

namespace emplace::exec {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::kUnsupported, "there is no kernel for {}",
       fmt::format(format, std::forward<Args>(args)...));
}

// Texts and numbers that an attribute may have; absent, it has one of them.
void expect_text(const Site& site, std::string_view name,
                 std::initializer_list<std::string_view> known) {
  const std::string_view text = site.call.attributes.text(name);
  if (!site.call.given(name) || std::find(known.begin(), known.end(), text) != known.end()) return;
  refuse("attribute {} '{}'", name, text);
}

void expect_integer(const Site& site, std::string_view name, std::int64_t expected) {
  const std::int64_t number = site.call.integer(name, expected);
  if (number != expected) refuse("attribute {} {}", name, number);
}

void expect_real(const Site& site, std::string_view name, double expected) {
  const double number = site.call.real(name, expected);
  if (number != expected) refuse("attribute {} {}", name, number);
}

void expect_no_input(const Site& site, std::size_t position, std::string_view what) {
  if (site.call.place_of(position)) refuse("input {}", what);
}

void expect_separate_operands(const Site& site) {
  const Integers omitted = site.call.integers("omitted_inputs");
  for (const std::int64_t position : omitted) {
    if (position == 1 || position == 2) refuse("queries, keys and values in one tensor");
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(site.size(), 3); ++i) {
    if (site.in(i).size() > 4) refuse("queries, keys and values in one tensor");
  }
}

void expect_present_alone(const Site& site) {
  if (site.num_outputs() > 3 || site.call.given("omitted_outputs")) {
    refuse("more than Y and present keys and values");
  }
}

// Longer than what it hides, a mask's value does not matter: it stands for never.
void expect_hiding_filter(const Site& site) {
  constexpr double kHides = -1000;
  const double filter = site.call.real("mask_filter_value", kHides);
  if (filter > kHides) refuse("attribute mask_filter_value {}", filter);
}

void check_attention(const Site& site) {
  const bool packed = site.size() > 1 && site.in(0).size() == 3 && site.in(1).size() == 2;
  expect_present_alone(site);
  if (packed) {
    expect_hiding_filter(site);
    expect_integer(site, "do_rotary", 0);
    expect_no_input(site, 4, "past");
    expect_no_input(site, 5, "attention_bias");
    const Integers sizes = site.call.integers("qkv_hidden_sizes");
    if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end()) {
      refuse("attribute qkv_hidden_sizes of different sizes");
    }
    const auto mask = site.call.place_of(3);
    if (mask && site.in(*mask) != Shape{site.in(0)[0]} &&
        site.in(*mask) != Shape{site.in(0)[0], site.in(0)[1]}) {
      refuse("masks other than [batch] and [batch, keys]");
    }
    return;
  }
  expect_separate_operands(site);
  expect_real(site, "softcap", 0);
  expect_no_input(site, 6, "nonpad_kv_seqlen");
}

void check_multi_head_attention(const Site& site) {
  expect_present_alone(site);
  expect_separate_operands(site);
  expect_hiding_filter(site);
  expect_no_input(site, 8, "past_sequence_length");
  expect_no_input(site, 9, "cache_indirection");
  const auto mask = site.call.place_of(4);
  if (mask && (site.in(*mask).size() != 2 || site.call.place_of(5))) {
    refuse("masks other than [batch, keys]");
  }
}

// A window is refused where it hides something: versions of ONNX Runtime differ by one in what it
// counts.
void check_group_query_attention(const Site& site) {
  expect_present_alone(site);
  expect_separate_operands(site);
  if (site.call.integer("do_rotary", 0) != 0) refuse("attention that rotates");
  expect_real(site, "softcap", 0);
  if (site.call.integer("smooth_softmax", 0) > 0) refuse("attribute smooth_softmax");
  expect_no_input(site, 11, "head_sink");
  expect_no_input(site, 12, "k_scale");
  const std::int64_t window = site.call.integer("local_window_size", -1);
  if (window < 0 || site.size() < 2) return;
  const Shape& k = site.in(1);
  std::int64_t keys = k.at(k.size() == 4 ? 2 : 1);
  if (const auto past = site.call.place_of(3)) keys += site.in(*past).at(2);
  if (window < keys) refuse("attribute local_window_size {} of {} keys", window, keys);
}

void check_rotary_embedding(const Site& site) {
  expect_real(site, "scale", 1);
  expect_integer(site, "is_packed_batching", 0);
}

void check_recurrent(const Site& site) {
  std::string_view names = site.call.attributes.text("activations");
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    const std::initializer_list<std::string_view> known{"Sigmoid", "Tanh", "Relu", "Softsign",
                                                        "Softplus"};
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse("attribute activations '{}'", name);
    }
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
}

void check_resize(const Site& site) {
  expect_text(site, "mode", {"nearest", "linear", "bilinear"});
  expect_text(site, "coordinate_transformation_mode",
              {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"});
  expect_text(site, "keep_aspect_ratio_policy", {"stretch"});
  expect_integer(site, "antialias", 0);
}

void check_max_pool(const Site& site) {
  if (site.num_outputs() > 1) expect_integer(site, "storage_order", 0);
}

void check_batch_norm(const Site& site) {
  expect_integer(site, "spatial", 1);
}

// Before opset 7 an operand could be broadcast from an axis on.
void check_broadcast(const Site& site) {
  if (site.size() < 2 || !site.call.given("axis") || site.call.integer("broadcast", 0) == 0) return;
  const auto rank = static_cast<std::int64_t>(site.in(0).size());
  const std::int64_t axis = site.call.axis(rank, 0);
  const auto size = static_cast<std::int64_t>(site.in(1).size());
  if (axis + size != rank) refuse("attribute axis {}", axis);
}

// Training without a mask would have no gradient.
void check_dropout(const Site& site) {
  if (site.size() == 0) return;
  const std::size_t last = site.size() - 1;
  const bool told = last > 0 && site.inputs[last].dtype == DType::kBool && site.known(last);
  if (told && site.num_outputs() < 2 && site.call.inputs[last].to(torch::kBool).item<bool>()) {
    refuse("training_mode without the output mask");
  }
}

void check_matmul(const Site& site) {
  expect_integer(site, "transBatchA", 0);
  expect_integer(site, "transBatchB", 0);
}

// An inner dimension that is broadcast is one that both have.
void check_bias_softmax(const Site& site) {
  const bool inner = site.call.integer("is_inner_broadcast", 0) != 0;
  if (inner && site.in(1).size() != site.in(0).size()) refuse("attribute is_inner_broadcast 1");
}

void check_grid_sample(const Site& site) {
  expect_text(site, "mode", {"linear", "bilinear", "nearest", "cubic", "bicubic"});
  expect_text(site, "padding_mode", {"zeros", "border", "reflection"});
}

void check_pad(const Site& site) {
  expect_text(site, "mode", {"constant", "edge", "reflect", "wrap"});
}

// Kernels give results in the order of the definition.
void check_outputs(const Site& site) {
  const std::string_view type = site.call.type;
  if (type == "LSTM" || type == "GRU" || type == "RNN" || !site.call.given("omitted_outputs")) {
    return;
  }
  const Integers omitted = site.call.integers("omitted_outputs");
  const bool sum = type.starts_with("Skip") && site.num_outputs() == 2 && site.out(1) == site.out();
  if (!sum) refuse("an op that leaves out output {} and has a later one", omitted.at(0));
}

using Check = void (*)(const Site&);

const std::map<std::string_view, Check>& checks() {
  static const std::map<std::string_view, Check> table = [] {
    std::map<std::string_view, Check> made{{"Attention", check_attention},
                                           {"BatchNormalization", check_batch_norm},
                                           {"BiasSoftmax", check_bias_softmax},
                                           {"Dropout", check_dropout},
                                           {"FusedMatMul", check_matmul},
                                           {"GRU", check_recurrent},
                                           {"GridSample", check_grid_sample},
                                           {"GroupQueryAttention", check_group_query_attention},
                                           {"LSTM", check_recurrent},
                                           {"MaxPool", check_max_pool},
                                           {"MultiHeadAttention", check_multi_head_attention},
                                           {"Pad", check_pad},
                                           {"RNN", check_recurrent},
                                           {"Resize", check_resize},
                                           {"RotaryEmbedding", check_rotary_embedding},
                                           {"Upsample", check_resize}};
    for (const char* type :
         {"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"}) {
      made[type] = check_broadcast;
    }
    return made;
  }();
  return table;
}

}  // namespace

void check_supported(const Site& site) {
  const std::string_view type = site.call.type;
  if (!type.ends_with("Grad")) check_outputs(site);
  const auto found = checks().find(type);
  if (found != checks().end()) found->second(site);
}

}  // namespace emplace::exec

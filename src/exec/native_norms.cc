// Normalisations and their gradients. Forward ops keep the statistics that their gradients would
// otherwise compute again.
#include "base/error.h"

#include "exec/native.h"

namespace emplace::exec {
namespace {

Tensor input_or_none(const OpStep& step, std::size_t i) {
  return i < step.inputs.size() ? step.inputs[i] : Tensor();
}

void keep_for_gradient(OpStep& step, Tensors kept) {
  if (step.keep != nullptr) *step.keep = std::move(kept);
}

bool has_kept(const OpStep& step) {
  return step.kept != nullptr && !step.kept->empty();
}

// libtorch reads a gradient as if it were of X's shape.
void expect_gradient_of_x(const Site& site) {
  if (site.in(0) != site.in(1)) fail_input("has a gradient of another shape than its input's");
}

// ---- by channel, over the batch

// As libtorch chooses between its own kernels and cuDNN's; the last number says which it was.
Tensors normalise_batch(const OpStep& step, bool scaled, bool training, double epsilon) {
  const bool runs = scaled && !training;
  const auto [y, mean, deviation, reserve, kind] = at::_batch_norm_impl_index(
      step.inputs[scaled ? 0 : 1], scaled ? step.inputs[1] : step.inputs[2],
      scaled ? step.inputs[2] : torch::zeros_like(step.inputs[2]), runs ? step.inputs[3] : Tensor(),
      runs ? step.inputs[4] : Tensor(), training, 0, epsilon, true);
  return {y, mean, deviation, reserve, torch::scalar_tensor(kind, torch::kLong)};
}

// ONNX's momentum is the share of the old.
void run_statistics(OpStep& step, double momentum, bool unbiased) {
  const Tensor& x = step.inputs[0];
  const Integers axes = all_axes_but(x.dim(), {1});
  const Tensor mean = x.mean(axes);
  const Tensor variance = x.var(axes, unbiased);
  step.outputs[1] = step.inputs[3] * momentum + mean * (1 - momentum);
  if (step.outputs.size() > 2) {
    step.outputs[2] = step.inputs[4] * momentum + variance * (1 - momentum);
  }
}

// libtorch looks for the second dimension without asking whether there is one.
void expect_channels(const Shape& x) {
  if (x.size() < 2) fail_input("has {} dimensions, expected [batch, channels, ...]", x.size());
}

Run compile_batch_norm(const Site& site) {
  expect_channels(site.in(0));
  const bool training = site.call.training || site.call.integer("training_mode", 0) != 0;
  return [training, epsilon = site.call.real("epsilon", 1e-5),
          momentum = site.call.real("momentum", 0.9),
          unbiased = site.call.integer("unbiased", 0) != 0](OpStep& step) {
    Tensors all = normalise_batch(step, true, training, epsilon);
    step.outputs[0] = all[0];
    if (training && step.outputs.size() > 1) run_statistics(step, momentum, unbiased);
    if (!training) return;
    all.erase(all.begin());
    keep_for_gradient(step, std::move(all));
  };
}

// From dy, X and the scale.
Run compile_batch_norm_grad(const Site& site) {
  expect_channels(site.in(1));
  expect_gradient_of_x(site);
  const std::array<bool, 3> mask{site.wants(0), site.wants(1), site.wants(2)};
  return [mask, wanted = site.wanted(), epsilon = site.call.real("epsilon", 1e-5)](OpStep& step) {
    Tensors kept;
    if (has_kept(step)) {
      kept = *step.kept;
    } else {
      kept = normalise_batch(step, false, true, epsilon);
      kept.erase(kept.begin());
    }
    const auto [dx, scale, bias] = at::_batch_norm_impl_index_backward(
        kept[3].item<std::int64_t>(), step.inputs[1].contiguous(), step.inputs[0].contiguous(),
        step.inputs[2], {}, {}, kept[0], kept[1], true, epsilon, mask, kept[2]);
    hand_out(step, wanted, {dx, scale, bias});
  };
}

// ---- over the last axes

Shape normal_shape(const Site& site, std::size_t x) {
  const auto rank = static_cast<std::int64_t>(site.in(x).size());
  return {site.in(x).begin() + site.call.axis(rank, -1), site.in(x).end()};
}

// Mean and inverse deviation are outputs where the op has them.
Run compile_layer_norm(const Site& site) {
  const Shape normal = normal_shape(site, 0);
  if (site.in(1) != normal || (site.size() > 2 && site.in(2) != normal)) return {};
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < site.num_outputs(); ++i) shapes.push_back(site.out(i));
  return [normal, shapes, epsilon = site.call.real("epsilon", 1e-5)](OpStep& step) {
    const auto [y, mean, inverse] = at::native_layer_norm(step.inputs[0], normal, step.inputs[1],
                                                          input_or_none(step, 2), epsilon);
    step.outputs[0] = y;
    if (shapes.size() > 1) step.outputs[1] = mean.reshape(shapes[1]);
    if (shapes.size() > 2) step.outputs[2] = inverse.reshape(shapes[2]);
    keep_for_gradient(step, {mean, inverse});
  };
}

// From dy, X, the scale, perhaps mean and inverse deviation.
Run compile_layer_norm_grad(const Site& site) {
  expect_gradient_of_x(site);
  const Shape normal = normal_shape(site, 1);
  if (site.in(2) != normal) return {};
  Shape rows = site.in(1);
  for (std::size_t i = rows.size() - normal.size(); i < rows.size(); ++i) rows[i] = 1;
  const std::array<bool, 3> mask{site.wants(0), site.wants(1), site.wants(2)};
  return [normal, rows, mask, wanted = site.wanted(), given = site.size() > 4,
          epsilon = site.call.real("epsilon", 1e-5)](OpStep& step) {
    // libtorch reads what it is given as if it lay together.
    const Tensor x = step.inputs[1].contiguous();
    const Tensor scale = step.inputs[2].contiguous();
    Tensor mean;
    Tensor inverse;
    if (given) {
      mean = step.inputs[3].reshape(rows).contiguous();
      inverse = step.inputs[4].reshape(rows).contiguous();
    } else if (has_kept(step)) {
      mean = (*step.kept)[0];
      inverse = (*step.kept)[1];
    } else {
      std::tie(std::ignore, mean, inverse) =
          at::native_layer_norm(x, normal, scale, scale, epsilon);
    }
    // A bias is looked at for its shape alone, which is the scale's.
    const auto [dx, dscale, dbias] = at::native_layer_norm_backward(
        step.inputs[0].contiguous(), x, normal, mean, inverse, scale, scale, mask);
    hand_out(step, wanted, {dx, dscale, dbias});
  };
}

Integers last_axes(std::size_t rank, std::size_t count) {
  Integers axes;
  for (std::size_t i = rank - count; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

Tensor inverse_root(const Tensor& x, const Integers& axes, double epsilon) {
  return x.square().mean(axes, true).add(epsilon).rsqrt();
}

// Also the inverse of the root of the mean square.
Run compile_rms_norm(const Site& site) {
  const Integers axes = last_axes(site.in(0).size(), normal_shape(site, 0).size());
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < site.num_outputs(); ++i) shapes.push_back(site.out(i));
  return [axes, shapes, epsilon = site.call.real("epsilon", 1e-5)](OpStep& step) {
    const Tensor& x = step.inputs[0];
    const Tensor inverse = inverse_root(x, axes, epsilon);
    Tensor y = x * inverse * step.inputs[1];
    if (step.inputs.size() > 2) y = y + step.inputs[2];
    step.outputs[0] = y;
    for (std::size_t i = 1; i < shapes.size(); ++i) {
      step.outputs[i] = i == 1 ? inverse.reshape(shapes[i]) : inverse.reshape(shapes[i]).clone();
    }
    keep_for_gradient(step, {inverse});
  };
}

// From dy, X, the scale, perhaps the inverse.
Run compile_rms_norm_grad(const Site& site) {
  const Shape normal = normal_shape(site, 1);
  if (site.in(2) != normal) return {};
  Shape rows = site.in(1);
  for (std::size_t i = rows.size() - normal.size(); i < rows.size(); ++i) rows[i] = 1;
  const Integers axes = last_axes(rows.size(), normal.size());
  const Integers before = last_axes(rows.size() - normal.size(), rows.size() - normal.size());
  return [rows, axes, before, wanted = site.wanted(), mask = site.wants(1), bias = site.wants(2),
          given = site.size() > 3, epsilon = site.call.real("epsilon", 1e-5)](OpStep& step) {
    const Tensor& dy = step.inputs[0];
    const Tensor& x = step.inputs[1];
    const Tensor inverse = given            ? step.inputs[3].reshape(rows)
                           : has_kept(step) ? (*step.kept)[0]
                                            : inverse_root(x, axes, epsilon);
    const Tensor normal_x = x * inverse;
    const auto summed = [&](const Tensor& all) { return before.empty() ? all : all.sum(before); };
    const Tensor dscale = mask ? summed(dy * normal_x) : Tensor();
    const Tensor dbias = bias ? summed(dy) : Tensor();
    const Tensor scaled = dy * step.inputs[2];
    const Tensor shares = (scaled * normal_x).mean(axes, true);
    const Tensor dx = (scaled - normal_x * shares) * inverse;
    hand_out(step, wanted, {dx, dscale, dbias});
  };
}

// ---- by groups of channels

struct Groups {
  std::int64_t examples, channels, pixels, groups;
  double epsilon;
};

// Scales by group, as before opset 21, are left to the plain kernel.
std::optional<Groups> groups_of(const Site& site, std::size_t x, std::size_t scale) {
  const Shape& shape = site.in(x);
  const std::int64_t channels = shape.at(1);
  if (count_elements(shape) == 0 || site.in(scale) != Shape{channels}) return std::nullopt;
  const bool each = site.call.type.starts_with("Instance");
  const std::int64_t groups =
      each ? channels : site.call.integer("num_groups", site.call.integer("groups", 1));
  if (channels % groups != 0) fail_input("has {} channels in {} groups", channels, groups);
  return Groups{.examples = shape[0],
                .channels = channels,
                .pixels = count_elements(shape) / (shape[0] * channels),
                .groups = groups,
                .epsilon = site.call.real("epsilon", 1e-5)};
}

Run compile_group_norm(const Site& site) {
  const auto found = groups_of(site, 0, 1);
  if (!found || site.size() < 3 || site.in(2) != site.in(1)) return {};
  return [g = *found](OpStep& step) {
    const auto [y, mean, inverse] =
        at::native_group_norm(step.inputs[0].contiguous(), step.inputs[1], step.inputs[2],
                              g.examples, g.channels, g.pixels, g.groups, g.epsilon);
    step.outputs[0] = y;
    keep_for_gradient(step, {mean, inverse});
  };
}

// From dy, X and the scale.
Run compile_group_norm_grad(const Site& site) {
  const auto found = groups_of(site, 1, 2);
  if (!found) return {};
  expect_gradient_of_x(site);
  const std::array<bool, 3> mask{site.wants(0), site.wants(1), site.wants(2)};
  return [g = *found, mask, wanted = site.wanted()](OpStep& step) {
    const Tensor x = step.inputs[1].contiguous();
    Tensor mean;
    Tensor inverse;
    if (has_kept(step)) {
      mean = (*step.kept)[0];
      inverse = (*step.kept)[1];
    } else {
      std::tie(std::ignore, mean, inverse) =
          at::native_group_norm(x, {}, {}, g.examples, g.channels, g.pixels, g.groups, g.epsilon);
    }
    const auto [dx, scale, bias] = at::native_group_norm_backward(
        step.inputs[0].contiguous(), x, mean, inverse, step.inputs[2], g.examples, g.channels,
        g.pixels, g.groups, mask);
    hand_out(step, wanted, {dx, scale, bias});
  };
}

}  // namespace

void add_native_norms(CompilerTable& table) {
  table["BatchNormalization"] = compile_batch_norm;
  table["BatchNormalizationGrad"] = compile_batch_norm_grad;
  table["LayerNormalization"] = compile_layer_norm;
  table["LayerNormalizationGrad"] = compile_layer_norm_grad;
  for (const char* type : {"RMSNormalization", "SimplifiedLayerNormalization"}) {
    table[type] = compile_rms_norm;
    table[std::string(type) + "Grad"] = compile_rms_norm_grad;
  }
  for (const char* type : {"GroupNormalization", "InstanceNormalization"}) {
    table[type] = compile_group_norm;
    table[std::string(type) + "Grad"] = compile_group_norm_grad;
  }
}

}  // namespace emplace::exec

#include "exec/native.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>

#include "base/error.h"

namespace emplace::exec {

const Shape& Site::in(std::size_t i) const {
  if (i >= inputs.size()) fail_input("has {} inputs, expected more", inputs.size());
  return inputs[i].shape;
}

bool Site::is_floating(std::size_t i) const {
  return at::isFloatingType(scalar_type(inputs.at(i).dtype, {}));
}

std::vector<std::size_t> Site::wanted() const {
  const Integers listed = call.integers("wanted");
  std::vector<std::size_t> result(listed.begin(), listed.end());
  for (std::size_t i = 0; result.size() < num_outputs(); ++i) result.push_back(i);
  return result;
}

bool Site::wants(std::size_t input) const {
  const auto all = wanted();
  return std::find(all.begin(), all.end(), input) != all.end();
}

const CompilerTable& compiler_table() {
  static const CompilerTable table = [] {
    CompilerTable made;
    add_native_attention(made);
    add_native_convolutions(made);
    add_native_dropout(made);
    add_native_indexing(made);
    add_native_norms(made);
    add_native_pools(made);
    add_native_products(made);
    add_native_updates(made);
    return made;
  }();
  return table;
}

Kernel kernel_of(Compiler compiler) {
  return [compiler](const Call& call) {
    Site site{.call = call, .inputs = {}};
    site.call.inputs.assign(call.inputs.size(), {});
    for (const Tensor& input : call.inputs) {
      const DType dtype = input.scalar_type() == torch::kBool ? DType::kBool
                          : input.is_floating_point()         ? DType::kFloat32
                                                              : DType::kInt64;
      site.inputs.push_back(tensor_type(shape_of(input), dtype));
    }
    const Run run = compiler(site);
    if (!run) fail(ErrorKind::kUnsupported, "there is no kernel for such an operator");
    Tensors outputs(std::max<std::size_t>(call.outputs.size(), 1));
    OpStep step{.inputs = call.inputs,
                .outputs = outputs,
                .step = call.stream.step,
                .clock = call.stream.clock};
    run(step);
    return outputs;
  };
}

void hand_out(OpStep& step, const std::vector<std::size_t>& wanted,
              std::initializer_list<Tensor> results) {
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (wanted[i] >= results.size()) fail_input("there is no gradient of input {}", wanted[i]);
    step.outputs[i] = results.begin()[wanted[i]];
  }
}

namespace {

// Pages that nobody touches take no memory, so these are none of any device's.
Tensor untouched_pages(std::int64_t count, const torch::TensorOptions& options) {
  const auto bytes =
      static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * options.dtype().itemsize();
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return torch::from_blob(
      pages, {count}, [bytes](void* data) { munmap(data, bytes); }, options);
}

}  // namespace

Tensor scratch(const Shape& shape, const torch::TensorOptions& options) {
  thread_local Tensors buffers;
  const std::int64_t count = count_elements(shape);
  const auto fits = [&](const Tensor& buffer) {
    return buffer.scalar_type() == c10::typeMetaToScalarType(options.dtype()) &&
           buffer.device() == options.device();
  };
  auto found = std::find_if(buffers.begin(), buffers.end(), fits);
  if (found != buffers.end() && found->numel() < count) {
    buffers.erase(found);  // not both at once
    found = buffers.end();
  }
  if (found == buffers.end()) {
    found = buffers.insert(found, options.device().is_cpu() ? untouched_pages(count, options)
                                                            : torch::empty({count}, options));
  }
  return found->narrow(0, 0, count).view(shape);
}

}  // namespace emplace::exec

#include <cstring>

#include "base/check.h"
#include "base/error.h"

#include "learn/nn/torch.h"
#include "learn/train/state.h"

namespace emplace::learn {

void StateWriter::put(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().cpu().contiguous();
  const bool whole = flat.scalar_type() == torch::kInt64;
  EMPLACE_CHECK(whole || flat.scalar_type() == torch::kFloat32);
  append_entry(name, whole ? kTensorInteger : kTensorFloat, flat.sizes().vec(),
               {static_cast<const char*>(flat.data_ptr()),
                static_cast<std::size_t>(flat.numel() * flat.element_size())});
}

at::Tensor StateReader::tensor(const std::string& name) const {
  at::Tensor result = tensor_of(find(name, kTensorFloat));
  if (!torch::isfinite(result).all().item<bool>()) refuse(name, "numbers that are finite");
  return result;
}

at::Tensor StateReader::whole_tensor(const std::string& name) const {
  return tensor_of(find(name, kTensorInteger));
}

at::Tensor StateReader::tensor_of(const Entry& entry) const {
  const bool whole = entry.kind == kTensorInteger;
  at::Tensor result = torch::empty(entry.shape, whole ? torch::kInt64 : torch::kFloat32);
  if (!entry.bytes.empty()) std::memcpy(result.data_ptr(), entry.bytes.data(), entry.bytes.size());
  return result;
}

void StateReader::load(const std::string& name, at::Tensor target) const {
  const at::Tensor saved = tensor(name);
  if (saved.sizes() != target.sizes()) {
    fail_input(
        "{}: '{}' has {} numbers where this policy has {}: the {} is of another problem or of "
        "other options",
        file_name_, name, saved.numel(), target.numel(), what_);
  }
  const torch::NoGradGuard no_gradients;
  target.copy_(saved);
}

}  // namespace emplace::learn

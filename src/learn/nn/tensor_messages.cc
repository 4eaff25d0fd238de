#include "learn/nn/tensor_messages.h"

#include "base/error.h"

namespace emplace::learn {

std::string tensor_bytes(const std::vector<torch::Tensor>& tensors) {
  std::string bytes;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor plain = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    bytes.append(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
  }
  return bytes;
}

void put_tensors(dist::Writer& writer, const std::vector<torch::Tensor>& tensors) {
  writer.text(tensor_bytes(tensors));
}

std::vector<torch::Tensor> take_tensors(dist::Reader& reader,
                                        const std::vector<torch::Tensor>& like) {
  std::size_t expected = 0;
  for (const torch::Tensor& tensor : like) {
    expected += static_cast<std::size_t>(tensor.numel()) * sizeof(float);
  }
  const std::size_t size = reader.count(1);
  if (size != expected) fail_input("parameters have {} bytes; expected {}", size, expected);
  std::vector<torch::Tensor> tensors;
  for (const torch::Tensor& tensor : like) {
    torch::Tensor taken = torch::empty(tensor.sizes(), torch::kFloat32);
    reader.copy_to(taken.data_ptr(), taken.nbytes());
    tensors.push_back(taken.to(tensor.device()));
  }
  return tensors;
}

}  // namespace emplace::learn

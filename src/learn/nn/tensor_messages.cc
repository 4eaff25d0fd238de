#include "learn/nn/tensor_messages.h"

#include <cstring>
#include <string>

#include "base/error.h"

namespace emplace::learn {

void put_tensors(dist::Writer& writer, const std::vector<torch::Tensor>& tensors) {
  std::string bytes;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor plain = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    bytes.append(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
  }
  writer.text(bytes);
}

std::vector<torch::Tensor> take_tensors(dist::Reader& reader,
                                        const std::vector<torch::Tensor>& like) {
  std::size_t expected = 0;
  for (const torch::Tensor& tensor : like) {
    expected += static_cast<std::size_t>(tensor.numel()) * sizeof(float);
  }
  const std::string bytes = reader.text();
  if (bytes.size() != expected) {
    fail_input("parameters have {} bytes; expected {}", bytes.size(), expected);
  }
  const char* at = bytes.data();
  std::vector<torch::Tensor> tensors;
  for (const torch::Tensor& tensor : like) {
    torch::Tensor taken = torch::empty(tensor.sizes(), torch::kFloat32);
    std::memcpy(taken.data_ptr(), at, taken.nbytes());
    at += taken.nbytes();
    tensors.push_back(taken.to(tensor.device()));
  }
  return tensors;
}

}  // namespace emplace::learn

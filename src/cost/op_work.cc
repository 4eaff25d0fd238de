// Reads the work of an op: FLOPs and bytes as the graph counts them, where it does, else from
// shapes, and what a class's curve looks at beside them (tiles, depth, channels, alignment,
// pieces).
//
// Operators come from ONNX, PyTorch and other exporters, with operands in different orders, so
// matrices and images are told apart by their shapes. Invariant: where shapes are unknown or do not
// fit, the fields stay 0, and the curve's factors for them do not count. Tiles are counted in
// fractions, so that a product never gets faster as it grows. A heuristic, checked against
// measurements (docs/cost-model.md). Linear in the op's inputs and outputs; classes are remembered
// by type.
#include "cost/op_work.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace emplace {
namespace {

double elements(std::span<const std::int64_t> shape) {
  double count = 1;
  for (const std::int64_t dimension : shape) count *= static_cast<double>(dimension);
  return count;
}

// Of matrices of `rows` by `columns`, the work of one processor at a time each. Tiles at the edges
// count by what is in them, or a row more could make a product faster.
double tiles_of(double rows, double columns, double matrices) {
  constexpr double kTile = 128;
  return matrices * std::max(1.0, rows / kTile) * std::max(1.0, columns / kTile);
}

DType operand_dtype(const Graph& graph, OpId op) {
  for (const auto tensors : {graph.outputs(op), graph.inputs(op)}) {
    for (const TensorId tensor : tensors) {
      if (graph.has_shape(tensor)) return graph.dtype(tensor);
    }
  }
  return DType::kFloat32;
}

bool is_integer(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32;
}

// What a tensor is a view of, through at most a few views: exporters chain two or three.
constexpr int kViewChain = 8;

TensorId behind_views(const Graph& graph, TensorId tensor) {
  for (int i = 0; i < kViewChain; ++i) {
    const OpId producer = graph.producer(tensor);
    if (!graph.is_view(producer) || graph.inputs(producer).empty()) return tensor;
    tensor = graph.inputs(producer)[0];
  }
  return tensor;
}

bool is_weight(const Graph& graph, TensorId tensor) {
  const OpRole role = graph.role(graph.producer(behind_views(graph, tensor)));
  return role == OpRole::kParameter || role == OpRole::kConstant || role == OpRole::kBuffer;
}

// The second dimension of the images that a batch norm reads.
double channels_of(const Graph& graph, OpId op) {
  for (const auto tensors : {graph.inputs(op), graph.outputs(op)}) {
    for (const TensorId tensor : tensors) {
      const auto shape = graph.shape(tensor);
      if (shape.size() >= 2) return static_cast<double>(shape[1]);
    }
  }
  return 0;
}

bool is_recurrent(std::string_view type) {
  for (const std::string_view cell : {"LSTM", "GRU", "RNN", "lstm", "gru", "rnn"}) {
    if (type.find(cell) != std::string_view::npos) return true;
  }
  return false;
}

bool transposes(std::string_view type) {
  return type == "t" || type == "transpose" || type == "permute" || type == "Transpose";
}

// Elements that lie next to each other in memory: the last dimension, unless a view turned it.
std::int64_t row_length(const Graph& graph, TensorId tensor) {
  for (int i = 0; i < kViewChain; ++i) {
    const OpId producer = graph.producer(tensor);
    if (!graph.is_view(producer) || !transposes(graph.type(producer))) break;
    if (graph.inputs(producer).empty()) break;
    tensor = graph.inputs(producer)[0];
  }
  const auto shape = graph.shape(tensor);
  return shape.empty() ? 1 : shape.back();
}

bool is_unaligned(const Graph& graph, TensorId tensor) {
  constexpr std::int64_t kAlignment = 128;  // bits
  // Of whole units, which may be too many to count in bits.
  const std::int64_t bits =
      row_length(graph, tensor) % kAlignment * dtype_bits(graph.dtype(tensor));
  // Rows of one element, as in a product with a vector, are read as a column.
  return row_length(graph, tensor) > 1 && bits % kAlignment != 0;
}

}  // namespace

OperatorKind WorkReader::kind_of(OpId op) {
  if (graph_.phase(op) == Phase::kUpdate) return classify(graph_.type(op), Phase::kUpdate);
  const auto [entry, added] = kinds_.try_emplace(graph_.type(op));
  if (added) entry->second = classify(graph_.type(op), Phase::kForward);
  return entry->second;
}

OpWork WorkReader::work(OpId op) {
  const OperatorKind kind = kind_of(op);
  OpWork work{.op_class = kind.op_class, .dtype = operand_dtype(graph_, op)};
  work.flops = static_cast<double>(graph_.flops(op).value_or(0));
  switch (kind.op_class) {
    case OpClass::kMatMul:
    case OpClass::kMatMulGrad:
      if (is_recurrent(graph_.type(op))) {
        read_recurrent(op, work);
      } else {
        read_product(op, work);
      }
      break;
    case OpClass::kConvolution:
    case OpClass::kConvolutionGrad:
      read_convolution(op, kind.gradient, work);
      break;
    case OpClass::kElementwise:
      read_elementwise(op, work);
      break;
    case OpClass::kBatchNorm:
    case OpClass::kBatchNormGrad:
      work.channels = channels_of(graph_, op);
      break;
    case OpClass::kScatter:
      // Sorts the bags' indices before it adds up.
      if (kind.gradient && graph_.type(op).find("embedding_bag") != std::string_view::npos) {
        work.pieces = 2;
      }
      break;
    default:
      break;
  }
  work.bytes = moved_bytes(op, work.op_class);
  return work;
}

// The matrices are the first two inputs with two dimensions or more, but in PyTorch's operators
// that begin with what is added (addmm, baddbmm, ...), the last two.
void WorkReader::read_product(OpId op, OpWork& work) const {
  std::vector<TensorId> matrices;
  for (const TensorId tensor : graph_.inputs(op)) {
    if (graph_.shape(tensor).size() >= 2) matrices.push_back(tensor);
  }
  if (matrices.size() < 2 || graph_.outputs(op).empty()) return;
  const std::string_view type = graph_.type(op);
  const bool adds = type.starts_with("add") || type.starts_with("badd");
  const std::size_t first = adds ? matrices.size() - 2 : 0;
  const TensorId left = matrices[first];
  const TensorId right = matrices[first + 1];
  const TensorId out = graph_.outputs(op)[0];
  const auto shape = graph_.shape(out);
  if (shape.size() < 2) return;
  const bool weights = is_weight(graph_, left) || is_weight(graph_, right);
  if (shape.size() >= 3 && graph_.shape(left).size() >= 3 && graph_.shape(right).size() >= 3) {
    work.op_class = OpClass::kBatchedMatMul;
  } else if (!weights && graph_.phase(op) == Phase::kBackward) {
    work.op_class = OpClass::kMatMulGrad;
  } else if (graph_.inputs(op).size() >= 3 && work.op_class == OpClass::kMatMul) {
    work.op_class = OpClass::kLinear;
  }
  const auto columns = static_cast<double>(shape.back());
  const double products =
      work.op_class == OpClass::kBatchedMatMul ? elements(shape.first(shape.size() - 2)) : 1;
  work.tiles = tiles_of(elements(shape) / columns / products, columns, products);
  work.unaligned =
      is_unaligned(graph_, left) || is_unaligned(graph_, right) || is_unaligned(graph_, out);
  if (graph_.flops(op).value_or(0) > 0) return;
  const auto operand = graph_.shape(left);
  const bool transposed = graph_.attributes(op).integer("transA", 0) != 0;
  work.flops = 2 * elements(shape) *
               static_cast<double>(transposed ? operand[operand.size() - 2] : operand.back());
}

// A whole sequence in one op: its steps wait for each other, so each starts kernels of its own. The
// sequence is the longest of what comes in, as weights have no more than two directions.
void WorkReader::read_recurrent(OpId op, OpWork& work) const {
  const std::size_t axis = graph_.attributes(op).integer("layout", 0) != 0 ? 1 : 0;
  for (const TensorId tensor : graph_.inputs(op)) {
    const auto shape = graph_.shape(tensor);
    if (shape.size() < 3 || is_weight(graph_, tensor)) continue;
    work.pieces = std::max(work.pieces, static_cast<double>(shape[axis]));
  }
}

// Which of a convolution's tensors is which. Nothing when the shapes are not known or do not fit.
std::optional<WorkReader::Images> WorkReader::find_images(OpId op, bool gradient) const {
  std::vector<TensorId> in;
  std::vector<TensorId> out;
  for (const TensorId tensor : graph_.inputs(op)) {
    if (graph_.shape(tensor).size() >= 3) in.push_back(tensor);
  }
  for (const TensorId tensor : graph_.outputs(op)) {
    if (graph_.shape(tensor).size() >= 3) out.push_back(tensor);
  }
  if (in.size() < 2 || out.empty()) return std::nullopt;
  const auto images = [&](TensorId y, TensorId x, TensorId w) -> std::optional<Images> {
    const Images result{graph_.shape(y), graph_.shape(x), graph_.shape(w)};
    if (result.w[1] <= 0 || result.y[0] != result.x[0]) return std::nullopt;
    if (!result.plain() && !result.transposed()) return std::nullopt;
    return result;
  };
  if (!gradient) return images(out[0], in[0], in[1]);
  if (in.size() >= 3) return images(in[0], in[1], in[2]);  // as convolution_backward has them
  // One gradient: its tensor is the output, and the other two come in either order.
  const bool of_weights = graph_.type(op).find("Weight") != std::string_view::npos;
  auto found = of_weights ? images(in[0], in[1], out[0]) : images(in[0], out[0], in[1]);
  if (found) return found;
  return of_weights ? images(in[1], in[0], out[0]) : images(in[1], out[0], in[0]);
}

// PyTorch counts the weight gradient of a grouped convolution as if it were not grouped, so where
// one op computes several gradients the shapes are believed rather than the count.
void WorkReader::read_convolution(OpId op, bool gradient, OpWork& work) const {
  int gradients = 0;
  for (const TensorId tensor : graph_.outputs(op)) gradients += graph_.shape(tensor).size() >= 3;
  if (gradient) work.pieces = std::max(1, gradients);
  const auto images = find_images(op, gradient);
  if (!images) return;
  const auto& [y, x, w] = *images;
  const std::int64_t groups = (images->plain() ? x[1] : y[1]) / w[1];
  work.depth = elements(w.subspan(1));
  work.tiles = tiles_of(elements(y) / static_cast<double>(y[1]),
                        static_cast<double>(y[1]) / static_cast<double>(groups),
                        static_cast<double>(groups));
  if (groups > 1 && w[1] == 1) {
    work.op_class = gradient ? OpClass::kDepthwiseGrad : OpClass::kDepthwise;
  } else if (w.size() == 3) {
    work.op_class = gradient ? OpClass::kConvolution1dGrad : OpClass::kConvolution1d;
  } else if (groups == 1 && elements(w.subspan(2)) == 1) {
    work.op_class = gradient ? OpClass::kPointwiseGrad : OpClass::kPointwise;
  }
  if (gradient ? gradients < 2 && graph_.flops(op) && graph_.inputs(op).size() < 3
               : graph_.flops(op).has_value()) {
    return;
  }
  work.flops = 2 * work.pieces * elements(images->plain() ? y : x) * elements(w.subspan(1));
}

// An operand that is neither as large as the result nor a single number is read again and again.
void WorkReader::read_elementwise(OpId op, OpWork& work) const {
  if (graph_.outputs(op).empty()) return;
  const Bytes written = graph_.bytes(graph_.outputs(op)[0]);
  const auto is_broadcast = [&](TensorId tensor) {
    const auto shape = graph_.shape(tensor);
    return graph_.has_shape(tensor) && elements(shape) > 1 &&
           elements(shape) < elements(graph_.shape(graph_.outputs(op)[0]));
  };
  const auto inputs = graph_.inputs(op);
  if (written > 0 && std::any_of(inputs.begin(), inputs.end(), is_broadcast)) {
    work.op_class = OpClass::kBroadcast;
  }
}

double WorkReader::moved_bytes(OpId op, OpClass op_class) const {
  if (op_class == OpClass::kMetadata) return 0;
  if (const auto given = graph_.bytes_moved(op)) return static_cast<double>(*given);
  Bytes written = 0;
  for (const TensorId tensor : graph_.outputs(op)) written += graph_.bytes(tensor);
  if (op_class == OpClass::kFill) return static_cast<double>(written);
  Bytes moved = written;
  Bytes indices = 0;
  for (const TensorId tensor : graph_.inputs(op)) {
    if (is_integer(graph_.dtype(tensor))) indices += graph_.bytes(tensor);
  }
  for (const TensorId tensor : graph_.inputs(op)) {
    Bytes bytes = graph_.bytes(tensor);
    const bool part = op_class == OpClass::kGather || op_class == OpClass::kConcat;
    if (part) bytes = std::min(bytes, written);
    // One number of each row is looked at, and as many indices.
    if (op_class == OpClass::kLoss) bytes = std::min(bytes, indices);
    moved += bytes;
    // An update writes its parameter in place.
    const bool parameter =
        graph_.role(graph_.producer(behind_views(graph_, tensor))) == OpRole::kParameter;
    if (op_class == OpClass::kUpdate && parameter) moved += graph_.bytes(tensor);
  }
  return static_cast<double>(moved);
}

}  // namespace emplace

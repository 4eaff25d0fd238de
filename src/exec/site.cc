// What a graph says of an op before it runs.
#include "base/error.h"

#include "graph/random_ops.h"

#include "exec/native.h"
#include "exec/random.h"
#include "exec/sources.h"

namespace emplace::exec {
namespace {

// The first op behind the tensor, beyond those that cut it or put it together, of this type; kNoOp:
// none.
OpId producer_behind(const Graph& graph, TensorId tensor, std::string_view type) {
  OpId op = graph.producer(tensor);
  while (graph.type(op) != type) {
    if (!graph.type(op).starts_with("Part") && !graph.is_view(op)) return kNoOp;
    if (graph.inputs(op).empty()) return kNoOp;
    op = graph.producer(graph.inputs(op)[0]);
  }
  return op;
}

// Under which name the op draws random numbers: a copy or a piece under that of the original, a
// gradient under that of its forward op.
std::string_view drawing_name(const Graph& graph, OpId op) {
  const std::string_view given = graph.attributes(op).text(kDrawnAs);
  if (!given.empty()) return given;
  constexpr std::string_view kSuffix = "Grad";
  const std::string_view type = graph.type(op);
  if (!type.ends_with(kSuffix)) return graph.op_name(op);
  const std::string_view forward = type.substr(0, type.size() - kSuffix.size());
  const auto inputs = graph.inputs(op);
  for (std::size_t i = inputs.size(); i-- > 0;) {
    const OpId found = producer_behind(graph, inputs[i], forward);
    if (found != kNoOp) return drawing_name(graph, found);
  }
  return graph.op_name(op);
}

double ratio_of(const Graph& graph, OpId op) {
  Call call{.type = {}, .attributes = graph.attributes(op)};
  for (const TensorId input : graph.inputs(op)) {
    const OpId source = producer_behind(graph, input, "constant");
    call.inputs.push_back(source == kNoOp ? Tensor() : constant_value(graph, source));
  }
  return dropout_ratio(call);
}

// The gradient of a dropout reads its mask alone. How much was dropped is known where the mask was
// made, perhaps behind ops that cut it or put it together.
double ratio_behind(const Graph& graph, TensorId mask) {
  for (const char* type : {"Dropout", "BiasDropout"}) {
    const OpId found = producer_behind(graph, mask, type);
    if (found != kNoOp) return ratio_of(graph, found);
  }
  fail_input("its mask does not come from a Dropout");
}

TensorType type_of(const Graph& graph, TensorId tensor) {
  const auto shape = graph.shape(tensor);
  return {{shape.begin(), shape.end()}, graph.dtype(tensor), graph.bytes(tensor)};
}

}  // namespace

Site site_of(const Graph& graph, OpId op, const OpTarget& target) {
  Site site;
  Call& call = site.call;
  call.type = graph.type(op);
  call.attributes = graph.attributes(op);
  call.training = target.training;
  call.stream.key = stream_key(target.seed, drawing_name(graph, op));
  for (const TensorId tensor : graph.inputs(op)) {
    site.inputs.push_back(type_of(graph, tensor));
    const OpId producer = graph.producer(tensor);
    const bool known = graph.role(producer) == OpRole::kConstant &&
                       graph.attributes(producer).find("value") != nullptr;
    call.inputs.push_back(known ? constant_value(graph, producer) : Tensor());
  }
  torch::ScalarType floating = target.real;
  for (const TensorId tensor : graph.outputs(op)) {
    call.outputs.push_back(type_of(graph, tensor));
    const torch::ScalarType type = scalar_type(graph.dtype(tensor), target);
    if (call.outputs.size() == 1 && at::isFloatingType(type)) floating = type;
  }
  call.floating = torch::TensorOptions(floating).device(target.device);
  const bool by_mask = call.type == "DropoutGrad" || call.type == "BiasDropoutGrad";
  if (by_mask && !call.given("ratio") && !graph.inputs(op).empty()) {
    call.attributes.set("ratio", ratio_behind(graph, graph.inputs(op).back()));
  }
  return site;
}

}  // namespace emplace::exec

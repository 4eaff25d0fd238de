#include "tensor/captured_operators.h"

#include <set>
#include <utility>

#include "base/check.h"

#include "tensor/captured/translation.h"

namespace emplace {

// An op whose by-products something else reads stays, and all is done again.
TranslatedGraph translate_captured(const Graph& graph) {
  bool any = false;
  for (OpId op = 0; op < graph.num_ops() && !any; ++op) {
    any = !graph.is_source(op) && is_captured_operator(graph.type(op));
  }
  if (!any) {
    std::vector<std::optional<TensorId>> same(graph.num_tensors());
    for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) same[tensor] = tensor;
    return {graph, std::move(same)};
  }
  std::set<OpId> stay;
  for (;;) {
    captured::Translation translation(graph, stay);
    try {
      translation.run();
    } catch (const captured::NotMade& missing) {
      EMPLACE_CHECK(stay.insert(missing.op).second);
      continue;
    }
    auto tensors = translation.tensors();
    return {std::move(translation).take_graph(), std::move(tensors)};
  }
}

bool is_captured_operator(std::string_view type) {
  if (type.ends_with('_') && type != "copy_") type.remove_suffix(1);
  return captured::find_rule(type) != nullptr;
}

}  // namespace emplace

#include "tensor/piece_spec.h"

#include "graph/copy.h"
#include "graph/random_ops.h"

#include "tensor/movers.h"

namespace emplace {

double share_of_box(const tdl::Description& description, const tdl::Region& box) {
  double share = 1;
  for (std::size_t v = 0; v < box.size(); ++v) {
    share *=
        static_cast<double>(box[v].size()) / static_cast<double>(description.variables[v].extent);
  }
  return share;
}

void scale(OpSpec& spec, double share) {
  if (spec.flops) spec.flops = scaled(*spec.flops, share);
  if (spec.bytes_moved) spec.bytes_moved = scaled(*spec.bytes_moved, share);
  spec.temp_bytes = scaled(spec.temp_bytes, share);
  spec.persistent_bytes = scaled(spec.persistent_bytes, share);
  for (auto& [device, time] : spec.time_us) {
    time = Decimal::from_double(time.to_double() * share, 3);
  }
}

OpSpec spec_of_piece(const Graph& graph, OpId op, const tdl::Description* description,
                     const tdl::Piece& piece) {
  OpSpec spec = spec_of_op(graph, op);
  spec.attributes = piece.attributes;
  draw_as_original(spec.attributes, spec.type, graph.op_name(op));
  if (description != nullptr) scale(spec, share_of_box(*description, piece.box));
  return spec;
}

}  // namespace emplace

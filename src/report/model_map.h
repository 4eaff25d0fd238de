// Where a model's ops are drawn: modules as boxes in boxes, in the order of the forward pass, each
// as large as what is in it.
//
// Boxes of one module follow each other in rows, as words do, so that the whole is about half as
// wide again as it is high; the ops of a box fill a grid, forward ops first. No edges are
// minimised: layered layouts of 25,000 ops take minutes, this takes milliseconds, and neighbours in
// the model stay neighbours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

#include "graph/graph.h"
#include "graph/modules.h"

namespace emplace {

struct MapBox {
  std::int32_t parent = -1;  // -1: the model
  std::string name = {};     // what is written on it; empty: ops of the parent's own
  std::string path = {};     // the module's name
  double x = 0;              // of its upper left corner, in widths of an op
  double y = 0;
  double width = 0;
  double height = 0;
  std::vector<OpId> ops = {};  // those that are in no box inside, in the order of the grid
  std::int32_t columns = 0;    // of the grid, which begins at (ops_x, ops_y)
  double ops_x = 0;
  double ops_y = 0;
};

// Parents before what is in them; the first is the model. A box has boxes or ops, not both.
std::vector<MapBox> map_of_model(const Graph& graph, const Modules& modules);

}  // namespace emplace

// Which module of the model each op belongs to, and which modules are layers of a recurrent
// network. Graphs seldom say the former and never the latter; both are read off names and dataflow.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace emplace {

struct Modules {
  std::vector<std::uint32_t> of_op;
  std::vector<std::string> names;  // by module, in the order in which the forward pass meets them
  bool named = true;  // false: nothing names one, and every forward op is one of its own

  std::uint32_t size() const { return static_cast<std::uint32_t>(names.size()); }
};

// An op's module is the first of these that there is:
//  1. its `module`;
//  2. the path in its name, as exporters write it ("/enc/layer.0/MatMul" is of "enc.layer.0"; a
//     part that the next one repeats is dropped, "/layer2/layer2.1" being "layer2.1");
//  3. that of the first parameter, else buffer, that it reads, directly or through views. That one
//     is of its name less the last part ("enc.0.weight_ih" is of "enc.0") unless that is a number
//     ("bias.0"), or of the ops that read it when its name is an exporter's ("onnx::MatMul_7");
//  4. for a forward op, that of the latest op that it reads from, else of the first that reads it;
//  5. for a backward op, that of the parameters it helps to update if it does nothing else; else of
//     the latest forward op whose tensor it reads; else of the latest op it reads from; else of the
//     first that reads it.
// Under 1 and 2 the number that exporters add for repeated calls of a module ("cells.3_19") is
// dropped where parameters say that the module is "cells.3". Where nothing names a module, every
// forward op is one of its own. An op that none of this reaches is of a module without a name.
Modules infer_modules(const Graph& graph);

// The layers of an unrolled recurrent network, counted from 0 along each stack of layers.
struct RecurrentLayers {
  std::uint32_t count = 0;               // 0: not a recurrent network of two or more layers
  std::vector<std::uint32_t> of_module;  // empty when there are none
};

// A module is recurrent when one of its parameters is read by more than four forward ops (unrolled
// steps) and more than four ops that read its parameters depend on each other through the module
// itself (a state handed on; an embedding or a projection repeats without one). Recurrent modules
// whose names differ only in their last number or in a direction (fw, bw, ...) are one stack;
// directions of one number are one layer ("enc_fw" and "enc_bw"), and layers count up in forward
// order. So encoder and decoder layers of the same index share a layer. Of the other modules, those
// whose parameters are read before any recurrent op (embeddings) belong to the first layer, all
// others (attention, projection) to the last.
RecurrentLayers find_recurrent_layers(const Graph& graph, const Modules& modules);

}  // namespace emplace

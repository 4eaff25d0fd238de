// What is known of the steps captured from PyTorch, and what the zoo's models are compared with
// them by.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"

#include "graph/graph.h"

#include "cost/problem.h"

#include "sim/simulator.h"

#include "io/readers.h"

namespace emplace::zoo {

struct CaptureFigures {
  std::int64_t parameters = 0;
  double forward_flops = 0;
  double step_flops = 0;
  Bytes peak = 0;  // peak_on_one_device
};

// Of captures that are too large for the repository too; captures_test.cc checks those that are
// not.
inline const CaptureFigures& figures_of(const std::string& capture) {
  static const std::map<std::string, CaptureFigures> kFigures{
      {"bert-base-b24", {132'985'716, 2'138'909'442'048, 6'416'728'326'144, 14'250'228'176}},
      {"gnmt2-b256", {155'001'088, 1'832'407'531'520, 5'486'485'176'320, 9'519'899'648}},
      {"gnmt4-b256", {196'976'896, 2'691'400'990'720, 8'054'875'619'328, 10'967'327'744}},
      {"gpt2-b8", {163'037'184, 2'333'186'457'600, 6'999'559'372'800, 25'124'471'200}},
      {"inception-v3-b32", {23'834'568, 365'645'830'144, 1'095'709'863'936, 3'266'369'168}},
      // Depthwise convolutions' gradients counted from shapes: PyTorch's counter takes every
      // channel to see every other in the gradient of the weights.
      {"nasnet-b32", {4'938'772, 37'417'269'248, 111'558'174'720, 2'818'127'800}},
      {"resnet50-b32", {25'557'032, 261'707'792'384, 777'570'484'224, 2'877'398'088}},
      {"rnnlm4-b64", {265'387'264, 1'022'739'087'360, 3'059'627'327'488, 12'442'166'272}},
      {"transformer-xl8-b32", {170'499'328, 2'529'735'737'344, 7'589'207'212'032, 8'706'814'976}},
      {"vgg16-b32", {138'357'544, 990'096'916'480, 2'964'741'685'248, 3'312'430'240}},
      {"wavenet-b8", {15'901'696, 1'035'103'895'552, 3'105'294'909'440, 6'852'227'072}},
  };
  return kFigures.at(capture);
}

// Of one phase, or of all.
inline double total_flops(const Graph& graph, std::optional<Phase> phase) {
  double flops = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (phase && graph.phase(op) != *phase) continue;
    flops += static_cast<double>(graph.flops(op).value_or(0));
  }
  return flops;
}

// Of the step with every op on one H200, by the analytic times alone so that a captured graph and
// a built one are run alike.
inline Bytes peak_on_one_device(const Graph& graph) {
  const auto problem = compile(std::make_shared<const Graph>(graph), read_cluster("1xh200"),
                               {.cost = CostMode::kAnalytic});
  const Simulator simulator(problem);
  return simulator.run(Placement(graph.num_ops(), 0), Schedule{}).devices[0].peak;
}

}  // namespace emplace::zoo

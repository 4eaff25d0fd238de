// The batch of a model's step: how it is set, and how it is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/onnx_inputs.h"
#include "run/problem_request.h"

namespace emplace {

// The request with its batch put where the model has it: the option of a zoo model, or the symbolic
// dimension of an ONNX file. Throws an Error when the model has no batch that can be set.
ProblemRequest with_batch(const ProblemRequest& request);

// What a step does, samples and tokens included where they are known. Samples are a zoo model's
// option, or the value of an ONNX file's dimension that is called a batch, else the first dimension
// that its inputs share; of other files nobody knows.
StepWork work_of(const ProblemRequest& request, const Graph& graph);

// The symbol that the inputs begin with; of several, the one that is called a batch. Empty: none.
std::string batch_symbol(const std::vector<OnnxInput>& inputs);

}  // namespace emplace

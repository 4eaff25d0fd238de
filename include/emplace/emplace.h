// emplace decides where every operation of a neural network should run.
//
//   const emplace::Model model = emplace::read_model("model.onnx");
//   const auto problem = emplace::compile(model.graph, emplace::read_cluster("4xp100"), {});
//   const emplace::Answer answer = emplace::place(problem);
//   std::puts(answer.explanation().c_str());
//
// The library prints nothing, exits nowhere, reads no environment variables, and leaves the process
// as it was. Everything may be called from several threads at once.
#pragma once

#include <emplace/cluster.h>
#include <emplace/environment.h>
#include <emplace/error.h>
#include <emplace/execute.h>
#include <emplace/granularity.h>
#include <emplace/model.h>
#include <emplace/parse.h>
#include <emplace/partition.h>
#include <emplace/place.h>
#include <emplace/placer_function.h>
#include <emplace/problem.h>
#include <emplace/search.h>
#include <emplace/simulate.h>
#include <emplace/train.h>
#include <emplace/types.h>

// emplace partition MODEL: tensors and operators divided among the devices, against running the
// model on one device, placing its ops whole, and the usual ways to divide it.
#pragma once

#include <string>

#include "tensor/method.h"

#include "cli/command.h"

namespace emplace::cli {

struct PartitionArguments {
  ProblemArguments problem;
  std::string method = "search";
  int workers = 0;  // 0: all devices
  double seconds = kPartitionSeconds;
  std::string output;
  std::string graph;
  std::string placement;
  std::string trace;
  bool json = false;
};

void partition_model(const PartitionArguments& arguments, Session& session);

}  // namespace emplace::cli

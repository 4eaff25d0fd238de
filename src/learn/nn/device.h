// Names of the devices that libtorch computes on.
#pragma once

#include <string>

namespace emplace::learn {

// Throws an Error when it is not cpu, cuda or cuda:N, or when there is no such GPU here.
void require_device(const std::string& name);

}  // namespace emplace::learn

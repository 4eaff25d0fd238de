// Every partition method of src/tensor/methods. The list is generated at configure time.
#pragma once

#include "tensor/method.h"

namespace emplace {

const PartitionRegistry& all_partition_methods();

}  // namespace emplace

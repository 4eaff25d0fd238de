// Operators that compute every element of their result from the same elements of their inputs.
#pragma once

#include <string>
#include <string_view>

namespace emplace {

// "ReluGrad", "relu_", "threshold_backward" -> "relu", "threshold".
std::string plain_operator_name(std::string_view type);

// Only those that are sure to be; of any naming.
bool is_elementwise_operator(std::string_view type);

}  // namespace emplace

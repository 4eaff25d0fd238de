// The parts that a learned placer is put together from, named without libtorch.
#pragma once

#include <memory>

namespace emplace::learn {

class Policy;
class Learner;
class Method;

using PolicyPtr = std::shared_ptr<Policy>;
using LearnerPtr = std::shared_ptr<Learner>;
using MethodPtr = std::shared_ptr<Method>;

}  // namespace emplace::learn

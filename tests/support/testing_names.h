// Where emplace::testing is known, testing::HasSubstr would mean one of ours: GoogleTest's names
// are there, too.
#pragma once

namespace testing {}

namespace emplace::testing {
using namespace ::testing;
}  // namespace emplace::testing

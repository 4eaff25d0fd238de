#include "exec/tf32.h"

#include <gtest/gtest.h>

namespace emplace::exec {
namespace {

class Tf32Setting : public testing::TestWithParam<at::Float32MatmulPrecision> {};

TEST_P(Tf32Setting, holds_while_it_lives_and_leaves_the_process_as_it_was) {
  at::Context& context = at::globalContext();
  const bool convolutions_at_first = context.allowTF32CuDNN();
  const at::Float32MatmulPrecision products_at_first = context.float32MatmulPrecision();
  for (const bool convolutions : {true, false}) {
    context.setAllowTF32CuDNN(convolutions);
    context.setFloat32MatmulPrecision(GetParam());
    for (const bool allowed : {true, false}) {
      {
        const Tf32 setting(allowed);
        EXPECT_EQ(context.allowTF32CuDNN(), allowed);
        EXPECT_EQ(context.allowTF32CuBLAS(), allowed);
      }
      EXPECT_EQ(context.allowTF32CuDNN(), convolutions);
      EXPECT_EQ(context.float32MatmulPrecision(), GetParam());
    }
  }
  context.setAllowTF32CuDNN(convolutions_at_first);
  context.setFloat32MatmulPrecision(products_at_first);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Tf32Setting,
                         testing::Values(at::Float32MatmulPrecision::HIGHEST,
                                         at::Float32MatmulPrecision::HIGH,
                                         at::Float32MatmulPrecision::MEDIUM));

}  // namespace
}  // namespace emplace::exec

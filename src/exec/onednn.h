// oneDNN, which libtorch leaves convolutions and products to.
#pragma once

namespace emplace::exec {

// oneDNN 2, which is Debian's, multiplies numbers of 16 bits by the CPU's tiles (AMX) where it has
// them, and dies of an illegal instruction. Holds before its first kernel is made; later, and of
// other versions, it changes nothing.
void keep_onednn_off_tiles();

}  // namespace emplace::exec

// 128-bit integers, for products of 64-bit ones.
#pragma once

namespace emplace {

__extension__ typedef unsigned __int128 Wide;

}  // namespace emplace

// What emplace takes at most, in one place (docs/security.md). Inputs come from anywhere: what is
// larger than anything real is refused by a message that names the limit, before it takes the
// machine's memory or time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emplace::limits {

// Of a file, and of what a gzip file holds. An ONNX file's weights are mostly beside it.
inline constexpr std::size_t kInputBytes = std::size_t{2} << 30;
// A gzip file that holds more than kUnpackedFreely holds at most so many times its own size: what
// people pack stays far below it (graphs in JSON 10 to 60), what is made to fill memory is at 1000.
inline constexpr std::size_t kUnpackedFreely = std::size_t{256} << 20;
inline constexpr std::size_t kUnpackRatio = 200;
// Parts of one gzip file, each a gzip file of its own.
inline constexpr std::size_t kGzipMembers = 65'536;
// How long to wait for somebody to open a named pipe for writing, in seconds.
inline constexpr double kPipeSeconds = 10;

// Of the forward pass of a model of the zoo, whose sizes are options: a second of building. The
// largest published one, deepseek-v3, has 140,000.
inline constexpr std::size_t kZooOps = 400'000;

// Of one graph.
inline constexpr std::size_t kOps = 10'000'000;
inline constexpr std::size_t kTensors = 40'000'000;
// Bytes of one name: of an op, a module, a device, a group.
inline constexpr std::size_t kNameBytes = 16'384;
// Functions of an ONNX model that call each other, one inside the other, and the nodes that all
// calls make together, which can be exponentially many.
inline constexpr int kFunctionDepth = 64;
inline constexpr std::int64_t kInlinedNodes = 2'000'000;
// Lists and objects of JSON in each other, where simdjson, which has the same limit, does not read.
inline constexpr std::size_t kJsonDepth = 1'024;
// Dimensions of one tensor.
inline constexpr std::size_t kRank = 64;
// Bytes of one tensor, and any one of its dimensions.
inline constexpr std::int64_t kTensorBytes = std::int64_t{1} << 60;

// Of an external placer: bytes of a line that it says, and bytes that it leaves unread, beside the
// problem.
inline constexpr std::size_t kPlacerLine = std::size_t{256} << 20;
inline constexpr std::size_t kPlacerUnread = std::size_t{64} << 20;

// Measurements in one table of collectives, and the bytes that one of them moved.
inline constexpr std::size_t kCollectives = 100'000;
inline constexpr std::int64_t kCollectiveBytes = std::int64_t{1} << 50;

// Of a divided graph: everybody's pieces and all that passes between them, about 1 KB each.
inline constexpr std::size_t kDividedOps = 4'000'000;

// Of a learned policy that a file describes.
inline constexpr std::int64_t kPolicyWidth = 4'096;
inline constexpr std::int64_t kPolicyLayers = 256;

}  // namespace emplace::limits

// What our ONNX files say beyond what ONNX has words for; the writer puts it in, the reader takes
// it out, and other programs need not know.
#pragma once

#include <string_view>

namespace emplace {

inline constexpr int kWrittenOpset = 17;
inline constexpr int kWrittenIrVersion = 8;
inline constexpr std::string_view kProducer = "emplace";

// Of the functions that stand for operators newer than the opset.
inline constexpr std::string_view kFunctionDomain = "emplace";

// doc_string of an initializer: whether it is trained.
inline constexpr std::string_view kParameterNote = "parameter";
inline constexpr std::string_view kBufferNote = "buffer";

// Attributes of an op that was read from ONNX: positions that the node leaves out before others
// that it gives.
inline constexpr std::string_view kOmittedInputs = "omitted_inputs";
inline constexpr std::string_view kOmittedOutputs = "omitted_outputs";

}  // namespace emplace

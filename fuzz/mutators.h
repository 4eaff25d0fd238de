// Mutations that know what they change: what they make of a valid file is still one that a reader
// gets past its first lines with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace emplace::fuzz {

// libFuzzer's own mutation of bytes, which strings and numbers in a file are changed by as well.
using MutateBytes = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t most);

// Changes one value, key, element or type of a JSON text; empty where the bytes are no JSON.
std::string mutate_json(std::string_view bytes, unsigned seed, MutateBytes mutate);
// Changes one field of one message of an ONNX model; empty where the bytes are none.
std::string mutate_onnx(std::string_view bytes, unsigned seed, MutateBytes mutate);

}  // namespace emplace::fuzz

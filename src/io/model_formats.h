// The model formats that are read, one row each. A new format is a reader (io/readers.h) and a row.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io/readers.h"

namespace emplace {

struct ModelFormat {
  std::string_view name;
  // How names of its files end; each may be followed by ".gz".
  std::span<const std::string_view> endings;
  // Endings that files of other kinds usually have too: they say nothing about the content.
  std::span<const std::string_view> shared_endings;
  // Told from the uncompressed content, which is never blank.
  bool (*recognises)(std::string_view content);
  // `name` is for a graph that does not bring its own.
  Model (*read)(const std::string& content, const ReadOptions& options, const std::string& name);
};

// In the order in which they are tried. The last recognises everything, so that its reader says
// what is wrong with a file that no other knows, if it is no text.
std::span<const ModelFormat> model_formats();

// Letters, signs and blanks alone, as far as one looks, which no ONNX model begins with.
bool is_text(std::string_view content);

// Throws an Error for content that is blank, or text of no format.
const ModelFormat& recognise_model(std::string_view content);

// The file's name without ".gz" and the longest ending that a format has.
std::string without_model_ending(std::string_view file_name);

// Whether files of this name are models as a rule, which is how the models of a folder are found.
bool has_model_ending(std::string_view file_name);

}  // namespace emplace

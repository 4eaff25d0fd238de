#include "zoo/model_name.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace emplace::zoo {

ModelName split_name(std::string_view text) {
  ModelName parts{.family = text.starts_with(kFamily)};
  if (parts.family) text.remove_prefix(kFamily.size());
  if (text.starts_with(kZoo)) text.remove_prefix(kZoo.size());
  parts.name = text.substr(0, text.find(':'));
  parts.options = text.substr(std::min(text.size(), parts.name.size() + 1));
  return parts;
}

OptionValues parse_options(std::string_view text) {
  OptionValues values;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      fail_option("'{}' is not an option; expected key=value", item);
    }
    values.emplace_back(trim(item.substr(0, equals)), trim(item.substr(equals + 1)));
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      if (values[i].first == values.back().first)
        fail_option("'{}' is given twice", values[i].first);
    }
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  return values;
}

}  // namespace emplace::zoo

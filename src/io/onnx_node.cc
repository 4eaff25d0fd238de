#include "io/onnx_node.h"

#include <fmt/ranges.h>
#include <google/protobuf/unknown_field_set.h>

#include "base/text.h"

namespace emplace {
namespace {

// NodeProto.metadata_props, newer than the library's headers.
constexpr int kMetadataField = 9;
constexpr std::string_view kScopesKey = "pkg.torch.onnx.name_scopes";

// PyTorch's later exporter writes where a node comes from as the printed list
// ['', 'layer1', 'layer1.0', 'conv2d'], the last being the operation itself.
std::string module_of_scopes(std::string_view list) {
  std::vector<std::string_view> scopes;
  while (true) {
    const std::size_t begin = list.find('\'');
    if (begin == std::string_view::npos) break;
    const std::size_t end = list.find('\'', begin + 1);
    if (end == std::string_view::npos) break;
    scopes.push_back(list.substr(begin + 1, end - begin - 1));
    list.remove_prefix(end + 1);
  }
  return scopes.size() < 2 ? std::string() : std::string(scopes[scopes.size() - 2]);
}

std::string module_of_metadata(const onnx::NodeProto& node) {
  const auto& unknown = node.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() != kMetadataField ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    onnx::StringStringEntryProto entry;
    if (entry.ParseFromString(field.length_delimited()) && entry.key() == kScopesKey) {
      return module_of_scopes(entry.value());
    }
  }
  return {};
}

}  // namespace

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::int64_t int_attribute(const onnx::NodeProto& node, std::string_view name,
                           std::int64_t otherwise) {
  const auto* attribute = find_attribute(node, name);
  return attribute != nullptr && attribute->has_i() ? attribute->i() : otherwise;
}

std::vector<std::int64_t> ints_attribute(const onnx::NodeProto& node, std::string_view name) {
  const auto* attribute = find_attribute(node, name);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::string string_attribute(const onnx::NodeProto& node, std::string_view name) {
  const auto* attribute = find_attribute(node, name);
  return attribute == nullptr ? std::string() : attribute->s();
}

Attributes attributes_of(const onnx::NodeProto& node) {
  Attributes result;
  for (const auto& attribute : node.attribute()) {
    switch (attribute.type()) {
      case onnx::AttributeProto::INT:
        result.set(attribute.name(), attribute.i());
        break;
      case onnx::AttributeProto::FLOAT:
        result.set(attribute.name(), static_cast<double>(attribute.f()));
        break;
      case onnx::AttributeProto::STRING:
        // Some exporters keep bytes in them, which no cost depends on.
        if (is_utf8(attribute.s())) result.set(attribute.name(), attribute.s());
        break;
      case onnx::AttributeProto::INTS:
        result.set(attribute.name(),
                   std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end()));
        break;
      case onnx::AttributeProto::FLOATS:
        result.set(attribute.name(),
                   std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
        break;
      case onnx::AttributeProto::STRINGS:
        // Names of activations, which are all that executing an op needs of such lists.
        if (attribute.name() == "activations") {
          result.set(attribute.name(), fmt::format("{}", fmt::join(attribute.strings(), ",")));
        }
        break;
      default:
        break;
    }
  }
  return result;
}

std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string operator_name(const onnx::NodeProto& node) {
  const std::string_view domain = canonical_domain(node.domain());
  return domain.empty() ? node.op_type() : fmt::format("{}.{}", domain, node.op_type());
}

std::string node_label(const onnx::NodeProto& node) {
  if (!node.name().empty()) return fmt::format("op '{}'", node.name());
  const std::string output = node.output_size() > 0 ? node.output(0) : std::string();
  return fmt::format("op {} of '{}'", node.op_type(), output);
}

std::string module_of_node(const onnx::NodeProto& node) {
  std::string module = module_of_metadata(node);
  if (!module.empty()) return module;
  std::string_view path = node.name();
  std::string_view last;
  while (true) {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return module;
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash + 1);
    if (part.empty()) continue;
    // A container's child repeats the container's name: "/layer1/layer1.0/conv1".
    const bool repeats = !last.empty() && part.size() > last.size() && part.starts_with(last) &&
                         part[last.size()] == '.';
    if (repeats) {
      module += part.substr(last.size());
    } else {
      if (!module.empty()) module += '.';
      module += part;
    }
    last = part;
  }
}

void set_module_of_node(onnx::NodeProto& node, std::string_view module) {
  // The list has no way to quote.
  if (module.empty() || module.find('\'') != std::string_view::npos) return;
  onnx::StringStringEntryProto entry;
  entry.set_key(std::string(kScopesKey));
  entry.set_value(fmt::format("['', '{}', '{}']", module, node.op_type()));
  node.GetReflection()->MutableUnknownFields(&node)->AddLengthDelimited(kMetadataField,
                                                                        entry.SerializeAsString());
}

std::string module_of_initializer(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  // "bias.0" is one of a list of parameters; what precedes the number is no module.
  if (name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos) return {};
  return std::string(name.substr(0, dot));
}

}  // namespace emplace

#include "client/kube/yaml.h"

#include <utility>

#include <yaml-cpp/yaml.h>

namespace holdfast::kube {
namespace {

struct Walk {
  int nodes = 0;
  std::string problem;  // set: the walk ends
};

std::string position(const YAML::Mark& mark) {
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1);
}

// yaml-cpp shares the nodes behind aliases, so a small file can unfold to billions of nodes. So the
// limit counts visits.
Json convert(const YAML::Node& node, int depth, Walk& walk) {
  if (++walk.nodes > kMaxYamlNodes) {
    walk.problem = "it has more than " + std::to_string(kMaxYamlNodes) +
                   " values (YAML aliases that refer to aliases?)";
  } else if (depth > kMaxYamlDepth) {
    walk.problem = "it is nested more than " + std::to_string(kMaxYamlDepth) + " levels deep";
  }
  if (!walk.problem.empty()) return {};
  if (node.IsScalar()) return node.Scalar();
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node) {
      list.push_back(convert(item, depth + 1, walk));
      if (!walk.problem.empty()) break;
    }
    return list;
  }
  if (!node.IsMap()) return {};
  Json map = Json::object();
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      walk.problem = "the key at " + position(entry.first.Mark()) + " is not a text";
    } else if (map.contains(entry.first.Scalar())) {
      // yaml-cpp would use the first of the two; kubectl refuses them.
      walk.problem = "the key at " + position(entry.first.Mark()) + " occurs twice";
    } else {
      map[entry.first.Scalar()] = convert(entry.second, depth + 1, walk);
    }
    if (!walk.problem.empty()) break;
  }
  return map;
}

}  // namespace

Result<Json> parse_yaml(const std::string& text) {
  const auto refuse = [](std::string why) {
    return make_error(ErrorCode::kInvalid, std::move(why));
  };
  try {
    Walk walk;
    Json json = convert(YAML::Load(text), 0, walk);
    if (!walk.problem.empty()) return refuse(walk.problem);
    return json;
  } catch (const YAML::Exception& exception) {
    // what() may quote the file, which holds secrets.
    if (exception.mark.is_null()) return refuse("it is not valid YAML");
    return refuse("it is not valid YAML at " + position(exception.mark));
  } catch (const std::exception&) {
    return refuse("it is not valid YAML");
  }
}

}  // namespace holdfast::kube

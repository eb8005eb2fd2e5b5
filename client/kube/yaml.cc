#include "client/kube/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace holdfast::kube {
namespace {

struct Walk {
  bool typed = false;  // plain scalars have types, and "<<" merges
  int nodes = 0;
  std::string problem;  // set: the walk ends
};

std::string position(const YAML::Mark& mark) {
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1);
}

template <std::size_t size>
bool is_one_of(std::string_view text, const std::array<std::string_view, size>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// None: it is not an integer of 64 bits.
std::optional<Json> integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
  } else if (text.starts_with("0o")) {
    base = 8;
  } else if (text.starts_with("0b")) {
    base = 2;
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  if (base != 10) text.remove_prefix(text.size() > 1 && (text[1] > '9') ? 2 : 1);
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || error != std::errc() || last != end) return std::nullopt;
  if (!negative) return Json(number);
  if (number > std::uint64_t{1} << 63) return std::nullopt;
  return Json(static_cast<std::int64_t>(0 - number));
}

std::optional<Json> decimal(const std::string& text) {
  // strtod() also takes hexadecimal numbers, "nan" and "infinity".
  if (text.find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  if (text.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !std::isfinite(number)) return std::nullopt;
  return Json(number);
}

// A plain scalar, as go-yaml reads it for kubectl.
Json typed(const std::string& text) {
  static constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
  static constexpr std::array<std::string_view, 11> kTrue = {
      "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"};
  static constexpr std::array<std::string_view, 11> kFalse = {
      "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"};
  if (is_one_of(text, kNull)) return nullptr;
  if (is_one_of(text, kTrue)) return true;
  if (is_one_of(text, kFalse)) return false;
  if (const auto number = integer(text)) return *number;
  if (const auto number = decimal(text)) return *number;
  return text;
}

// The members of a mapping behind "<<", or of several. What the mapping says itself counts.
void merge(const Json& from, Json& map) {
  if (from.is_array()) {
    for (const Json& one : from) merge(one, map);
  } else if (from.is_object()) {
    for (const auto& [key, value] : from.items()) map.emplace(key, value);
  }
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
  // yaml-cpp's tag of a plain scalar is "?", and of a quoted one "!".
  if (node.IsScalar())
    return walk.typed && node.Tag() == "?" ? typed(node.Scalar()) : Json(node.Scalar());
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
  Json merged;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      walk.problem = "the key at " + position(entry.first.Mark()) + " is not a text";
    } else if (map.contains(entry.first.Scalar())) {
      // yaml-cpp would use the first of the two; kubectl refuses them.
      walk.problem = "the key at " + position(entry.first.Mark()) + " occurs twice";
    } else if (walk.typed && entry.first.Scalar() == "<<" && entry.first.Tag() == "?") {
      merged = convert(entry.second, depth + 1, walk);
    } else {
      map[entry.first.Scalar()] = convert(entry.second, depth + 1, walk);
    }
    if (!walk.problem.empty()) break;
  }
  merge(merged, map);
  return map;
}

Error refuse(std::string why) { return make_error(ErrorCode::kInvalid, std::move(why)); }

// Runs `read`, which yaml-cpp may leave by an exception.
template <class T>
Result<T> guarded(const std::function<Result<T>()>& read) {
  try {
    return read();
  } catch (const YAML::Exception& exception) {
    // what() may quote the file, which holds secrets.
    if (exception.mark.is_null()) return refuse("it is not valid YAML");
    return refuse("it is not valid YAML at " + position(exception.mark));
  } catch (const std::exception&) {
    return refuse("it is not valid YAML");
  }
}

// Takes no notice of what a document holds.
class NoContent : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// In some broken texts yaml-cpp finds empty documents for ever.
bool has_too_many_documents(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  NoContent handler;
  for (int found = 0; parser.HandleNextDocument(handler); ++found) {
    if (found == kMaxManifestDocuments) return true;
  }
  return false;
}

}  // namespace

Result<Json> parse_yaml(const std::string& text) {
  return guarded<Json>([&]() -> Result<Json> {
    Walk walk;
    Json json = convert(YAML::Load(text), 0, walk);
    if (!walk.problem.empty()) return refuse(walk.problem);
    return json;
  });
}

Result<std::vector<Json>> parse_manifest(const std::string& text) {
  return guarded<std::vector<Json>>([&]() -> Result<std::vector<Json>> {
    Walk walk;
    walk.typed = true;
    if (has_too_many_documents(text)) {
      return refuse("it has more than " + std::to_string(kMaxManifestDocuments) + " documents");
    }
    std::vector<Json> documents;
    for (const YAML::Node& document : YAML::LoadAll(text)) {
      Json json = convert(document, 0, walk);
      if (!walk.problem.empty()) return refuse(walk.problem);
      if (!json.is_null()) documents.push_back(std::move(json));
    }
    return documents;
  });
}

}  // namespace holdfast::kube

#include "plugin/verbs/difference.h"

#include <algorithm>
#include <set>

#include "core/utf8.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kMaxValueBytes = 60;

std::string shown(const Json& value) {
  if (value.is_null()) return "absent";
  const std::string text =
      clean_text(value.dump(-1, ' ', false, Json::error_handler_t::replace), kMaxValueBytes + 1);
  return text.size() <= kMaxValueBytes ? text : clean_text(text, kMaxValueBytes - 3) + "...";
}

std::string member(const std::string& path, const std::string& key) {
  // Labels and annotations have dots in their keys.
  const bool is_plain = key.find_first_of("./") == std::string::npos;
  return is_plain ? path + "." + key : path + "['" + clean_text(key, kMaxValueBytes) + "']";
}

void compare(const std::string& path, const Json& there, const Json& here,
             std::vector<std::string>& lines) {
  if (there == here) return;
  if (there.is_object() && here.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : there.items()) keys.insert(key);
    for (const auto& [key, value] : here.items()) keys.insert(key);
    for (const std::string& key : keys) {
      compare(member(path, key), at(there, key), at(here, key), lines);
    }
    return;
  }
  if (there.is_array() && here.is_array()) {
    for (std::size_t i = 0; i < std::max(there.size(), here.size()); ++i) {
      compare(path + "[" + std::to_string(i) + "]", i < there.size() ? there[i] : Json(),
              i < here.size() ? here[i] : Json(), lines);
    }
    return;
  }
  lines.push_back(clean_text(path, 300) + ": " + shown(there) + " there, " + shown(here) + " here");
}

}  // namespace

std::vector<std::string> differences(const std::string& path, const Json& there, const Json& here) {
  std::vector<std::string> lines;
  compare(path, there, here, lines);
  return lines;
}

}  // namespace holdfast::plugin

// What an API server writes: objects with no more than metadata, lists, and events of a watch.
#pragma once

#include <string>
#include <vector>

namespace holdfast::cache {

inline std::string object_json(const std::string& name, int version,
                               const std::string& namespace_ = "x") {
  return R"({"metadata":{"name":")" + name + R"(","namespace":")" + namespace_ + R"(","uid":"u-)" +
         name + R"(","resourceVersion":")" + std::to_string(version) + R"("}})";
}
inline std::string list_json(int version, const std::vector<std::string>& items = {}) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"("},"items":[)" +
         text + "]}";
}
inline std::string event_json(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}

}  // namespace holdfast::cache

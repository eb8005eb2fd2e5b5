// Members of JSON that are left out where they have no value.
#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "core/time.h"

namespace holdfast::plugin {

inline void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

// RFC 3339.
inline void put(Json& json, const char* key, const std::optional<Time>& time) {
  if (time) json[key] = format_time(*time);
}

}  // namespace holdfast::plugin

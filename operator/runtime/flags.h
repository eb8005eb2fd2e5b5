// The operator's flags: their names, their texts for --help, and how the value of each is read.
// Internal to options.cc. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "operator/runtime/options.h"

namespace holdfast::runtime {

// 63 characters of a label, minus a random suffix.
inline constexpr std::size_t kMaxIdLength = 52;

// A setting and its source: messages name the wrong flag or variable.
struct Setting {
  std::string source;
  std::string value;
};

struct Flag {
  const char* name;
  const char* environment;
  const char* value_name;
  const char* description;
  // An error says what is wrong with the value, and what to give instead.
  std::optional<Error> (*parse)(const Setting&, Options&);
  bool repeats = false;  // its values are joined by commas
};

std::span<const Flag> flags();

// Without the white space around it.
std::string trimmed(const std::string& text);

}  // namespace holdfast::runtime

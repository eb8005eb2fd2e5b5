// Cuts texts between two characters, and cleans untrusted text for display.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

// The longest prefix of at most `limit` bytes that ends with a whole character. `text` should be
// UTF-8; otherwise only the size is guaranteed.
inline std::string utf8_prefix(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  text.resize(limit);
  return text;
}

bool is_utf8(std::string_view text);

// JSON with its control characters as \uXXXX, which mean the same: C1, DEL, line separators, and
// what turns the direction of text. For terminals, which obey them. Line breaks stay.
std::string escape_controls(std::string_view json);

// One line of UTF-8 of at most `limit` bytes, from text that tenants wrote: for a status, an Event,
// a log, an annotation. Invalid bytes become U+FFFD. Control characters and line breaks become
// spaces. Spaces at both ends are removed.
std::string clean_text(std::string_view text, std::size_t limit);

// The last lines of such a text, at most `limit` bytes (at least 16) of UTF-8, with "\n" between
// lines. They begin with a whole line, and the lines keep their indentation. If the last line alone
// is too long, only its end is kept, after "...". Empty lines at both ends are removed, and other
// control characters become spaces.
std::string last_lines(std::string_view text, std::size_t limit);

}  // namespace holdfast

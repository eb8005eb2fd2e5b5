// Texts cut to a size, between two characters, and texts that others wrote, made fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

// The longest beginning of at most `limit` bytes that ends with a whole character. The text is
// UTF-8; of one that is not only the size is promised.
inline std::string utf8_prefix(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  text.resize(limit);
  return text;
}

// One line of UTF-8 of at most `limit` bytes: what is not UTF-8 becomes U+FFFD, control characters
// and line breaks become spaces, spaces at both ends go. For what tenants wrote: in a status, an
// Event, a log, an annotation.
std::string clean_text(std::string_view text, std::size_t limit);

}  // namespace holdfast

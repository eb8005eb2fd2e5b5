// Texts cut to a size, between two characters.
#pragma once

#include <string>
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

}  // namespace holdfast

#include "core/utf8.h"

#include <cstdint>

namespace holdfast {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
  std::size_t size = 0;  // 0: not UTF-8
  std::uint32_t code = 0;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (size == 0 || lead > 0xF4 || text.size() < size) return {};
  std::uint32_t code = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {size, code};
}

// C0, DEL, C1, the two separators that some terminals and editors break lines at, and what turns
// the direction of the text around it.
bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = first_character(text).size;
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string clean;
  while (!text.empty() && clean.size() <= limit) {
    const Character character = first_character(text);
    if (character.size == 0) {
      clean += kReplacement;
    } else if (is_control(character.code) || character.code == ' ') {
      if (!clean.empty()) clean += ' ';
    } else {
      clean += text.substr(0, character.size);
    }
    text.remove_prefix(character.size == 0 ? 1 : character.size);
  }
  clean = utf8_prefix(std::move(clean), limit);
  clean.erase(clean.find_last_not_of(' ') + 1);
  return clean;
}

}  // namespace holdfast

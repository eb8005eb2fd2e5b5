#include "core/utf8.h"

#include <algorithm>
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

namespace {
// They only turn text beside them, so clean_text() keeps them.
bool is_direction_mark(std::uint32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F;
}
}  // namespace

std::string escape_controls(std::string_view json) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string escaped;
  while (!json.empty()) {
    const Character character = first_character(json);
    const std::size_t size = std::max<std::size_t>(character.size, 1);
    const bool is_escaped = is_control(character.code) || is_direction_mark(character.code);
    if (character.size > 0 && is_escaped && character.code != '\n') {
      escaped += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4)
        escaped += kDigits[(character.code >> shift) & 15U];
    } else {
      escaped += json.substr(0, size);
    }
    json.remove_prefix(size);
  }
  return escaped;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = first_character(text).size;
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

namespace {

void trim_end(std::string& text) { text.erase(text.find_last_not_of(' ') + 1); }

// Removes the first character of `text` and returns it as it may be shown.
std::string_view take_clean(std::string_view& text) {
  const Character character = first_character(text);
  const std::string_view taken = text.substr(0, character.size);
  text.remove_prefix(character.size == 0 ? 1 : character.size);
  if (character.size == 0) return kReplacement;
  return is_control(character.code) ? " " : taken;
}

std::string clean_line(std::string_view text) {
  std::string clean;
  while (!text.empty()) clean += take_clean(text);
  trim_end(clean);
  return clean;
}

// The end of a line, of at most `limit` bytes.
std::string line_end(const std::string& line, std::size_t limit) {
  constexpr std::string_view kCut = "...";
  std::size_t from = line.size() - (limit - kCut.size());
  while (from < line.size() && (static_cast<unsigned char>(line[from]) & 0xC0U) == 0x80U) ++from;
  return std::string(kCut) + line.substr(from);
}

}  // namespace

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string clean;
  while (!text.empty() && clean.size() <= limit) {
    const std::string_view next = take_clean(text);
    if (next != " " || !clean.empty()) clean += next;
  }
  clean = utf8_prefix(std::move(clean), limit);
  trim_end(clean);
  return clean;
}

std::string last_lines(std::string_view text, std::size_t limit) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t before = text.find_last_of('\n');
    const std::string line =
        clean_line(before == std::string_view::npos ? text : text.substr(before + 1));
    text = before == std::string_view::npos ? "" : text.substr(0, before);
    if (line.empty() && kept.empty()) continue;
    if (kept.empty() && line.size() > limit) return line_end(line, limit);
    if (kept.size() + 1 + line.size() > limit && !kept.empty()) break;
    kept = kept.empty() ? line : line + "\n" + kept;
  }
  kept.erase(0, std::min(kept.find_first_not_of('\n'), kept.size()));
  return kept;
}

}  // namespace holdfast

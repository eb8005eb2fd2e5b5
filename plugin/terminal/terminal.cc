#include "plugin/terminal/terminal.h"

namespace holdfast::plugin {
namespace {

// The end of the escape sequence that starts at `at`.
std::size_t after_escape(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('m', at);
  return end == std::string_view::npos ? text.size() : end + 1;
}

// Each code point has one byte that is no continuation.
bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

}  // namespace

int columns_of(std::string_view text) {
  int columns = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b') {
      i = after_escape(text, i);
      continue;
    }
    if (starts_character(text[i])) ++columns;
    ++i;
  }
  return columns;
}

std::string cut_to(std::string_view text, int columns) {
  std::string kept;
  bool coloured = false;
  int used = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b') {
      const std::size_t end = after_escape(text, i);
      kept += text.substr(i, end - i);
      coloured = text.substr(i, end - i) != "\x1b[0m";
      i = end;
      continue;
    }
    if (starts_character(text[i]) && ++used > columns) break;
    kept += text[i++];
  }
  if (coloured) kept += "\x1b[0m";
  return kept;
}

}  // namespace holdfast::plugin

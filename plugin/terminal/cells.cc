#include "plugin/terminal/cells.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace holdfast::plugin {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Marks that stand on the character before them, and joiners.
constexpr std::array kNoCell = {
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD}, Range{0x0610, 0x061A},
    Range{0x064B, 0x065F}, Range{0x0900, 0x0902}, Range{0x093C, 0x093C}, Range{0x0941, 0x0948},
    Range{0x0E31, 0x0E31}, Range{0x0E34, 0x0E3A}, Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},
    Range{0x200B, 0x200F}, Range{0x20D0, 0x20FF}, Range{0x2060, 0x2064}, Range{0xFE00, 0xFE0F},
    Range{0xFE20, 0xFE2F}, Range{0xFEFF, 0xFEFF},
};

// Unicode's East Asian Width W and F, in blocks.
constexpr std::array kTwoCells = {
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},
    Range{0x2614, 0x2615},   Range{0x26A1, 0x26A1},   Range{0x2705, 0x2705},
    Range{0x274C, 0x274C},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},
    Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},
    Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},
    Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},
    Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1FAFF},
    Range{0x20000, 0x3FFFD},
};

template <std::size_t n>
bool is_in(std::uint32_t code, const std::array<Range, n>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

struct Character {
  std::size_t bytes = 1;
  std::size_t width = 1;
};

// Bytes that are not UTF-8 count one cell each.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (bytes == 1 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    code = (code << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  const std::size_t width = is_in(code, kNoCell) ? 0 : is_in(code, kTwoCells) ? 2 : 1;
  return {bytes, width};
}

// The longest start that fits into `width` cells.
std::string_view start_of(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  std::size_t used = 0;
  while (bytes < text.size()) {
    const Character next = first_of(text.substr(bytes));
    if (used + next.width > width) break;
    used += next.width;
    bytes += next.bytes;
  }
  return text.substr(0, bytes);
}

std::string_view without_spaces_before(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// Where a line of at most `width` cells ends: after a word if one fits, else in the middle of it.
std::size_t line_end(std::string_view text, std::size_t width) {
  const std::string_view most = start_of(text, width);
  if (most.size() == text.size() || text[most.size()] == ' ') return most.size();
  const std::size_t space = most.rfind(' ');
  if (space != std::string_view::npos && space > 0) return space;
  return std::max<std::size_t>(most.size(), first_of(text).bytes);
}

// The words of a shell command. A flag and its value are one: "-n media".
std::vector<std::string> command_words(std::string_view command) {
  std::vector<std::string> words = {""};
  bool quoted = false;
  for (const char character : command) {
    quoted = quoted != (character == '\'');
    if (character == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += character;
    }
  }
  std::vector<std::string> joined;
  for (std::string& word : words) {
    const bool is_value = !joined.empty() && joined.back().starts_with('-') &&
                          joined.back().find_first_of("= ") == std::string::npos &&
                          !word.starts_with('-');
    if (is_value) {
      joined.back() += " " + word;
    } else {
      joined.push_back(std::move(word));
    }
  }
  return joined;
}

}  // namespace

std::size_t cells(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character next = first_of(text);
    width += next.width;
    text.remove_prefix(std::min(next.bytes, text.size()));
  }
  return width;
}

std::string cut(std::string_view text, std::size_t width, bool unicode) {
  if (cells(text) <= width) return std::string(text);
  if (width == 0) return "";
  return std::string(start_of(text, width - 1)) + (unicode ? "\u2026" : "~");
}

std::string fit(std::string_view text, std::size_t width, bool unicode) {
  std::string line = cut(text, width, unicode);
  line.append(width - cells(line), ' ');
  return line;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t most,
                              bool unicode) {
  std::vector<std::string> lines;
  text = without_spaces_before(text);
  while (!text.empty() && lines.size() < most) {
    if (lines.size() + 1 == most) {
      lines.push_back(cut(text, width, unicode));
      break;
    }
    const std::size_t end = line_end(text, std::max<std::size_t>(width, 1));
    lines.emplace_back(text.substr(0, end));
    text = without_spaces_before(text.substr(end));
  }
  return lines;
}

std::vector<std::string> wrap_command(std::string_view command, std::size_t width) {
  const std::vector<std::string> words = command_words(command);
  std::vector<std::string> lines = {words.front()};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t spare = i + 1 < words.size() ? 2 : 0;  // for " \"
    if (cells(lines.back()) + 1 + cells(words[i]) + spare <= width) {
      lines.back() += " " + words[i];
    } else {
      lines.back() += " \\";
      lines.push_back("  " + words[i]);
    }
  }
  return lines;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char character : text) {
    if (character == '\'') {
      word += "'\\''";
    } else {
      word += character;
    }
  }
  return word + "'";
}

}  // namespace holdfast::plugin

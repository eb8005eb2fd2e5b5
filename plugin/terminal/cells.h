// Text in the cells of a terminal: how wide it is, and how to cut, fill and wrap it.
//
// Width counts cells: combining characters take none, East Asian wide characters and emoji take
// two. All texts are UTF-8 without control characters: clean foreign text with clean_text()
// (core/utf8.h) first. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::plugin {

std::size_t cells(std::string_view text);

// The text if it fits into `width` cells, else its start and an ellipsis ("~" in ASCII).
std::string cut(std::string_view text, std::size_t width, bool unicode);

// Cut and then filled with spaces up to `width` cells.
std::string fit(std::string_view text, std::size_t width, bool unicode);

// Lines of at most `width` cells, broken at spaces. A longer word is broken where the line ends.
// At most `most` lines: the last one then ends with an ellipsis. No text: no line.
std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t most,
                              bool unicode);

// A shell command in lines of at most `width` cells where possible. A flag and its value stay on
// one. Each line but the last ends with " \", and the further ones are indented. It stays one
// command for a shell: it is broken at spaces outside of quotes only, and never shortened.
std::vector<std::string> wrap_command(std::string_view command, std::size_t width);

// A word for a shell: in single quotes if it has any character that a shell could read.
std::string shell_word(std::string_view text);

}  // namespace holdfast::plugin

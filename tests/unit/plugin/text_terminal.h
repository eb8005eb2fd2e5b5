// A Terminal that keeps what is written, and gives files from memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugin/terminal/terminal.h"

namespace holdfast::test {

class TextTerminal : public plugin::Terminal {
 public:
  void out(std::string_view text) override { output += text; }
  void err(std::string_view text) override { errors += text; }
  bool is_interactive() const override { return interactive; }
  bool has_colour() const override { return false; }
  bool is_unicode() const override { return unicode; }
  int width() const override { return columns; }
  int height() const override { return rows; }
  void show(const std::vector<std::string>& lines) override { frames.push_back(lines); }
  bool wait(Duration) override { return --waits > 0; }
  Result<std::string> read(const std::string& path, std::size_t) override {
    const auto found = files.find(path);
    if (found == files.end()) return make_error(ErrorCode::kNotFound, path + ": no such file");
    return found->second;
  }

  std::string output, errors;
  std::vector<std::vector<std::string>> frames;
  std::map<std::string, std::string> files;
  bool interactive = false;
  bool unicode = true;
  int columns = 80, rows = 24;
  int waits = 1;  // how often wait() is called until the user stops
};

}  // namespace holdfast::test

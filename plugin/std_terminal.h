// The Terminal of a real process: standard output, error and input.
//
// Ctrl-C ends the process at once, and puts back what show() has changed of the screen.
#pragma once

#include "plugin/terminal.h"

namespace holdfast::plugin {

class StdTerminal : public Terminal {
 public:
  StdTerminal();
  ~StdTerminal() override;

  void out(std::string_view text) override;
  void err(std::string_view text) override;
  bool is_interactive() const override { return interactive_; }
  bool has_colour() const override { return colour_; }
  bool is_unicode() const override { return unicode_; }
  int width() const override;
  int height() const override;
  void show(const std::vector<std::string>& lines) override;
  bool wait(Duration delay) override;
  Result<std::string> read(const std::string& path, std::size_t max_bytes) override;

 private:
  bool interactive_ = false;
  bool colour_ = false;
  bool unicode_ = false;
  bool full_screen_ = false;
};

}  // namespace holdfast::plugin

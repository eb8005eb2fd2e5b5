// The Terminal of a real process: standard output, error and input.
//
// Ctrl-C ends the process at once, and Ctrl-Z stops it. Both put back what show() has changed of
// the screen (full_screen.h). So one of the process's terminals shows at a time.
//
//   StdTerminal terminal;
//   const int code = verb(command, api, terminal);
//   return finish(terminal, code);
#pragma once

#include <unistd.h>

#include "plugin/terminal/terminal.h"

namespace holdfast::plugin {

class StdTerminal : public Terminal {
 public:
  // Tests give other descriptors, which stay theirs.
  explicit StdTerminal(int out = STDOUT_FILENO, int err = STDERR_FILENO);
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

  // The errno with which standard output refused a write. 0: it took everything.
  int write_error() const { return write_error_; }
  // Gives back what show() has changed of the screen.
  void leave_full_screen();

 private:
  void write(std::string_view text);

  const int out_, err_;
  int write_error_ = 0;
  bool interactive_ = false;
  bool colour_ = false;
  bool unicode_ = false;
  bool full_screen_ = false;
};

// Gives the screen back. Returns the exit code of the process, after a verb's. If standard output
// did not take everything, a success becomes kExitRefused, with a line that says why. A reader that
// is gone, as in `| head`, is no error.
int finish(StdTerminal& terminal, int code);

}  // namespace holdfast::plugin

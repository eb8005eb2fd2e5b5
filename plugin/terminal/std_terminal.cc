#include "plugin/terminal/std_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "core/file_reader.h"
#include "plugin/base/exit_codes.h"
#include "plugin/terminal/full_screen.h"
#include "plugin/terminal/refuse.h"

namespace holdfast::plugin {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// As setlocale() chooses the locale of characters.
bool has_utf8_locale() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale = environment(name);
    if (locale.empty()) continue;
    std::transform(locale.begin(), locale.end(), locale.begin(),
                   [](unsigned char character) { return std::tolower(character); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

// What the terminal says, or the fallback.
winsize size_of_terminal(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

}  // namespace

StdTerminal::StdTerminal(int out, int err) : out_(out), err_(err) {
  const std::string term = environment("TERM");
  interactive_ = ::isatty(out_) == 1 && !term.empty() && term != "dumb";
  colour_ = interactive_ && environment("NO_COLOR").empty();
  unicode_ = has_utf8_locale();
}

StdTerminal::~StdTerminal() { leave_full_screen(); }

void StdTerminal::write(std::string_view text) {
  if (write_error_ == 0) write_error_ = full_screen::write_all(out_, text);
}

void StdTerminal::leave_full_screen() {
  if (std::exchange(full_screen_, false)) full_screen::leave();
}

void StdTerminal::out(std::string_view text) { write(text); }

void StdTerminal::err(std::string_view text) {
  leave_full_screen();
  static_cast<void>(full_screen::write_all(err_, text));  // there is nobody to report it to
}

int StdTerminal::width() const {
  const int columns = size_of_terminal(out_).ws_col;
  return columns > 0 ? columns : 80;
}

int StdTerminal::height() const {
  const int rows = size_of_terminal(out_).ws_row;
  return rows > 0 ? rows : 24;
}

void StdTerminal::show(const std::vector<std::string>& lines) {
  full_screen_ = true;
  // One write, and each line is erased only behind its new text: nothing flickers.
  std::string frame = "\x1b[H";
  const auto rows = static_cast<std::size_t>(height());
  const int columns = width();
  for (std::size_t i = 0; i < std::min(lines.size(), rows); ++i) {
    if (i > 0) frame += "\r\n";
    frame += cut_to(lines[i], columns) + "\x1b[K";
  }
  frame += "\x1b[J";
  if (write_error_ == 0) write_error_ = full_screen::draw(out_, frame);
}

bool StdTerminal::wait(Duration delay) {
  if (write_error_ != 0) return false;
  std::this_thread::sleep_for(delay);
  return true;
}

Result<std::string> StdTerminal::read(const std::string& path, std::size_t max_bytes) {
  if (path != "-") return system_files().read(path, max_bytes);
  std::string text;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return make_error(ErrorCode::kTransient,
                        std::string("standard input: ") + std::strerror(errno));
    }
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      return make_error(ErrorCode::kInvalid,
                        "standard input has more than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

int finish(StdTerminal& terminal, int code) {
  terminal.leave_full_screen();
  const int error = terminal.write_error();
  if (error == 0 || error == EPIPE) return code;
  const int refused =
      refuse(terminal, {},
             std::string("cannot write to standard output: ") + std::strerror(error) +
                 "; make room or write elsewhere, and run it again");
  return code == kExitDone ? refused : code;
}

}  // namespace holdfast::plugin

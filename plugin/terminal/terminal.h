// Where a verb writes, and what it knows of the terminal. Tests have a Terminal that keeps the
// text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::plugin {

class Terminal {
 public:
  virtual ~Terminal() = default;

  // Writes the text as it is; a line's end is the caller's. After show(), err() first brings back
  // the screen that was there before, so that the text stays. Text that cannot be written is
  // dropped.
  virtual void out(std::string_view text) = 0;
  virtual void err(std::string_view text) = 0;

  // Standard output is a terminal that can move its cursor. If not, text is written plainly.
  virtual bool is_interactive() const = 0;
  virtual bool has_colour() const = 0;
  // The user's locale has UTF-8; else only ASCII is written for drawings.
  virtual bool is_unicode() const = 0;
  // Columns and rows; 80 and 24 where nobody knows.
  virtual int width() const = 0;
  virtual int height() const = 0;

  // Replaces what the last call showed, without flicker. Lines are cut to the width, and to the
  // height. Interactive terminals only.
  virtual void show(const std::vector<std::string>& lines) = 0;
  // False: the user wants to stop, or nothing more can be written to standard output; else the time
  // is over.
  virtual bool wait(Duration delay) = 0;

  // The content of a file; "-" is standard input. kInvalid and the like name the file.
  virtual Result<std::string> read(const std::string& path, std::size_t max_bytes) = 0;
};

// The columns that a text takes on a terminal: code points, without colours (ESC [ ... m).
int columns_of(std::string_view text);
// The first columns of a text, with its colours.
std::string cut_to(std::string_view text, int columns);

}  // namespace holdfast::plugin

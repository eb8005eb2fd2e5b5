// Small files. A reader sees the old or the new file, never a part.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::agent {

// Replaces the file. An error names the path and the system's reason.
Result<> replace_file(const std::string& path, const std::string& content, mode_t mode);

// The first `max_bytes` of a regular file. No value: there is no such file, or it is a link or a
// pipe.
std::optional<std::string> read_regular_file(const std::string& path, std::size_t max_bytes);

// Writes a line to stderr. If nobody reads stderr, the line is lost: this never blocks.
void say(const std::string& line);

// Writes the pod's termination message. Never blocks, and ignores errors. In a container the file
// exists; elsewhere this creates none.
void write_termination_message(const std::string& path, const std::string& line);

// Writes one line as the termination message and to stderr. A separate process does this, and the
// agent waits for it at most `limit`. The file or stderr may hang, and the agent must end all the
// same: its end kills processes that no signal reaches.
void leave_last_words(const std::string& path, const std::string& words, Duration limit);

// Copies this program to FOLDER/agent, mode 0755, as replace_file() does.
Result<> install_self(const std::string& folder);

}  // namespace holdfast::agent

// Small files, written so that whoever reads sees the old or the new one, never a part.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::agent {

// The file is replaced by a new one. An error names the path and the system's reason.
Status replace_file(const std::string& path, const std::string& content, mode_t mode);

// The beginning of a regular file; none: there is no such file. A link is none, and nor is a pipe.
std::optional<std::string> read_regular_file(const std::string& path, std::size_t max_bytes);

// A line on stderr. It is lost rather than waited for when nobody reads.
void say(const std::string& line);

// The pod's termination message, without waiting or complaint. The file is there in a container;
// elsewhere none is made.
void write_termination_message(const std::string& path, const std::string& line);

// One line as the termination message and on stderr, by a process of its own, which is waited for
// so long and no longer: what holds the file or stderr may hang, and an agent that ends takes those
// along that no signal reaches.
void leave_last_words(const std::string& path, const std::string& words, Duration limit);

// Copies this program to FOLDER/agent, mode 0755, the same way.
Status install_self(const std::string& folder);

}  // namespace holdfast::agent

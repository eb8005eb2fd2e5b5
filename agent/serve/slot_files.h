// The files of a slot's folder. All of this may hang: it is for a FileThread.
#pragma once

#include <string>

#include "core/result.h"

namespace holdfast::agent {

std::string progress_file_in(const std::string& folder);
std::string result_file_in(const std::string& folder);
std::string message_file_in(const std::string& folder);

// Removes what the last attempt left, and writes the message of the next one.
Result<> clean_folder(const std::string& folder, const std::string& message);

// The start of the file that the command left, as one line of at most kMaxResultBytes; empty: none.
std::string read_result(const std::string& folder);

// A file in memory with this content, read from its beginning; -1: see errno. It never hangs.
int file_in_memory(const std::string& content);

}  // namespace holdfast::agent

// Small files, written so that whoever reads sees the old or the new one, never a part.
#pragma once

#include <sys/types.h>

#include <string>

#include "operator/core/result.h"

namespace holdfast::agent {

// The file is replaced by a new one. An error names the path and the system's reason.
Status replace_file(const std::string& path, const std::string& content, mode_t mode);

// The pod's termination message, without waiting or complaint. The file is there in a container;
// elsewhere none is made.
void write_termination_message(const std::string& path, const std::string& line);

// Copies this program to FOLDER/agent, mode 0755, the same way.
Status install_self(const std::string& folder);

}  // namespace holdfast::agent

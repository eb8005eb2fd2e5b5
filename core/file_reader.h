// Reads small files whole. An interface, so that tests need no file system.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"

namespace holdfast {

class FileReader {
 public:
  virtual ~FileReader() = default;
  // kNotFound: there is no such file. kInvalid: larger than allowed, not a regular file.
  // kForbidden, kTransient: any other error of the system. The message names the path, never the
  // content.
  virtual Result<std::string> read(const std::string& path, std::size_t max_bytes) const = 0;
};

// The real file system. Lives forever; any thread.
const FileReader& system_files();

}  // namespace holdfast

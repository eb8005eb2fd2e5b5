// A FileReader over a map, whose files a test writes, removes and makes unreadable.
#pragma once

#include <map>
#include <string>

#include "core/file_reader.h"

namespace holdfast::test {

class MemoryFiles : public FileReader {
 public:
  Result<std::string> read(const std::string& path, std::size_t max_bytes) const override {
    ++reads;
    const auto file = files.find(path);
    if (file == files.end()) return make_error(ErrorCode::kNotFound, path + ": not there");
    if (broken.count(path) != 0) return make_error(ErrorCode::kTransient, path + ": I/O error");
    if (file->second.size() > max_bytes) {
      return make_error(ErrorCode::kInvalid, path + " is too large");
    }
    return file->second;
  }

  std::map<std::string, std::string> files;
  std::map<std::string, bool> broken;
  mutable int reads = 0;
};

}  // namespace holdfast::test

// A folder with files, removed at the end of the test.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace holdfast::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // The file's path.
  std::string write(const std::string& name, const std::string& content) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file) << content;
    return file;
  }
  std::string write_script(const std::string& name, const std::string& body) const {
    const std::string file = write(name, "#!/bin/sh\n" + body);
    ::chmod(file.c_str(), 0700);
    return file;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path_ + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace holdfast::test

#include "core/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace holdfast {
namespace {

Error system_error(const std::string& path, int number) {
  const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::kNotFound
                         : number == EACCES || number == EPERM ? ErrorCode::kForbidden
                                                               : ErrorCode::kTransient;
  return make_error(code, path + ": " + std::generic_category().message(number));
}

Result<std::string> read_open_file(int file, const std::string& path, std::size_t max_bytes) {
  struct stat status = {};
  if (fstat(file, &status) != 0) return system_error(path, errno);
  if (!S_ISREG(status.st_mode)) {
    return make_error(ErrorCode::kInvalid, path + " is not a regular file");
  }
  std::string content;
  char block[16 << 10];
  for (;;) {
    const ssize_t count = ::read(file, block, sizeof block);
    if (count == 0) return content;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, errno);
    content.append(block, static_cast<std::size_t>(count));
    if (content.size() > max_bytes) {
      return make_error(ErrorCode::kInvalid,
                        path + " is larger than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

class SystemFiles : public FileReader {
 public:
  Result<std::string> read(const std::string& path, std::size_t max_bytes) const override {
    // Not blocking: a named pipe in place of the file must not stop the loop.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return system_error(path, errno);
    Result<std::string> content = read_open_file(file, path, max_bytes);
    ::close(file);
    return content;
  }
};

}  // namespace

const FileReader& system_files() {
  static const SystemFiles files;
  return files;
}

}  // namespace holdfast

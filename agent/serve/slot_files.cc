#include "agent/serve/slot_files.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "agent/base/files.h"
#include "core/utf8.h"
#include "core/worker_protocol.h"

namespace holdfast::agent {

std::string progress_file_in(const std::string& folder) { return folder + "/progress"; }
std::string result_file_in(const std::string& folder) { return folder + "/result"; }
std::string message_file_in(const std::string& folder) { return folder + "/message"; }

// A command may have put a link in the folder's place. Then only the link goes.
Result<> clean_folder(const std::string& folder, const std::string& message) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::remove_all(folder, error);
  if (!error) fs::create_directories(folder, error);
  // A command may give up the agent's user.
  if (!error) fs::permissions(folder, fs::perms::all, error);
  if (error) return make_error(ErrorCode::kTransient, folder + ": " + error.message());
  return replace_file(message_file_in(folder), message, 0644);
}

std::string read_result(const std::string& folder) {
  return clean_text(read_regular_file(result_file_in(folder), kMaxResultBytes).value_or(""),
                    kMaxResultBytes);
}

int file_in_memory(const std::string& content) {
  const int file = ::memfd_create("payload", MFD_CLOEXEC);
  if (file < 0) return -1;
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = ::write(file, content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      ::close(file);
      return -1;
    }
    written += static_cast<std::size_t>(count);
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

}  // namespace holdfast::agent

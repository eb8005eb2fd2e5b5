#include "agent/base/checkpoint.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <random>

#include "agent/base/files.h"
#include "agent/base/state_file.h"
#include "core/agent_protocol.h"
#include "core/steady_now.h"
#include "core/utf8.h"

namespace holdfast::agent {
namespace {

constexpr std::size_t kMaxIdBytes = 64;
constexpr std::size_t kMaxStateBytes = 256;
// How often a command that waits looks whether its agent is still at work.
constexpr int kLookMilliseconds = 200;

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }
std::string file_of(const std::string& progress_file) { return progress_file + ".checkpoint"; }
std::string kept_file_of(const std::string& progress_file) {
  return progress_file + ".checkpoint-kept";
}

std::string new_id() {
  std::random_device random;
  const auto word = [&] { return std::to_string(random()); };
  return word() + "-" + word();
}

std::optional<Checkpoint> read_checkpoint(const std::string& path) {
  const auto content = read_regular_file(path, kMaxIdBytes + 1 + kMaxCheckpointBytes);
  const std::size_t line = content ? content->find('\n') : std::string::npos;
  if (line == std::string::npos || line == 0) return std::nullopt;
  return Checkpoint{content->substr(0, line), content->substr(line + 1)};
}

// Wakes up when a file of the folder is replaced.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder)
      : descriptor_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    inotify_add_watch(descriptor_, folder.c_str(), IN_MOVED_TO);
  }
  ~FolderWatch() { ::close(descriptor_); }
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  void wait() const {
    pollfd events{descriptor_, POLLIN, 0};
    ::poll(&events, 1, kLookMilliseconds);
    std::array<char, 4096> ignored{};
    while (::read(descriptor_, ignored.data(), ignored.size()) > 0) {
    }
  }

 private:
  const int descriptor_;
};

Result<> wait_for(const std::string& progress_file, const std::string& id) {
  const FolderWatch watch(folder_of(progress_file));
  while (true) {
    if (read_regular_file(kept_file_of(progress_file), kMaxIdBytes) == id) return Unit{};
    const auto last = read_checkpoint(file_of(progress_file));
    if (!last || last->id != id) {
      return make_error(ErrorCode::kConflict, "another checkpoint came before this one was kept");
    }
    const auto text = read_regular_file(state_file_of(progress_file), kMaxStateBytes);
    const std::string why = complaint(text ? parse_state(*text) : std::nullopt, steady_now());
    if (!why.empty()) {
      return make_error(ErrorCode::kTransient, "the checkpoint may not be kept: " + why);
    }
    watch.wait();
  }
}

}  // namespace

Result<std::string> checkpoint_text(const std::string& argument) {
  std::string text = argument;
  if (argument.starts_with('@')) {
    // Long enough for the line breaks at its end. A file that goes on is too long as it is.
    constexpr std::size_t kMost = kMaxCheckpointBytes + 64;
    const auto content = read_regular_file(argument.substr(1), kMost);
    if (!content) {
      return make_error(ErrorCode::kInvalid,
                        argument.substr(1) + " is not a file that can be read");
    }
    text = *content;
    while (text.size() < kMost && text.ends_with('\n')) text.pop_back();
  }
  if (text.size() > kMaxCheckpointBytes) {
    return make_error(ErrorCode::kInvalid,
                      "a checkpoint has at most " + std::to_string(kMaxCheckpointBytes) +
                          " bytes: keep the data elsewhere, and its name here");
  }
  if (!is_utf8(text) || text.find('\0') != std::string::npos) {
    return make_error(ErrorCode::kInvalid, "a checkpoint is text in UTF-8 without zero bytes");
  }
  return text;
}

Result<> leave_checkpoint(const std::string& progress_file, const std::string& text, bool wait) {
  const std::string id = new_id();
  const Result<> left = replace_file(file_of(progress_file), id + "\n" + text, 0644);
  if (!left || !wait) return left;
  return wait_for(progress_file, id);
}

CheckpointFile::CheckpointFile(const std::string& progress_file)
    : path_(file_of(progress_file)), kept_path_(kept_file_of(progress_file)) {}

std::optional<Checkpoint> CheckpointFile::look() {
  auto found = read_checkpoint(path_);
  if (!found || found->id == last_id_) return std::nullopt;
  last_id_ = found->id;
  // The child may have written the file itself. The fence would take a longer text for an attack.
  const bool is_text = is_utf8(found->text) && found->text.find('\0') == std::string::npos &&
                       found->text.size() <= kMaxCheckpointBytes;
  return is_text ? found : std::nullopt;
}

bool CheckpointFile::acknowledge(const std::string& id) const {
  return replace_file(kept_path_, id, 0644).ok();
}

}  // namespace holdfast::agent

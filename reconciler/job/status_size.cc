#include "reconciler/job/status_size.h"

#include <array>
#include <string>

namespace holdfast::reconciler {
namespace {

// Field names, numbers and times of one run.
constexpr std::size_t kRunFrame = 260;

// A text as JSON may have an escape for each character.
std::size_t bytes_of(const Status& status) {
  std::size_t bytes = 0;
  for (const Run& run : status.runs) {
    bytes += kRunFrame + run.pod_name.size() + run.pod_uid.size() + run.node_name.size() +
             2 * (run.refused.size() + run.progress.size());
  }
  return bytes;
}

}  // namespace

void keep_within_bytes(Status& status) {
  if (status.runs.size() < 2) return;
  for (std::string Run::*const text : std::array{&Run::progress, &Run::refused, &Run::node_name}) {
    if (bytes_of(status) <= kRunsBytes) return;
    for (Run& run : status.runs) (run.*text).clear();
  }
}

}  // namespace holdfast::reconciler

#include "operator/runtime/process_stats.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace holdfast::runtime {
namespace {

// The time of the boot; what /proc/self/stat counts from.
double boot_time_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double value = 0;
  while (file >> word) {
    if (word == "btime" && file >> value) return value;
  }
  return 0;
}

}  // namespace

ProcessStats read_process_stats() {
  ProcessStats stats;
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  // The second field is the program's name in parentheses, which may hold anything.
  const std::size_t after_name = line.rfind(')');
  if (after_name != std::string::npos) {
    std::istringstream fields(line.substr(after_name + 1));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    double user = 0, system = 0, start = 0, resident_pages = 0;
    fields >> user >> system;  // 14, 15
    for (int field = 16; field < 20; ++field) fields >> skipped;
    fields >> stats.threads >> skipped >> start;      // 20, 21, 22
    fields >> stats.virtual_bytes >> resident_pages;  // 23, 24
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    stats.cpu_seconds = (user + system) / ticks;
    stats.start_time_seconds = boot_time_seconds() + start / ticks;
    stats.resident_bytes = resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++stats.open_fds;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_fds = static_cast<double>(limit.rlim_cur);
  return stats;
}

void return_freed_memory() {
  constexpr std::size_t kMuch = std::size_t{16} << 20;
  if (mallinfo2().fordblks >= kMuch) malloc_trim(0);
}

}  // namespace holdfast::runtime

// The kernel's numbers about this process, for the process_* metrics.
#pragma once

namespace holdfast::runtime {

struct ProcessStats {
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double cpu_seconds = 0;
  double start_time_seconds = 0;  // since the epoch
  double open_fds = 0;
  double max_fds = 0;
  double threads = 0;
};

// Unreadable values are zero.
ProcessStats read_process_stats();

// Gives memory back to the kernel that the process has freed, if it is much. A first list of
// 200,000 jobs leaves 70 MiB. Takes milliseconds. Once a minute is enough.
void return_freed_memory();

}  // namespace holdfast::runtime

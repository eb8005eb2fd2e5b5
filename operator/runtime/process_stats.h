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

}  // namespace holdfast::runtime

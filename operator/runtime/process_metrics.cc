#include "operator/runtime/process_metrics.h"

#include "operator/runtime/process_stats.h"

namespace holdfast::runtime {

ProcessMetrics::ProcessMetrics(prometheus::Registry& registry)
    : resident_(gauges(registry, "process_resident_memory_bytes", "Resident memory.").Add({})),
      virtual_memory_(gauges(registry, "process_virtual_memory_bytes", "Virtual memory.").Add({})),
      cpu_(counters(registry, "process_cpu_seconds_total", "CPU time, user and system.").Add({})),
      open_fds_(gauges(registry, "process_open_fds", "Open file descriptors.").Add({})),
      max_fds_(gauges(registry, "process_max_fds", "Most open file descriptors.").Add({})),
      threads_(gauges(registry, "process_threads", "Threads.").Add({})),
      start_time_(
          gauges(registry, "process_start_time_seconds", "Start, since the epoch.").Add({})) {}

void ProcessMetrics::refresh() {
  const ProcessStats stats = read_process_stats();
  resident_.Set(stats.resident_bytes);
  virtual_memory_.Set(stats.virtual_bytes);
  raise_to(cpu_, stats.cpu_seconds);
  open_fds_.Set(stats.open_fds);
  max_fds_.Set(stats.max_fds);
  threads_.Set(stats.threads);
  start_time_.Set(stats.start_time_seconds);
}

}  // namespace holdfast::runtime

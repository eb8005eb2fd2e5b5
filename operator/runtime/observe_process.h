// The operator with --rescue=observe: it observes (rescue/observer.h), and does nothing else. It
// needs no CRD. Call block_stop_signals() first.
#pragma once

#include "core/log.h"
#include "operator/runtime/options.h"

namespace holdfast::runtime {

// Blocks until a signal. Returns the exit code, as Process::run().
int run_observer(const Options& options, const Log& log);

}  // namespace holdfast::runtime

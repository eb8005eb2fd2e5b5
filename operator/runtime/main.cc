// holdfast-operator. Exit codes: 0 stopped cleanly, 1 could not work, 2 wrong flags, 3 the stop was
// cut short.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/log.h"
#include "operator/runtime/observe_process.h"
#include "operator/runtime/options.h"
#include "operator/runtime/process.h"
#include "operator/runtime/release_pods.h"
#include "operator/runtime/signals.h"
#include "operator/runtime/version.h"

namespace {

using holdfast::runtime::kExitFailed;
constexpr int kExitUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  using namespace holdfast;
  runtime::block_stop_signals();
  try {
    const Result<runtime::Options> options = runtime::parse_options(
        std::vector<std::string>(argv + 1, argv + argc), runtime::read_surroundings());
    if (!options.ok()) {
      std::cerr << "holdfast-operator: " << options.error().message << "\n";
      return kExitUsage;
    }
    if (!options->print.empty()) {
      std::cout << options->print;
      return 0;
    }
    const Log log = Log::create(options->log.level, options->log.format);
    log.info("holdfast-operator", {{"version", runtime::kVersion},
                                   {"id", options->replica.id},
                                   {"namespace", options->replica.namespace_}});
    if (options->release_pods) return runtime::run_release_pods(*options, log);
    if (options->rescue.mode == runtime::Options::Rescue::Mode::kObserve) {
      return runtime::run_observer(*options, log);
    }
    runtime::Process process(*options, log);
    return process.run();
  } catch (const std::exception& error) {
    std::cerr << "holdfast-operator: an unexpected error ended it: " << error.what() << "\n";
    return kExitFailed;
  }
}

#include "tests/simulation/run.h"

namespace holdfast::simulation {

RunResult run_seed(const RunRequest& request) {
  const Profile* const profile = find_profile(request.profile);
  Script script = draw_script(request.seed, *profile, request.length);
  if (request.rewrite) request.rewrite(script);
  World world({std::move(script), request.selection, request.trace, request.log, request.stop_at,
               request.sabotage});
  return world.run();
}

std::string rule_of(const std::string& violation) {
  // Up to what it says of this one case.
  return violation.substr(0, violation.find(':'));
}

std::string replay_command(const RunRequest& request, const Selection& selection) {
  std::string command = "holdfast-simulate --seed " + std::to_string(request.seed) + " --profile " +
                        request.profile + " --minutes " +
                        std::to_string(request.length / std::chrono::minutes(1));
  if (!selection.everything) command += " --only " + selection.text();
  return command + " --trace -";
}

}  // namespace holdfast::simulation

// What a trial lets happen: jobs, what their workers, their users and the cluster do, and how it
// must end, whatever single mishap comes between.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/simulation/cluster.h"

namespace holdfast::simulation {

class Trial;

struct Scenario {
  // Something that happens once, when it is time: what users and the cluster do hangs on what they
  // see, so that it hits the job in the same situation with every mishap.
  struct Step {
    std::function<bool(Trial&)> when;
    Duration after{0};
    std::function<void(Trial&)> act;
  };
  std::string name;
  int fewest_replicas = 1;
  int replicas_at_start = 0;  // 0: all
  int jobs = 1;
  Json spec = Json::object();  // laid over a job with short windows
  // What the first, second, ... pod of a job that starts does; the last stands for all later ones.
  std::vector<Cluster::Work> works;
  std::vector<Step> steps;
  // By a step a replica dies, or gives away what it holds: one attempt whose pod it could not
  // create by then is lost with it.
  bool moves = false;
  // By a step a replica stops: a request that hangs is cut off then, and an attempt whose pod could
  // not be created by then is lost.
  bool cuts_off = false;
  // What replicas ask for before there is a job is the same in all scenarios, and is tried in those
  // that say so.
  bool tries_start = false;
  // The phase at the end; "": the job is gone.
  std::string phase;
  // How its attempts ended: one of these.
  std::vector<std::vector<std::string>> outcomes;
  // So often at least each kind of request must be seen without faults: else nothing is tried.
  std::map<std::string, int> calls;
};

const std::vector<Scenario>& scenarios();

}  // namespace holdfast::simulation

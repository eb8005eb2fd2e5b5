// The scenarios of trials: jobs, and what their workers, their users and the cluster do. Each says
// how it must end, for any single mishap.
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
  // A step happens once, when its condition is true. The conditions depend on what users and the
  // cluster see. So a step meets the job in the same situation with every mishap.
  struct Step {
    std::function<bool(Trial&)> when;
    Duration after{0};
    std::function<void(Trial&)> act;
  };
  std::string name;
  int fewest_replicas = 1;
  int replicas_at_start = 0;  // 0: all
  int jobs = 1;
  // Runs that open in one write. A crash may come after the write with any number of their pods
  // created. It costs the others' attempts, and the attempts end in any order.
  int runs_at_once = 1;
  Json spec = Json::object();  // laid over a job with short windows
  // The spec of a queue that is made with the jobs. Null: no queue.
  Json queue;
  // Laid over the spec of a pool that is made with the jobs. They run in it. Null: no pool.
  Json pool;
  // Other controllers have pods, which replicas may free (others.h).
  bool others = false;
  // The place of each job in this queue. Not set: the jobs have none.
  std::function<Json(int job)> place;
  // What the first, second, ... started pod of a job does. The last entry also counts for later
  // pods.
  std::vector<Cluster::Work> works;
  std::vector<Step> steps;
  // A step kills a replica, or makes it give up its shards. An attempt whose pod it could not
  // create by then may be lost.
  bool moves = false;
  // A step stops a replica. This cuts off a hanging request, and an attempt whose pod could not be
  // created by then is lost.
  bool cuts_off = false;
  // Replicas send the same requests before the first job in all scenarios. Only scenarios with this
  // flag try them.
  bool tries_start = false;
  // The phase at the end. "": the job is gone.
  std::string phase;
  // The allowed ends of its attempts.
  std::vector<std::vector<std::string>> outcomes;
  // The least number of requests of each kind in the run without faults. Otherwise the trial would
  // test nothing.
  std::map<std::string, int> calls;
};

const std::vector<Scenario>& scenarios();

}  // namespace holdfast::simulation

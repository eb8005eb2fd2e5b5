// Reads what `explain` needs of a job, once or again and again. What is only useful may be missing:
// no right to read it, no such object.
#pragma once

#include <optional>
#include <string>

#include "plugin/base/api.h"
#include "plugin/base/job_text.h"
#include "plugin/explain/explain.h"

namespace holdfast::plugin {

class FactsReader {
 public:
  // How much of the line of the job's queue: all jobs of the namespace, or what its status has.
  enum class Line { kWhole, kHead };
  // Reads all but the job, which is at hand. `operator_namespace` empty: the operator is looked
  // for.
  FactsReader(Api& api, Json job, std::string operator_namespace, Line line = Line::kWhole);

  // Reads all of it again. The error is that of the job itself.
  Result<> read();

  const ExplainFacts& facts() const { return facts_; }

 private:
  void take(Json job);
  void read_operator();
  bool read_operator_in(const std::string& where);
  void read_places(const JobText& job);
  void read_run(const JobText& job);

  Api& api_;
  const std::string operator_namespace_;
  const Line line_;
  const std::string namespace_;
  const std::string name_;
  ExplainFacts facts_;
  std::optional<Time> listed_;
};

}  // namespace holdfast::plugin

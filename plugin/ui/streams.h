// One screen that a browser has open: asked four times a second, it says what has changed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/json.h"
#include "core/time.h"
#include "plugin/base/api.h"
#include "plugin/ui/job_table.h"
#include "plugin/ui/pulse.h"
#include "plugin/ui/web_server.h"

namespace holdfast::plugin {

// What all streams read.
struct PageSources {
  Api& api;
  const JobTable& table;
  Watch* watch = nullptr;  // of the table; null: it never changes
  Pulse* pulse = nullptr;  // null: the server always answers
  std::string namespace_;
  std::string operator_namespace;
  std::string where;  // in_cluster()
  std::string scope;  // what all this is of, for people
};

class ScreenStream {
 public:
  virtual ~ScreenStream() = default;
  // An event's data: {"now", "asOf", "trouble", "synced", "screen"}; empty: nothing is new. One at
  // a time. What it shows is as of then, where there is trouble.
  // Without a screen: what was sent last is still so.
  std::string next();

 protected:
  explicit ScreenStream(const PageSources& sources) : sources_(sources) {}
  // None: it has not changed since the last call.
  virtual std::optional<Json> read(Time now) = 0;
  // read() asks the API server for nothing that it must have.
  virtual bool is_of_memory() const { return false; }

  const PageSources sources_;
  bool is_silent_ = false;  // the API server does not answer
  std::string problem_;     // why the last read shows nothing new; empty: it does

 private:
  std::string last_;
  std::string trouble_;
  bool synced_ = false;
  std::optional<SteadyTime> sent_;
};

// The stream that ?screen= names. kInvalid says what is wrong with the query.
Result<std::shared_ptr<ScreenStream>> open_stream(const PageSources& sources,
                                                  const WebRequest& request);

}  // namespace holdfast::plugin

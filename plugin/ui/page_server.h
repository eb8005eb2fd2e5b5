// The page of `kubectl holdfast ui`: its files, its screens as streams of JSON, its actions.
//
// A fixed list of routes. Nothing is passed on to the API server but what they name.
//
//   PageServer page(api, {"media", "", assets()});
//   const Result<std::string> address = page.start(0);  // "http://127.0.0.1:41234/#token=..."
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/base/api.h"
#include "plugin/ui/assets.h"
#include "plugin/ui/guard.h"
#include "plugin/ui/job_table.h"
#include "plugin/ui/streams.h"
#include "plugin/ui/web_server.h"

namespace holdfast::plugin {

class PageServer {
 public:
  struct Options {
    std::string namespace_;          // empty: all
    std::string operator_namespace;  // empty: it is looked for
    std::vector<Asset> assets;
    std::string where = {};    // in_cluster()
    std::string context = {};  // of the kubeconfig; empty: its own
  };
  // The Api outlives it.
  PageServer(Api& api, Options options);
  ~PageServer();  // stops

  // Begins to watch the jobs and to serve. The address has the token.
  Result<std::string> start(std::uint16_t port);

  // The rest is for tests.
  WebReply answer(const WebRequest& request);
  const JobTable& table() const { return table_; }

 private:
  WebReply call(const WebRequest& request);
  std::optional<WebReply> file(const WebRequest& request) const;
  WebReply events(const WebRequest& request);
  WebReply action(const WebRequest& request);
  PageSources sources();

  Api& api_;
  const Options options_;
  std::string scope_;  // since start()
  JobTable table_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Pulse> pulse_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<WebServer> server_;
};

}  // namespace holdfast::plugin

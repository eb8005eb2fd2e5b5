// holdfast-load: requests for the benchmarks. Prints one line of JSON; exit code 1 and a message
// when a request was refused.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "client/kube/connection.h"
#include "core/random.h"
#include "core/real_loop.h"
#include "tests/bench/load/load.h"

namespace {

using namespace holdfast;

int run(const std::string& kubeconfig,
        const std::function<Task<Result<Json>>(kube::Client&)>& work) {
  RealLoop loop;
  SeededRandom random(std::random_device{}());
  kube::ConnectOptions connect;
  connect.kubeconfig = kubeconfig;
  connect.user_agent = "holdfast-load";
  auto connection = kube::Connection::connect({loop, random, Log(), {}}, connect);
  if (!connection.ok()) {
    std::cerr << "holdfast-load: " << connection.error().message << "\n";
    return 1;
  }
  int exit_code = 1;
  const auto all = [&]() -> Task<void> {
    auto task = work((*connection)->client());
    const Result<Json> done = co_await task;
    if (done) {
      std::cout << done->dump() << std::endl;
      exit_code = 0;
    } else {
      std::cerr << "holdfast-load: " << done.error().message << "\n";
    }
  };
  loop.post([&] {
    spawn(all(), [&](std::exception_ptr) {
      (*connection)->shut_down();
      loop.post([&] { loop.stop(); });
    });
  });
  loop.run();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::string kubeconfig;
  std::string chain_file;
  bench::SendOptions to_send;
  bench::FinishOptions to_finish;
  CLI::App app("Requests for the benchmarks");
  app.require_subcommand(1);
  app.add_option("--kubeconfig", kubeconfig)->required();
  CLI::App* const send = app.add_subcommand("send", "Chains of requests, see load.h");
  send->add_option("chain", chain_file)->required();
  send->add_option("--first", to_send.first);
  send->add_option("--count", to_send.count);
  send->add_option("--in-flight", to_send.in_flight);
  send->add_flag("--by-step", to_send.by_step);
  send->add_option("--until-ended", to_send.until_ended);
  CLI::App* const finish = app.add_subcommand("finish", "Pods end as soon as they are there");
  finish->add_option("--namespace", to_finish.namespace_)->required();
  finish->add_option("--count", to_finish.count);
  CLI11_PARSE(app, argc, argv);
  if (finish->parsed()) {
    return run(kubeconfig, [&](kube::Client& client) { return bench::finish(client, to_finish); });
  }
  std::ostringstream text;
  text << std::ifstream(chain_file).rdbuf();
  to_send.chain = text.str();
  return run(kubeconfig, [&](kube::Client& client) { return bench::send(client, to_send); });
}

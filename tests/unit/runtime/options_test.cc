#include "operator/runtime/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Given {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};

Result<Options> parse(const Given& given) {
  return parse_options(given.arguments, {given.environment, "", "node-7"});
}

Options parsed(const Given& given) {
  Result<Options> options = parse(given);
  EXPECT_TRUE(options.ok()) << options.error().message;
  return options.ok() ? *options : Options{};
}

TEST(Options, DefaultsAskForNothingSpecial) {
  const Options options = parsed({});
  EXPECT_EQ(options.api.kubeconfig, "");
  EXPECT_EQ(options.replica.namespace_, "holdfast-system");
  EXPECT_TRUE(options.watch_namespaces.empty());
  EXPECT_EQ(options.workers, 16);
  EXPECT_TRUE(options.metrics_address.enabled);
  EXPECT_EQ(options.metrics_address.host, "127.0.0.1");
  EXPECT_EQ(options.metrics_address.port, 8080);
  EXPECT_EQ(options.log.level, LogLevel::kInfo);
  EXPECT_EQ(options.log.format, LogFormat::kText);
  EXPECT_EQ(options.api.qps, 0);
  EXPECT_EQ(options.replica.id, "node-7");
  EXPECT_EQ(options.replica.shards, 32);
  EXPECT_EQ(options.replica.timings.lease_duration, std::chrono::seconds(15));
  EXPECT_EQ(options.replica.timings.renew_deadline, std::chrono::seconds(10));
  EXPECT_EQ(options.replica.timings.retry_period, std::chrono::seconds(2));
  EXPECT_EQ(options.print, "");
}

TEST(Options, ReleasePodsIsACommandOfItsOwn) {
  const Options options =
      parsed({{"release-pods", "--namespace=ops", "--deployment=operator"}, {}});
  EXPECT_TRUE(options.release_pods);
  EXPECT_EQ(options.deployment, "operator");
  EXPECT_EQ(options.replica.namespace_, "ops");
  EXPECT_FALSE(parsed({}).release_pods);
  const Result<Options> wrong = parse({{"--deployment=operator"}, {}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, HasSubstr("release-pods"));
  EXPECT_FALSE(parse({{"--namespace=ops", "release-pods"}, {}}).ok());
}

TEST(Options, BatchJobsAreRunOnlyIfAFlagSaysWhere) {
  EXPECT_EQ(parsed({}).batch_jobs, "");
  EXPECT_EQ(parsed({{"--batch-jobs=all"}, {}}).batch_jobs, "all");
  EXPECT_EQ(parsed({{"--batch-jobs=team=video,stage in (a)"}, {}}).batch_jobs,
            "team=video,stage in (a)");
  EXPECT_EQ(parsed({{}, {{"HOLDFAST_BATCH_JOBS", "team=video"}}}).batch_jobs, "team=video");
}

TEST(Options, OtherControllersPodsAreRescuedOnlyIfAFlagSaysSo) {
  using Mode = Options::Rescue::Mode;
  EXPECT_EQ(parsed({}).rescue.mode, Mode::kOff);
  EXPECT_EQ(parsed({{"--rescue=on"}, {}}).rescue.mode, Mode::kOn);
  EXPECT_EQ(parsed({{"--rescue=observe"}, {}}).rescue.mode, Mode::kObserve);
  EXPECT_EQ(parsed({{}, {{"HOLDFAST_RESCUE", "on"}}}).rescue.mode, Mode::kOn);
  const Options::Rescue rescue =
      parsed({{"--rescue-namespace=b,a", "--rescue-namespace=a", "--rescue-owner=Workflow,MPIJob",
               "--rescue-max-per-minute=5"},
              {}})
          .rescue;
  EXPECT_EQ(rescue.namespaces, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(rescue.owners, (std::set<std::string>{"MPIJob", "Workflow"}));
  EXPECT_EQ(rescue.most_per_minute, 5);
  EXPECT_TRUE(parsed({{"--rescue-owner=none"}, {}}).rescue.owners.empty());
}

TEST(Options, KindsWhosePodsAreNeverFreedAreRefused) {
  const auto refusal = [](const char* flag) {
    const Result<Options> options = parse({{flag}, {}});
    return options.ok() ? "" : options.error().message;
  };
  EXPECT_THAT(refusal("--rescue-owner=Workflow,StatefulSet"), HasSubstr("never freed"));
  EXPECT_THAT(refusal("--rescue-owner=two words"), HasSubstr("not a kind"));
  EXPECT_THAT(refusal("--rescue=maybe"), HasSubstr("give off, observe or on"));
}

TEST(Options, EveryFlagIsTakenFromTheCommandLine) {
  const Options options =
      parsed({{"--kubeconfig=/k", "--namespace", "ops", "--workers=32", "--metrics-address=:9090",
               "--log-level=debug", "--log-format=json", "--qps=12.5", "--id=blue"},
              {}});
  EXPECT_EQ(options.api.kubeconfig, "/k");
  EXPECT_EQ(options.replica.namespace_, "ops");
  EXPECT_EQ(options.workers, 32);
  EXPECT_EQ(options.metrics_address.host, "");
  EXPECT_EQ(options.metrics_address.port, 9090);
  EXPECT_EQ(options.log.level, LogLevel::kDebug);
  EXPECT_EQ(options.log.format, LogFormat::kJson);
  EXPECT_EQ(options.api.qps, 12.5);
  EXPECT_EQ(options.replica.id, "blue");
}

TEST(Options, EveryFlagIsTakenFromTheEnvironment) {
  const Options options = parsed({{},
                                  {{"HOLDFAST_KUBECONFIG", "/k"},
                                   {"HOLDFAST_NAMESPACE", "ops"},
                                   {"HOLDFAST_WATCH_NAMESPACE", "b, a"},
                                   {"HOLDFAST_WORKERS", "32"},
                                   {"HOLDFAST_METRICS_ADDRESS", "[::1]:9090"},
                                   {"HOLDFAST_LOG_LEVEL", "warn"},
                                   {"HOLDFAST_LOG_FORMAT", "json"},
                                   {"HOLDFAST_QPS", "3"},
                                   {"HOLDFAST_ID", "blue"}}});
  EXPECT_EQ(options.api.kubeconfig, "/k");
  EXPECT_EQ(options.replica.namespace_, "ops");
  EXPECT_THAT(options.watch_namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(options.workers, 32);
  EXPECT_EQ(options.metrics_address.host, "::1");
  EXPECT_EQ(options.log.level, LogLevel::kWarn);
  EXPECT_EQ(options.log.format, LogFormat::kJson);
  EXPECT_EQ(options.api.qps, 3);
  EXPECT_EQ(options.replica.id, "blue");
}

TEST(Options, ShardsAndTimingsOfTheReplicas) {
  const Options options = parsed({{"--shards=64", "--lease-duration=1m", "--renew-deadline=30s"},
                                  {{"HOLDFAST_RETRY_PERIOD", "500ms"}}});
  EXPECT_EQ(options.replica.shards, 64);
  EXPECT_EQ(options.replica.timings.lease_duration, std::chrono::seconds(60));
  EXPECT_EQ(options.replica.timings.renew_deadline, std::chrono::seconds(30));
  EXPECT_EQ(options.replica.timings.retry_period, std::chrono::milliseconds(500));
}

TEST(Options, TimingsThatDoNotFitTogetherAreRefused) {
  const auto message = [](std::vector<std::string> arguments) {
    const Result<Options> options = parse({std::move(arguments), {}});
    return options.ok() ? std::string() : options.error().message;
  };
  EXPECT_THAT(message({"--lease-duration=10s"}), HasSubstr("longer than --renew-deadline"));
  EXPECT_THAT(message({"--renew-deadline=2s"}), HasSubstr("1.2 times --retry-period"));
  for (const char* const text : {"15", "0s", "-1s", "1.5s", "s", "70000s", "1d", "15 s"}) {
    EXPECT_THAT(message({std::string("--lease-duration=") + text}), HasSubstr("e.g. 15s")) << text;
  }
  for (const char* const text : {"0", "1025", "-1", "x", "32.0"}) {
    EXPECT_THAT(message({std::string("--shards=") + text}), HasSubstr("from 1 to 1024")) << text;
  }
}

TEST(Options, AFlagWinsOverItsVariable) {
  EXPECT_EQ(parsed({{"--workers=3"}, {{"HOLDFAST_WORKERS", "4"}}}).workers, 3);
  EXPECT_EQ(parsed({{"--kubeconfig=/a"}, {{"HOLDFAST_KUBECONFIG", "/b"}}}).api.kubeconfig, "/a");
}

TEST(Options, AWrongVariableIsNotLookedAtWhenTheFlagIsGiven) {
  EXPECT_EQ(parsed({{"--workers=3"}, {{"HOLDFAST_WORKERS", "many"}}}).workers, 3);
}

TEST(Options, KubeconfigVariableOfTheFieldIsLeftToWhoeverLoadsIt) {
  // It may name several files, some of which need not exist; the flag's must.
  EXPECT_EQ(parsed({{}, {{"KUBECONFIG", "/c"}}}).api.kubeconfig, "");
}

TEST(Options, AnEmptyVariableIsAnUnsetOne) {
  EXPECT_EQ(parsed({{}, {{"HOLDFAST_WORKERS", ""}, {"HOLDFAST_LOG_LEVEL", "  "}}}).workers, 16);
}

TEST(Options, VariablesThatKubernetesMakesForAServiceAreNoFlags) {
  EXPECT_EQ(
      parsed({{}, {{"HOLDFAST_SERVICE_HOST", "10.0.0.1"}, {"HOLDFAST_PORT", "tcp://x"}}}).workers,
      16);
}

TEST(Options, WatchedNamespacesMayBeRepeatedOrSeparatedByCommasAndCountOnce) {
  EXPECT_THAT(
      parsed({{"--watch-namespace", "b", "--watch-namespace=a,c", "--watch-namespace=b"}, {}})
          .watch_namespaces,
      ElementsAre("a", "b", "c"));
}

TEST(Options, OwnNamespaceIsTheOneThatItRunsIn) {
  const Result<Options> options = parse_options({}, {{}, "platform\n", "node-7"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->replica.namespace_, "platform");
}

TEST(Options, IdComesFromAnyHostname) {
  const auto id = [](const std::string& hostname) {
    return parse_options({}, {{}, "", hostname})->replica.id;
  };
  EXPECT_EQ(id("My_Laptop.example.com"), "my-laptop-example-com");
  EXPECT_EQ(id(""), "holdfast-operator");
  EXPECT_EQ(id("..."), "holdfast-operator");
  const std::string long_name = std::string(60, 'a') + "-5x7qz";
  EXPECT_EQ(id(long_name).size(), 52U);
  EXPECT_THAT(id(long_name), HasSubstr("-5x7qz")) << "pods are told apart by the end";
}

TEST(Options, MetricsAddressForms) {
  const auto address = [](const std::string& text) {
    return parsed({{"--metrics-address=" + text}, {}}).metrics_address;
  };
  EXPECT_FALSE(address("0").enabled);
  EXPECT_EQ(address(":0").port, 0);
  EXPECT_TRUE(address(":0").enabled);
  EXPECT_EQ(address("localhost:1").host, "127.0.0.1");
  EXPECT_EQ(address("10.1.2.3:65535").port, 65535);
  EXPECT_EQ(address("[fd00::1]:80").host, "fd00::1");
}

TEST(Options, HelpNamesEveryFlagAndEndsThere) {
  const Options options = parsed({{"--help", "--workers=nonsense"}, {}});
  for (const char* const flag :
       {"--kubeconfig", "--namespace", "--watch-namespace", "--workers", "--metrics-address",
        "--log-level", "--log-format", "--qps", "--id", "--version", "--help"}) {
    EXPECT_THAT(options.print, HasSubstr(flag));
  }
  std::size_t begin = 0;
  while (begin < options.print.size()) {
    const std::size_t end = options.print.find('\n', begin);
    EXPECT_LE(end - begin, 100U) << options.print.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(Options, VersionNamesTheProgram) {
  EXPECT_THAT(parsed({{"--version"}, {}}).print, testing::StartsWith("holdfast-operator "));
}

struct Wrong {
  const char* rule;
  Given given;
  const char* says;
};

class WrongOptions : public testing::TestWithParam<Wrong> {};

TEST_P(WrongOptions, AreRefusedWithWhatToDo) {
  const Result<Options> options = parse(GetParam().given);
  ASSERT_FALSE(options.ok());
  EXPECT_EQ(options.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(options.error().message, HasSubstr(GetParam().says));
}

const Wrong kWrong[] = {
    {"UnknownFlag", {{"--wrokers=3"}, {}}, "--wrokers"},
    {"UnknownFlagPointsToHelp", {{"--wrokers=3"}, {}}, "see holdfast-operator --help"},
    {"StrayWord", {{"start"}, {}}, "start"},
    {"FlagWithoutValue", {{"--workers"}, {}}, "--workers"},
    {"FlagTwice", {{"--workers=1", "--workers=2"}, {}}, "--workers"},
    {"WorkersZero", {{"--workers=0"}, {}}, "from 1 to 1000"},
    {"WorkersNegative", {{"--workers=-4"}, {}}, "from 1 to 1000"},
    {"WorkersTooMany", {{"--workers=1001"}, {}}, "from 1 to 1000"},
    {"WorkersBeyondInt", {{"--workers=99999999999999999999"}, {}}, "from 1 to 1000"},
    {"WorkersWithUnit", {{"--workers=16x"}, {}}, "from 1 to 1000"},
    {"WorkersFraction", {{"--workers=1.5"}, {}}, "from 1 to 1000"},
    {"WorkersEmpty", {{"--workers="}, {}}, "--workers"},
    {"WorkersByEnvironment", {{}, {{"HOLDFAST_WORKERS", "many"}}}, "HOLDFAST_WORKERS: \"many\""},
    {"QpsNegative", {{"--qps=-1"}, {}}, "requests per second"},
    {"QpsInfinite", {{"--qps=inf"}, {}}, "requests per second"},
    {"QpsNotANumber", {{"--qps=nan"}, {}}, "requests per second"},
    {"QpsWords", {{"--qps=fast"}, {}}, "requests per second"},
    {"QpsWithUnit", {{"--qps=5/s"}, {}}, "requests per second"},
    {"LogLevelUnknown", {{"--log-level=verbose"}, {}}, "trace, debug, info, warn or error"},
    {"LogLevelCase", {{"--log-level=INFO"}, {}}, "trace, debug, info, warn or error"},
    {"LogFormatUnknown", {{"--log-format=xml"}, {}}, "give text or json"},
    {"NamespaceCapitals", {{"--namespace=Ops"}, {}}, "lower case"},
    {"NamespaceTooLong", {{"--namespace=" + std::string(64, 'a')}, {}}, "at most 63"},
    {"NamespaceDash", {{"--namespace=ops-"}, {}}, "at both ends"},
    {"WatchStar", {{"--watch-namespace=*"}, {}}, "to watch all namespaces, leave this out"},
    {"WatchEmptyItem", {{"--watch-namespace=a,,b"}, {}}, "leave this out"},
    {"WatchPath", {{"--watch-namespace=a/b"}, {}}, "separated by commas"},
    {"WatchByEnvironment", {{}, {{"HOLDFAST_WATCH_NAMESPACE", "a;b"}}}, "HOLDFAST_WATCH_NAMESPACE"},
    {"AddressWithoutPort", {{"--metrics-address=127.0.0.1"}, {}}, "IP:PORT"},
    {"AddressOnlyPort", {{"--metrics-address=8080"}, {}}, "IP:PORT"},
    {"AddressPortTooHigh", {{"--metrics-address=:65536"}, {}}, "IP:PORT"},
    {"AddressPortNegative", {{"--metrics-address=:-1"}, {}}, "IP:PORT"},
    {"AddressHostname", {{"--metrics-address=example.com:80"}, {}}, "IP:PORT"},
    {"AddressUrl", {{"--metrics-address=http://0.0.0.0:80"}, {}}, "IP:PORT"},
    {"AddressBareIpv6", {{"--metrics-address=::1:80"}, {}}, "[IPv6]:PORT"},
    {"AddressBracketedIpv4", {{"--metrics-address=[127.0.0.1]:80"}, {}}, "[IPv6]:PORT"},
    {"AddressEmpty", {{"--metrics-address="}, {}}, "--metrics-address"},
    {"IdCapitals", {{"--id=Blue"}, {}}, "lower case"},
    {"IdTooLong", {{"--id=" + std::string(53, 'a')}, {}}, "at most 52"},
    {"IdDots", {{"--id=a.b"}, {}}, "lower case"},
};

INSTANTIATE_TEST_SUITE_P(Table, WrongOptions, testing::ValuesIn(kWrong),
                         [](const auto& wrong) { return wrong.param.rule; });

}  // namespace
}  // namespace holdfast::runtime

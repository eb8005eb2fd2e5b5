// Waiting for the end of a job: what it bears of an API server that refuses, and for how long.
#include "plugin/verbs/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "plugin/base/refusals.h"
#include "plugin/verbs/verb.h"
#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/text_terminal.h"

namespace holdfast::plugin {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

const Json kRunning = {
    {"metadata", {{"name", "sweep"}, {"namespace", "default"}, {"uid", "u-sweep"}}},
    {"status", {{"phase", "Running"}}}};

// What the mirror says while a wait has no news: for `lasts`, one look each second.
struct Spell {
  Duration lasts;
  bool refused;
};

// A watch that goes through the spells in turn. Then the job ends.
class Script {
 public:
  explicit Script(std::vector<Spell> spells) : spells_(std::move(spells)) {}

  SteadyTime now() const { return now_; }
  bool ended() const { return at_ >= spells_.size(); }
  bool refused() const { return !ended() && spells_[at_].refused; }
  void pass(Duration time) {
    now_ += time;
    spent_ += time;
    while (!ended() && spent_ >= spells_[at_].lasts) spent_ -= spells_[at_++].lasts;
  }

 private:
  const std::vector<Spell> spells_;
  std::size_t at_ = 0;
  Duration spent_{0};
  SteadyTime now_{};
};

class ScriptedMirror : public Mirror {
 public:
  explicit ScriptedMirror(Script& script) : script_(script) {}

  bool wait(Duration at_most) override {
    script_.pass(at_most);
    return script_.ended();
  }
  std::vector<std::shared_ptr<const Json>> objects() override {
    Json job = kRunning;
    if (script_.ended()) job["status"]["phase"] = "Succeeded";
    return {std::make_shared<const Json>(std::move(job))};
  }
  std::vector<std::shared_ptr<const Json>> deleted() override { return {}; }
  std::string trouble() override { return script_.refused() ? "401" : ""; }
  std::optional<Error> look(Duration) override {
    if (!script_.refused()) return std::nullopt;
    Error error = make_error(ErrorCode::kUnauthorized, "Unauthorized");
    error.http_status = 401;
    return error;
  }

 private:
  Script& script_;
};

class ScriptedApi : public test::MemoryApi {
 public:
  explicit ScriptedApi(Script& script) : script_(script) {}
  Result<std::unique_ptr<Mirror>> mirror(const Resource&, const std::string&,
                                         const Selector&) override {
    return std::unique_ptr<Mirror>(std::make_unique<ScriptedMirror>(script_));
  }

 private:
  Script& script_;
};

class PluginOutcome : public ::testing::Test {
 protected:
  int wait(std::vector<Spell> spells) {
    Script script(std::move(spells));
    ScriptedApi api(script);
    return wait_for_end({}, api, terminal_, kRunning, "Succeeded", [&] { return script.now(); });
  }

  test::TextTerminal terminal_;
};

TEST_F(PluginOutcome, RefusalsOfAMinuteEndTheWait) {
  EXPECT_EQ(wait({{seconds(5), false}, {hours(1), true}}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("cannot wait for"));
}

TEST_F(PluginOutcome, ShortRefusalsWithARecoveryInBetweenNeverEndTheWait) {
  const Spell blip{seconds(3), true};  // over before the next question
  EXPECT_EQ(wait({blip, {hours(3), false}, blip, {seconds(2), false}, blip}), kExitDone)
      << terminal_.errors;
}

}  // namespace
}  // namespace holdfast::plugin

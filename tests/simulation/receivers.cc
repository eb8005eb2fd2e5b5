#include "tests/simulation/receivers.h"

#include "tests/simulation/draw.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Secrets : public FileReader {
 public:
  Result<std::string> read(const std::string&, std::size_t) const override {
    return std::string("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
  }
};

Result<notify::Answer> answer_of(Receivers::Way way) {
  using Way = Receivers::Way;
  switch (way) {
    case Way::kTakes:
      return notify::Answer{204, std::nullopt};
    case Way::kFails:
      return notify::Answer{500, std::nullopt};
    case Way::kGone:
      return notify::Answer{410, std::nullopt};
    case Way::kBusy:
      return notify::Answer{429, seconds(40)};
    case Way::kTakesUnseen:
    case Way::kHangs:
      break;
  }
  return make_error(ErrorCode::kTransient, "it gives no answer");
}

}  // namespace

const FileReader& sim_secrets() {
  static const auto* const secrets = new Secrets;
  return *secrets;
}

const notify::Targets& Receivers::targets() {
  static const auto* const targets = [] {
    return new notify::Targets(*notify::parse_targets(
        R"({"targets": [{"name": "chat", "url": "https://chat.example.com/", "secretFile": "x"},
            {"name": "failures", "url": "https://failures.example.com/", "secretFile": "x",
             "events": ["Failed", "Cancelled", "StageEnded"]}]})"));
  }();
  return *targets;
}

Receivers::Way Receivers::arrives(const std::string& target, const std::string& id,
                                  std::uint64_t drawn) {
  Draw draw(drawn);
  Way way = Way::kTakes;
  if (!healthy_) {
    const int chance = draw.between(0, 99);
    if (chance < 20) way = Way::kFails;
    if (chance >= 20 && chance < 30) way = Way::kHangs;
    if (chance >= 30 && chance < 40) way = Way::kTakesUnseen;
    if (chance >= 40 && chance < 45) way = Way::kBusy;
    if (chance >= 45 && chance < 47) way = Way::kGone;
  }
  if (way == Way::kTakes || way == Way::kTakesUnseen) taken_.emplace(target, id);
  if (way == Way::kGone) refused_.emplace(target, id);
  return way;
}

void SimPoster::post(const notify::Target& target, notify::Message message, Done done) {
  Draw draw(mix(seed_, ++posted_));
  const auto there = milliseconds(draw.between(1, 100));
  const auto back = milliseconds(draw.between(1, 100));
  const std::uint64_t drawn = mix(seed_, posted_ + (std::uint64_t{1} << 40));
  // A message that was sent arrives, whatever becomes of its sender.
  scheduler_.after(there, [this, alive = alive_, &receivers = receivers_, &scheduler = scheduler_,
                           name = target.name, id = message.id, back, drawn, done] {
    const Receivers::Way way = receivers.arrives(name, id, drawn);
    const bool silent = way == Receivers::Way::kHangs || way == Receivers::Way::kTakesUnseen;
    const Duration later = silent ? Duration(notify::kTryTimeout) : Duration(back);
    scheduler.after(later, [this, alive, way, done] {
      if (*alive) loop_.post([done, way] { done(answer_of(way)); });
    });
  });
}

}  // namespace holdfast::simulation

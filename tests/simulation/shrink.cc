#include <algorithm>
#include <utility>
#include <vector>

#include "tests/simulation/run.h"

namespace holdfast::simulation {
namespace {

// Without some acts the same may come about a little later; to wait for longer costs too much.
constexpr std::chrono::minutes kLater{5};

// A piece of a script that can be left out: an act, or one strike of an act.
struct Piece {
  int event;
  std::optional<std::uint64_t> strike;
};

Selection selection_of(const std::vector<Piece>& pieces) {
  Selection selection;
  selection.everything = false;
  for (const Piece& piece : pieces) {
    auto& strikes = selection.events[piece.event];
    if (!piece.strike) continue;
    if (!strikes) strikes.emplace();
    strikes->insert(*piece.strike);
  }
  return selection;
}

class Shrinker {
 public:
  Shrinker(const RunRequest& request, std::string rule, int runs)
      : request_(request), rule_(std::move(rule)), left_(runs) {
    request_.trace = nullptr;
    request_.log = Log();
  }

  // Zeller's ddmin, without its complements of two.
  std::vector<Piece> minimize(std::vector<Piece> pieces) {
    std::size_t parts = 2;
    while (pieces.size() > 1 && left_ > 0) {
      const std::size_t size = (pieces.size() + parts - 1) / parts;
      bool smaller = false;
      for (std::size_t begin = 0; begin < pieces.size() && left_ > 0; begin += size) {
        std::vector<Piece> rest(pieces.begin(),
                                pieces.begin() + static_cast<std::ptrdiff_t>(begin));
        const std::size_t end = std::min(begin + size, pieces.size());
        rest.insert(rest.end(), pieces.begin() + static_cast<std::ptrdiff_t>(end), pieces.end());
        if (!fails(rest)) continue;
        pieces = std::move(rest);
        parts = std::max<std::size_t>(parts - 1, 2);
        smaller = true;
        break;
      }
      if (smaller) continue;
      if (parts >= pieces.size()) break;
      parts = std::min(parts * 2, pieces.size());
    }
    return pieces;
  }

  RunResult run(const std::vector<Piece>& pieces) {
    --left_;
    request_.selection = selection_of(pieces);
    return run_seed(request_);
  }

 private:
  bool fails(const std::vector<Piece>& pieces) { return rule_of(run(pieces).violation) == rule_; }

  RunRequest request_;
  const std::string rule_;
  int left_;
};

}  // namespace

Selection shrink(const RunRequest& failing, const RunResult& failed, int runs) {
  const Script script = draw_script(failing.seed, *find_profile(failing.profile), failing.length);
  std::vector<Piece> pieces;
  for (const ScriptEvent& event : script.events) {
    if (failing.selection.has(event.id)) pieces.push_back({event.id, std::nullopt});
  }
  RunRequest request = failing;
  request.stop_at = failed.violated_at + kLater;
  Shrinker shrinker(request, rule_of(failed.violation), runs);
  pieces = shrinker.minimize(std::move(pieces));
  // Then the single requests that the acts which are left strike.
  const RunResult result = shrinker.run(pieces);
  std::vector<Piece> fine;
  for (const Piece& piece : pieces) {
    const auto struck = result.struck.find(piece.event);
    if (struck == result.struck.end()) {
      fine.push_back(piece);
      continue;
    }
    for (const std::uint64_t strike : struck->second) fine.push_back({piece.event, strike});
  }
  return selection_of(fine.size() > pieces.size() ? shrinker.minimize(std::move(fine)) : fine);
}

}  // namespace holdfast::simulation

// Jobs in the situations in which people ask why. The golden texts are explain/NAME.txt.
#pragma once

#include <string>
#include <vector>

#include "plugin/explain/explain.h"

namespace holdfast::plugin {

struct Situation {
  std::string name;
  ExplainFacts facts;
};

// When all of them are looked at: 2026-07-01T14:00:00Z.
Time noon();
const std::vector<Situation>& situations();
const Situation& situation(const std::string& name);

}  // namespace holdfast::plugin

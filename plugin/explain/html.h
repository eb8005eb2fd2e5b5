// The model as one HTML file that needs no network and runs no script: to attach to a ticket.
//
// Pure. All texts are escaped: names and last words are text, never markup.
#pragma once

#include <string>

#include "plugin/explain/model.h"

namespace holdfast::plugin {

std::string html_of(const Model& model, Time now);

// Takes away what programs have said: logs may hold secrets.
void leave_words_out(Model& model);

}  // namespace holdfast::plugin

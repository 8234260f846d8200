// What this CPU can do.
#pragma once

#include <string>
#include <vector>

namespace regard {

// The instruction sets that this CPU has and this operating system lets programs use.
std::vector<std::string> instruction_sets();

}  // namespace regard

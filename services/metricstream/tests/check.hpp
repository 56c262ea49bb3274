#pragma once

#include <cstdlib>
#include <iostream>

/// End with a word on what does not hold.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "does not hold: " << what << '\n';
  std::exit(1);
}

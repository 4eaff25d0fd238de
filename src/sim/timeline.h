// Everything that happened in one simulated step.
#pragma once

#include <emplace/simulate.h>

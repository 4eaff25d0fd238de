// What makes one placement better than another.
#pragma once

#include <emplace/simulate.h>

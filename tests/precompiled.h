// What nearly every test includes anyway, compiled once.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/simulator.h"

#include "../cmake/precompiled.h"

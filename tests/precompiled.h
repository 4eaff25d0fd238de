// What nearly every test includes anyway, compiled once.
#pragma once

#include "../cmake/precompiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/simulator.h"

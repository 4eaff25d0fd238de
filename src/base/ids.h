// Indices into the arrays of a Graph and a Cluster.
#pragma once

#include <emplace/types.h>

// What unit tests include, precompiled once.
#include "cmake/std_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

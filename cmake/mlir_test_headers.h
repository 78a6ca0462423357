// What unit tests of the compiler include, precompiled once.
#include "cmake/dialect_headers.h"
#include "cmake/test_headers.h"

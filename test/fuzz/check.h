// What a fuzzer demands of the code under test.
#pragma once

#include <cstdio>
#include <cstdlib>

#define ONEREPL_DEMAND(condition)                                                        \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                \
        }                                                                                \
    } while (false)

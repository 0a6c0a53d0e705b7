// PostgreSQL's headers as C++ sees them. The first include of every file that uses PostgreSQL. Such a file
// includes no Boost, libcurl or OpenSSL header: PostgreSQL's macros break some of them.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/elog.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
}

// Macros of PostgreSQL that the C++ standard library and our own code use as plain names.
#undef Min
#undef Max
#undef Abs
#undef gettext
#undef _
#undef bind
#undef connect

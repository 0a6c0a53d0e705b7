# onerepl: builds with PGXS.  `make help` lists the targets.
#
# Another server than the default one: make PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config

RELEASE   = 0.1.0
PG_CONFIG ?= pg_config

.DEFAULT_GOAL := all
MODULE_big = onerepl
EXTENSION  = onerepl
DATA_built = onerepl--$(RELEASE).sql
# The floors of the house, from the ground up: includes run downward only, and never between neighbours (+). `make lint`
# holds it.
FLOORS     = core pg+http shared store keys log capture apply/rows apply/tables apply/copy apply+refresh worker sender+receiver functions
FOLDERS    = $(subst +, ,$(FLOORS))
SOURCES    = $(sort $(foreach folder,$(FOLDERS),$(wildcard src/$(folder)/*.cpp)))
OBJS       = $(SOURCES:.cpp=.o)
SQL_PARTS  = $(sort $(wildcard src/sql/*.sql))

PG_VERSION_NUM := $(shell $(PG_CONFIG) --version 2>/dev/null | sed 's/^[^0-9]*\([0-9]*\).*/\1/')

# PostgreSQL's headers are system headers here: -Wextra is for our code. PostgreSQL 15 gives PGDLLEXPORT no meaning on its
# own, so hidden visibility would hide the entry points too.
PG_CPPFLAGS = -isystem $(shell $(PG_CONFIG) --includedir-server 2>/dev/null) -Isrc -D_GNU_SOURCE -MMD -MP
ifeq ($(PG_VERSION_NUM),15)
PG_CPPFLAGS += '-DPGDLLEXPORT=__attribute__((visibility("default")))'
endif
PG_CXXFLAGS = -std=c++20 -fvisibility=hidden -fvisibility-inlines-hidden -Wall -Wextra -Wshadow $(WERROR)
WERROR     ?= -Werror
# PGXS links with the C compiler.
SHLIB_LINK = -lcurl -lzstd -lcrypto -lstdc++
# Bitcode would only help to inline SQL functions into JIT code, and would need clang to build.
override with_llvm = no

EXTRA_CLEAN = $(OBJS:.o=.d) build

# Without pg_config `make deps` must still work; then this includes nothing.
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
include $(PGXS)
ifeq ($(PGXS),)
all install:
	@echo '$(PG_CONFIG) not found: make deps installs what is missing; or give PG_CONFIG=/path/to/pg_config' >&2; exit 1
endif
-include $(wildcard $(OBJS:.o=.d))

# Only what compares it with the extension's version needs it.
src/functions/obstacle.o: CXXFLAGS += -DONEREPL_RELEASE='"$(RELEASE)"'

# As PGXS does it, but with a line that can be read; make V=1 shows all. The dependencies get their name when they are
# complete, so that two makes at a time do no harm.
src/%.o: src/%.cpp
	@echo '  CXX $<'
	$(if $(V),,@)$(CXX) $(CXXFLAGS) $(CPPFLAGS) -MF $(@:.o=.d).$$$$ -c -o $@ $< && mv $(@:.o=.d).$$$$ $(@:.o=.d)

$(DATA_built): $(SQL_PARTS) Makefile
	@{ printf '%s\n' '\echo Use "CREATE EXTENSION onerepl" to load this file. \quit'; \
	   for part in $(SQL_PARTS); do echo; cat $$part; done; } > $@

# ---------------------------------------------------------------------------------------------------- everything else

MAKEFLAGS += --no-print-directory
JOBS   ?= $(shell nproc)
SUDO    = $(if $(filter 0,$(shell id -u)),,sudo)
# Runs a program that starts servers: as user postgres when we are root, with the test files copied to where it may write.
SERVERS = PG_CONFIG="$(PG_CONFIG)" test/lib/unprivileged
TAP    ?= test/t/*.pl
SIM_SCHEDULES ?= 50000
SIM_SCHEDULES_ASAN ?= 2000
FUZZ_SECONDS  ?= 60

.PHONY: help deps parallel system-install install-docs uninstall-docs docs demo test test-docs test-unit test-sim test-fuzz \
        test-regress test-pgtap test-tap test-valgrind format-check format lint bench

help:
	@echo 'make deps      install the Debian packages that are missing'
	@echo 'make           build;  make install  install into the server of pg_config'
	@echo 'make demo      two throw-away servers, a load, faults, a comparison (KEEP=1: leave them running)'
	@echo 'make test      all tests: test-docs test-unit test-sim test-fuzz test-regress test-pgtap test-tap'
	@echo 'make test-tap TAP=test/t/001_basic.pl   one file'
	@echo 'make test-valgrind   TAP with the servers under valgrind, one hour and more; not part of make test'
	@echo 'make lint      formatting, floors of the house, clang-tidy on what changed since it was good;  make format  reformat'
	@echo 'make docs      docs/functions.md anew from the comments in src/sql; mkdocs build makes a site of the pages'
	@echo 'make bench     benchmarks'

deps:
	.ci/deps "$(PG_CONFIG)"

# In a make of its own, because `make deps` may just have brought pg_config.
parallel:
	@$(MAKE) -j$(JOBS) all

system-install: parallel
	@$(SUDO) $(MAKE) -s install PG_CONFIG="$(PG_CONFIG)"

# The pages keep their folders, so that links between them stay good. Hints name them.
DOC_FILES  = README.md CHANGELOG.md $(shell find docs -name '*.md' | sort)
DOC_FOLDER = $(DESTDIR)$(docdir)/onerepl
install: install-docs
install-docs:
	@for file in $(DOC_FILES); do $(INSTALL) -D -m 644 "$$file" "$(DOC_FOLDER)/$$file"; done
uninstall: uninstall-docs
uninstall-docs:
	@rm -rf "$(DOC_FOLDER)"

docs: system-install | build
	@$(SERVERS) test/lib/with_server test/lib/functions_page >build/functions.md && mv build/functions.md docs/functions.md

demo: deps
	@$(MAKE) system-install
	@KEEP=$(KEEP) $(SERVERS) demo/demo.sh

# WITH: further targets, as lint.
test: deps
	@MAKE='$(MAKE)' test/all $(WITH) test-docs test-unit test-sim test-fuzz test-regress test-pgtap test-tap

test-docs:
	@test/docs/check.py

# Unit tests, and some schedules of the simulation, run with AddressSanitizer and UBSan; the long simulation without, for speed.
build/%/Makefile: CMakeLists.txt
	@cmake -S . -B build/$* $(CMAKE_OPTIONS) > build/$*.log 2>&1 || { cat build/$*.log; exit 1; }

build:
	@mkdir -p build

build/asan/Makefile:  CMAKE_OPTIONS = -DCMAKE_BUILD_TYPE=Debug -DONEREPL_SANITIZE=ON
build/speed/Makefile: CMAKE_OPTIONS = -DCMAKE_BUILD_TYPE=Release
build/fuzz/Makefile:  CMAKE_OPTIONS = -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++ -DONEREPL_FUZZ=ON
build/asan/Makefile build/speed/Makefile build/fuzz/Makefile: | build

test-unit: build/asan/Makefile
	cmake --build build/asan -j$(JOBS)
	cd build/asan && ctest --output-on-failure -j$(JOBS)
	build/asan/onerepl_sim --seeds 1..$(SIM_SCHEDULES_ASAN) --jobs $(JOBS)

test-sim: build/speed/Makefile
	cmake --build build/speed -j$(JOBS) --target onerepl_sim
	build/speed/onerepl_sim --seeds 1..$(SIM_SCHEDULES) --jobs $(JOBS)

test-fuzz: build/fuzz/Makefile
	cmake --build build/fuzz -j$(JOBS)
	.ci/fuzz build/fuzz $(FUZZ_SECONDS) $(JOBS)

test-regress: system-install
	@$(SERVERS) test/lib/with_server test/lib/regress

test-pgtap: system-install
	@$(SERVERS) test/lib/with_server test/lib/pgtap

test-tap: system-install
	@JOBS=$(JOBS) $(SERVERS) test/lib/tap $(TAP)

test-valgrind: system-install
	@command -v valgrind >/dev/null || { echo 'make test-valgrind needs the package valgrind' >&2; exit 1; }
	@JOBS=$(JOBS) $(SERVERS) test/lib/valgrind test/lib/tap $(TAP)

FORMATTED = $(shell find src test -name '*.cpp' -o -name '*.h')

# Releases of clang-format differ in what they make of lambdas in arguments and of macros: one of them decides.
FORMAT_RELEASE = 14
format-check:
	@case "$$(clang-format --version)" in \
	*'version $(FORMAT_RELEASE).'*) clang-format --dry-run -Werror $(FORMATTED) && echo 'format: good' ;; \
	*) echo 'format: not checked; it is that of clang-format $(FORMAT_RELEASE) (Debian 12)' ;; \
	esac

format:
	clang-format -i $(FORMATTED)

lint: format-check
	@.ci/floors '$(FLOORS)'
	@.ci/tidy "$(PG_CONFIG)" $(JOBS) $(SOURCES)

# onerepl beside other systems: make bench BENCH='-n 5 onerepl builtin slony'
BENCH ?= -n 1 onerepl builtin

bench: system-install
	bench/peers $(BENCH)

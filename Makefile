# SPDX-License-Identifier: MIT
# A thin front: every goal first asks scripts/setup for what it needs, then lets CMake or a script do the work.
# Everything that is built lies below build/.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
FORM ?= quick
# Ours only. "make install" is a user's build: no -Werror, no tests.
OURS := -DCMAKE_C_COMPILER=gcc -DROPHIVE_WERROR=ON

.DEFAULT_GOAL := build
.PHONY: build tool demo test test-long coverage bench bench-check install format check clean help

build: ## build library, tool and tests in build/
	@scripts/setup build
	@cmake -S . -B $(BUILD) -G Ninja $(OURS) --log-level=NOTICE
	@cmake --build $(BUILD)

tool: ## build the hive tool only
	@scripts/setup build
	@cmake -S . -B $(BUILD) -G Ninja $(OURS) --log-level=NOTICE
	@cmake --build $(BUILD) --target hive

demo: tool ## the promise made visible, 15 seconds
	@$(BUILD)/bin/hive demo

test: ## rules, tests, sanitizers, models, explorer, faults, fuzzers, other processors (docs/testing.md)
	@scripts/setup test
	@scripts/test

test-long: ## the same for as long as it takes: a million explored seeds, mutants, all conditions (hours)
	@scripts/setup test
	@scripts/test-long

coverage: ## which lines and branches the tests execute: a table, and build/coverage/index.html
	@scripts/setup test
	@scripts/coverage

bench: ## side by side with all peers, and a report of it, in bench/report; FORM=full, ONLY=rows, ROUNDS=n, PEERS=names, PIN=1; two minutes
	@scripts/setup bench
	@$(MAKE) --no-print-directory tool
	@bench/suite/run '--$(FORM)' --hive '$(BUILD)/bin/hive' $(if $(ONLY),--only '$(ONLY)') $(if $(ROUNDS),--rounds '$(ROUNDS)') $(if $(PEERS),--peers '$(PEERS)') $(if $(filter-out 0,$(PIN)),--pin)

bench-check: tool ## is it slower than the last commit, or BASE=revision? Ten figures, in turns; two minutes
	@scripts/setup check
	@scripts/bench-check '$(BUILD)'

install: ## install below PREFIX (/usr/local), staged in DESTDIR
	@scripts/setup build
	@cmake -S . -B $(BUILD)/install -G Ninja -DROPHIVE_TESTS=OFF -DCMAKE_INSTALL_PREFIX='$(PREFIX)' --log-level=NOTICE
	@cmake --build $(BUILD)/install
	@DESTDIR='$(DESTDIR)' cmake --install $(BUILD)/install

format: ## lay out all C files with clang-format
	@scripts/setup format
	@find src include tools bench tests examples -name '*.[ch]' 2>/dev/null | xargs -r clang-format-14 -i

check: ## only the rules that a machine can check
	@scripts/setup check
	@tools/check/check

clean: ## remove build/
	@rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

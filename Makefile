# core/, the helper, unit tests, fuzzers and tg-probe. The nginx module itself is
# built by scripts/build, which calls this for the rest.

OUT      ?= build
CC       ?= gcc
WARN     := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
            -Wvla -Wformat=2 -Werror
CSTD     := -std=gnu17
CFLAGS   ?= -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2
SAN      := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
LIBS     := -ljansson -lcrypto -lpcre2-8
HLIBS    := -ljansson -lcrypto -lseccomp

CORE     := $(wildcard core/*.c)
CORE_H   := $(wildcard core/*.h)
UNIT     := $(wildcard t/unit/test_*.c)
FUZZ     := $(wildcard t/fuzz/fuzz_*.c)
PROBE    := $(wildcard t/probe/*.c)
BENCH    := $(wildcard scripts/bench.d/src/bench_*.c)
HELPER   := $(wildcard helper/*.c helper/*/*.c)
HELPER_H := $(wildcard helper/*.h helper/*/*.h)

core_o   := $(CORE:%.c=$(OUT)/%.o)
core_fuzz := $(CORE:%.c=$(OUT)/fuzz/%.o)
core_san := $(CORE:%.c=$(OUT)/san/%.o)
unit_bin := $(UNIT:t/unit/%.c=$(OUT)/unit/%)
fuzz_bin := $(FUZZ:t/fuzz/%.c=$(OUT)/fuzz/%)
probe_o  := $(PROBE:%.c=$(OUT)/%.o)
bench_bin := $(BENCH:scripts/bench.d/src/%.c=$(OUT)/bench/%)
helper_o := $(HELPER:%.c=$(OUT)/%.o)

.PHONY: all core unit fuzz probe helper bench clean
all: core probe helper
core: $(OUT)/libtg.a
unit: $(unit_bin)
fuzz: $(fuzz_bin)
probe: $(OUT)/tg-probe
bench: $(bench_bin)
helper: $(OUT)/toolgated

$(OUT)/libtg.a: $(core_o)
	@rm -f $@
	ar rcs $@ $^

$(OUT)/san/libtg.a: $(core_san)
	@rm -f $@
	ar rcs $@ $^

$(OUT)/san/%.o: %.c $(CORE_H)
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) $(SAN) -Icore -c $< -o $@

$(OUT)/%.o: %.c $(CORE_H) $(HELPER_H)
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) $(CFLAGS) -D_GNU_SOURCE -Icore -Ihelper -It/probe -c $< -o $@

# unit tests run with ASan and UBSan by default
$(OUT)/unit/%: t/unit/%.c $(wildcard t/unit/*.h) $(OUT)/san/libtg.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) $(SAN) -D_GNU_SOURCE -Icore -Ihelper -It/unit $< $(OUT)/san/libtg.a -o $@ -lcmocka $(LIBS) -lm

# these take the helper's pure parts in as source
$(OUT)/unit/test_helper $(OUT)/unit/test_helper_files: $(HELPER) $(HELPER_H)

# libFuzzer: core is compiled once, with coverage, for all of them
$(OUT)/fuzz/%.o: %.c $(CORE_H)
	@mkdir -p $(@D)
	clang $(CSTD) $(SAN) -fsanitize=fuzzer-no-link -Icore -c $< -o $@

$(OUT)/fuzz/libtg.a: $(core_fuzz)
	@rm -f $@
	ar rcs $@ $^

$(OUT)/fuzz/%: t/fuzz/%.c $(OUT)/fuzz/libtg.a
	@mkdir -p $(@D)
	clang $(CSTD) $(SAN) -fsanitize=fuzzer -D_GNU_SOURCE -Icore $< \
	    $(OUT)/fuzz/libtg.a -o $@ $(LIBS) -lm

# benches of core alone; those beside other servers have a Makefile of their own
$(OUT)/bench/bench_%: scripts/bench.d/src/bench_%.c scripts/bench.d/src/measure.h \
    $(CORE_H) $(OUT)/libtg.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(WARN) $(CFLAGS) -D_GNU_SOURCE -Icore $< $(OUT)/libtg.a -o $@ $(LIBS) -lm

$(OUT)/tg-probe: $(probe_o) $(OUT)/libtg.a
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS) -lm

$(OUT)/toolgated: $(helper_o) $(OUT)/libtg.a
	$(CC) $(CFLAGS) $^ -o $@ $(HLIBS) -lpcre2-8 -lm

# re-seals what the store holds under a new master key; see scripts/rotate-master-key
$(OUT)/tg-rekey: scripts/rekey.d/rekey.c $(CORE_H) $(OUT)/libtg.a
	$(CC) $(CSTD) $(WARN) $(CFLAGS) -D_GNU_SOURCE -Icore $< $(OUT)/libtg.a -o $@ -lhiredis $(LIBS) -lm

clean:
	rm -rf $(OUT)

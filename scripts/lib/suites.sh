# shellcheck shell=bash
# The suites of scripts/test: what each one runs, and how its tests are counted. A
# suite writes LOGS/<suite>.log, and its counts to LOGS/<suite>.result as
# "passed failed skipped seconds".
# Needs common.sh and LOGS, OUT, ASAN, PATTERN, FUZZ_SECONDS.

# longest time for one test program; a hanging one is a failed one
PROGRAM_SECONDS=900

# files of a suite, narrowed by PATTERN
tg_test_files()
{
    local f

    for f in "$@"; do
        [ -e "$f" ] || continue
        case ${f##*/} in
            *"$PATTERN"*) printf '%s\n' "$f" ;;
        esac
    done
}

# tg_count PASSED FAILED SKIPPED: adds to the suite that runs
tg_count()
{
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

# tg_sum FILE REGEX: the sum of the numbers that the regex catches
tg_sum()
{
    sed -nE "s/^$2\$/\\1/p" "$1" | awk '{ n += $1 } END { print n + 0 }'
}

# tg_program COUNTER NAME COMMAND...: runs one test program with its output in the
# log and counts by "tg_counts_COUNTER"; a bad exit without a failed test is a failure
tg_program()
{
    local counter=$1 name=$2 out code before=$failed before_all

    shift 2
    before_all=$((passed + failed + skipped))
    out=$LOGS/$suite.part
    printf '=== %s\n' "$name"
    timeout -k 10 "$PROGRAM_SECONDS" "$@" >"$out" 2>&1
    code=$?
    cat "$out"
    "tg_counts_$counter" "$out"
    if [ $code -ne 0 ] && [ "$failed" -eq "$before" ]; then
        printf 'not ok - %s ended with code %d\n' "$name" $code
        tg_count 0 1 0
    elif [ $((passed + failed + skipped)) -eq "$before_all" ]; then
        printf 'not ok - %s ran no test\n' "$name"
        tg_count 0 1 0
    fi
    rm -f "$out"
}

tg_counts_cmocka()
{
    tg_count "$(tg_sum "$1" '\[  PASSED  \] ([0-9]+) test\(s\)\.')" \
        "$(tg_sum "$1" '\[  FAILED  \] ([0-9]+) test\(s\).*')" \
        "$(tg_sum "$1" '\[  SKIPPED \] ([0-9]+) test\(s\).*')"
}

# node's own runner counts at its end
tg_counts_node()
{
    local p f c s

    p=$(tg_sum "$1" '[#ℹ] pass ([0-9]+)')
    f=$(tg_sum "$1" '[#ℹ] fail ([0-9]+)')
    c=$(tg_sum "$1" '[#ℹ] cancelled ([0-9]+)')
    s=$(tg_sum "$1" '[#ℹ] skipped ([0-9]+)')
    tg_count "$p" $((f + c)) "$s"
}

# TAP of prove -v and of our own small runners
tg_counts_tap()
{
    local skip

    skip=$(grep -cE '^ok .*# (skip|SKIP)' "$1")
    tg_count $(($(grep -c '^ok ' "$1") - skip)) "$(grep -c '^not ok ' "$1")" \
        "$skip"
}

# one line "ok" or "not ok" for the whole program
tg_counts_whole()
{
    tg_counts_tap "$1"
}

# tg_node_files [NAME=VALUE]... [-- ARGUMENT...]: each file on standard input by
# node's own runner
tg_node_files()
{
    local f settings=()

    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    [ $# -eq 0 ] || shift
    while read -r f; do
        tg_program node "$f" env "${settings[@]}" \
            node --test-reporter=tap "$f" "$@"
    done
}

suite_unit()
{
    local f

    if ! make -s -j2 OUT="$OUT" unit probe; then
        echo 'not ok - the unit tests do not build'
        tg_count 0 1 0
        return
    fi
    while read -r f; do
        # a binary whose source is gone is not a test
        [ -e "t/unit/${f##*/}.c" ] || continue
        ASAN_OPTIONS=detect_leaks=1 tg_program cmocka "${f##*/}" "$f"
    done < <(tg_test_files "$OUT"/unit/test_*)
    tg_node_files < <(tg_test_files t/probe/*.mjs)
}

suite_fuzz()
{
    local f name corpus

    if ! make -s -j2 OUT="$OUT" fuzz; then
        echo 'not ok - the fuzzers do not build'
        tg_count 0 1 0
        return
    fi
    while read -r f; do
        name=${f##*/}
        [ -e "t/fuzz/$name.c" ] || continue
        corpus=$OUT/fuzz-corpus/$name
        mkdir -p "$corpus" "$OUT/fuzz-found"
        tg_program whole "$name" bash -c '
            seeds=()
            [ ! -d "t/fuzz/corpus/$2" ] || seeds=("t/fuzz/corpus/$2")
            if "$1" -seed=1 -max_total_time="$4" -timeout=10 -rss_limit_mb=1024 \
                -max_len=65536 -print_final_stats=1 \
                -artifact_prefix="$5/$2-" "$3" "${seeds[@]}"
            then echo "ok $2: $4 seconds"
            else echo "not ok $2"; exit 1
            fi' fuzz "$f" "$name" "$corpus" "$FUZZ_SECONDS" "$OUT/fuzz-found"
    done < <(tg_test_files "$OUT"/fuzz/fuzz_*)
}

# the real Test::Nginx when it can be had; t/lib has a small one of our own
tg_get_test_nginx()
{
    perl -MTest::Nginx::Socket -e 1 2>/dev/null && return 0
    "$TG_REPO/scripts/lib/get-test-nginx" >"$LOGS/get-test-nginx.log" 2>&1 \
        && perl -MTest::Nginx::Socket -e 1 2>/dev/null
}

# tg_prove HARNESS FILE...: in a network of its own where that can be made, since
# Test::Nginx listens on all addresses
tg_prove()
{
    local harness=$1 own_net=() binary=/usr/sbin/nginx

    shift
    [ $ASAN -eq 0 ] || binary=$OUT/nginx
    if unshare -n true 2>/dev/null; then
        own_net=(unshare -n sh -c 'ip link set lo up && exec "$@"' own-net)
    fi
    # a configuration that is refused ends nginx without freeing what it read
    tg_program tap "prove ($harness)" "${own_net[@]}" env \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" \
        TOOLGATE_HARNESS="$harness" \
        TEST_NGINX_BINARY="$binary" \
        TEST_NGINX_LOAD_MODULES="$OUT/ngx_http_toolgate_module.so" \
        TEST_NGINX_SERVROOT="$OUT/servroot-$harness" \
        prove -v -It/lib "$@"
    # the harness keeps the folder of what failed
    if [ $ASAN -eq 1 ]; then
        grep -hE -A 25 'Sanitizer|runtime error' \
            "$OUT/servroot-$harness/logs/error.log" 2>/dev/null
    fi
}

suite_t()
{
    local files

    mapfile -t files < <(tg_test_files t/*.t)
    if [ ${#files[@]} -gt 0 ]; then
        if tg_get_test_nginx; then
            tg_prove real "${files[@]}"
            # so that the two harnesses cannot drift apart
            tg_prove own t/000-harness.t
        else
            echo '# the real Test::Nginx cannot be had: t/lib/fallback is used'
            tg_prove own "${files[@]}"
        fi
    fi
    if [ $ASAN -eq 0 ]; then
        tg_node_files < <(tg_test_files t/outbound/run.mjs t/store/run.mjs \
            t/netguard/netguard.test.mjs t/module/*.test.mjs)
        return
    fi
    # these two put a sanitized module of their own into the stock nginx
    tg_node_files TG_ASAN=1 < <(tg_test_files t/outbound/run.mjs)
    tg_node_files -- --asan < <(tg_test_files t/store/run.mjs)
    tg_node_files NGINX="$OUT/nginx" \
        < <(tg_test_files t/netguard/netguard.test.mjs t/module/*.test.mjs)
}

suite_helper()
{
    tg_node_files < <(tg_test_files t/helper/run.mjs t/helper/*.test.mjs)
}

tg_install_npm()
{
    mkdir -p build/npm
    if ! cmp -s t/e2e/package.json build/npm/package.json \
        || [ ! -e build/npm/.installed ]
    then
        rm -f build/npm/.installed
        cp t/e2e/package.json build/npm/
        (cd build/npm && timeout 300 npm install --no-package-lock --no-audit \
            --no-fund --ignore-scripts --loglevel=error) || return 1
        touch build/npm/.installed
    fi
}

suite_e2e()
{
    tg_node_files < <(tg_test_files t/lib/*.test.mjs)
    if ! tg_install_npm; then
        echo 'not ok - the npm packages of t/e2e cannot be installed'
        tg_count 0 1 0
        return
    fi
    tg_node_files < <(tg_test_files t/e2e/*.test.mjs)
}

suite_fault()
{
    tg_node_files < <(tg_test_files t/fault/*.test.mjs)
}

suite_soak()
{
    PROGRAM_SECONDS=86400
    tg_node_files < <(tg_test_files t/soak/*.test.mjs)
}

suite_codes()
{
    tg_program tap codes node t/tree/codes.mjs
}

suite_audit()
{
    tg_program tap audit node t/tree/audit.mjs
}

run_suite()
{
    local suite=$1 passed=0 failed=0 skipped=0 start=$SECONDS

    "suite_$suite" >"$LOGS/$suite.log" 2>&1
    printf '%d %d %d %d\n' "$passed" "$failed" "$skipped" \
        $((SECONDS - start)) >"$LOGS/$suite.result"
    printf '%-8s %s\n' "$suite" "$passed passed, $failed failed, $skipped skipped" >&2
}

# a log whole when it is short; else what failed, with what stands around it
tg_show_suite_log()
{
    local log=$1

    printf '\n--- %s\n' "$log"
    if [ "$(wc -l <"$log")" -le 300 ]; then
        cat "$log"
    else
        grep -nE -B 3 -A 30 '^ *not ok|\[  FAILED  \]|ERROR: .*Sanitizer|runtime error' \
            "$log" | head -n 400
        printf '... the end:\n'
        tail -n 60 "$log"
    fi
}

# report SUITE...: logs of what failed, reasons of skips, the table, the last line
report()
{
    local s p f k t total_p=0 total_f=0 total_s=0 table=''

    for s in "$@"; do
        p=0 f=1 k=0 t=0
        [ ! -e "$LOGS/$s.result" ] || read -r p f k t <"$LOGS/$s.result"
        table+=$(printf '%-8s %7d %7d %7d %6ds' "$s" "$p" "$f" "$k" "$t")$'\n'
        total_p=$((total_p + p))
        total_f=$((total_f + f))
        total_s=$((total_s + k))
        [ "$f" -eq 0 ] || tg_show_suite_log "$LOGS/$s.log"
    done
    if [ "$total_s" -gt 0 ]; then
        printf '\nskipped:\n'
        for s in "$@"; do
            grep -hE '# SKIP|\[  SKIPPED \] [^0-9]|^skip' "$LOGS/$s.log" \
                | sed "s/^ */  $s: /" | sort | uniq -c | sort -rn | head -n 40
        done
    fi
    printf '\n%-8s %7s %7s %7s %7s\n%s\n' suite passed failed skipped time "$table"
    printf '%d passed, %d failed, %d skipped\n' "$total_p" "$total_f" "$total_s"
    [ "$total_f" -eq 0 ] && [ "$total_p" -gt 0 ]
}

# shellcheck shell=bash
# The processes of one state folder: Redis, the helper, nginx. Starts, watches and
# ends them. What was started is written down as "name pid start-time", so that a
# pid that the kernel gave to somebody else later is never touched.
# Needs common.sh and the variables STATE, RUN, NGINX_BIN, BUILD, WEB_GROUP.

# start time of a process in clock ticks; fails when it is gone or a zombie
tg_start_time()
{
    local stat

    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # the command may hold blanks and brackets: cut after the last bracket
    stat=${stat##*) }
    # shellcheck disable=SC2086
    set -- $stat
    [ "$1" != Z ] || return 1
    printf '%s\n' "${20}"
}

tg_note_process()
{
    printf '%s %s %s\n' "$1" "$2" "$(tg_start_time "$2")" >>"$STATE/processes"
}

# nginx processes of the noted master's session: its workers, also when the master
# is gone, and a younger master after an upgrade of the binary
tg_nginx_members()
{
    local member

    for member in $(pgrep -s "$1" -x nginx 2>/dev/null); do
        ! tg_start_time "$member" >/dev/null || printf '%s\n' "$member"
    done
}

# prints "name pid" of each noted process that lives
tg_live_processes()
{
    local name pid start member

    [ -e "$STATE/processes" ] || return 0
    while read -r name pid start; do
        if [ "$name" = nginx ]; then
            member=$(tg_nginx_members "$pid" | head -n 1)
            [ -z "$member" ] || printf 'nginx %s\n' "$member"
        elif [ -n "$start" ] && [ "$(tg_start_time "$pid")" = "$start" ]; then
            printf '%s %s\n' "$name" "$pid"
        fi
    done <"$STATE/processes"
}

# tg_wait_for SECONDS COMMAND...: until the command succeeds
tg_wait_for()
{
    local seconds=$1 n

    shift
    for ((n = 0; n < seconds * 20; n++)); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

# tg_spawn LOG COMMAND...: a daemon in a session of its own, without terminal
# and without the lock; its pid is left in SPAWNED
tg_spawn()
{
    local log=$1

    shift
    setsid "$@" </dev/null >>"$log" 2>&1 9>&- &
    SPAWNED=$!
    disown "$SPAWNED"
}

tg_show_log()
{
    [ -s "$1" ] || return 0
    tg_say "last lines of $1:"
    tail -n "${2:-15}" "$1" >&2
}

# tg_fail_start LOG MESSAGE: a part did not come up; nothing is left running
tg_fail_start()
{
    tg_show_log "$1"
    tg_stop_all
    tg_die "$2"
}

tg_redis_settled()
{
    ! tg_start_time "$1" >/dev/null \
        || [ "$(redis-cli -s "$RUN/redis/redis.sock" ping 2>/dev/null)" = PONG ]
}

tg_start_redis()
{
    local as=()

    if [ "$(id -u)" -eq 0 ]; then
        # the group is what lets the workers use the socket
        as=(setpriv --regid "$WEB_GROUP" --clear-groups --)
        if [ "$RUN" = "$STATE/run" ] && id redis >/dev/null 2>&1; then
            as=(setpriv --reuid redis "${as[@]:1}")
            chown "redis:$WEB_GROUP" "$RUN/redis"
            chown -R redis "$STATE/redis"
        fi
    fi
    rm -f "$RUN/redis/redis.sock"
    tg_spawn "$STATE/logs/redis.log" "${as[@]}" redis-server \
        "$STATE/redis/redis.conf"
    tg_note_process redis "$SPAWNED"
    printf '%s\n' "$SPAWNED" >"$STATE/redis.pid"

    # loading a long append-only file takes its time
    tg_wait_for 60 tg_redis_settled "$SPAWNED"
    tg_start_time "$SPAWNED" >/dev/null \
        || tg_fail_start "$STATE/logs/redis.log" "Redis did not start"
}

# it binds its socket at once, and listens when its self-test is over
tg_helper_listens()
{
    awk -v path="$RUN/helper.sock" \
        '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' \
        /proc/net/unix
}

tg_helper_settled()
{
    tg_helper_listens || ! tg_start_time "$1" >/dev/null
}

tg_start_helper()
{
    rm -f "$RUN/helper.sock"
    tg_spawn "$STATE/logs/helper.log" "$BUILD/toolgated" \
        -c "$STATE/conf/toolgated.conf"
    tg_note_process helper "$SPAWNED"
    printf '%s\n' "$SPAWNED" >"$STATE/helper.pid"

    tg_wait_for 30 tg_helper_settled "$SPAWNED"
    tg_helper_listens \
        || tg_fail_start "$STATE/logs/helper.log" "the helper did not start"
}

tg_nginx()
{
    "$NGINX_BIN" -p "$STATE/" -e "$STATE/logs/error.log" \
        -c "$STATE/conf/nginx.conf" "$@"
}

# a test of the configuration ends without freeing what it read, which is not a leak
tg_nginx_test()
{
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 tg_nginx -q -t
}

tg_answers()
{
    curl -fsS -o /dev/null --noproxy '*' --max-time 2 "$1/healthz" 2>/dev/null
}

tg_start_nginx()
{
    local url=$1 pid

    # a killed nginx leaves its sockets, and they are in the way of the next one
    rm -f "$STATE/nginx.pid" "$RUN/demo-model.sock" "$RUN/runs.sock"
    tg_nginx </dev/null >>"$STATE/logs/nginx-start.log" 2>&1 9>&- \
        || tg_fail_start "$STATE/logs/nginx-start.log" "nginx did not start"
    tg_wait_for 10 test -s "$STATE/nginx.pid" \
        || tg_fail_start "$STATE/logs/error.log" "nginx did not start"
    pid=$(cat "$STATE/nginx.pid")
    tg_note_process nginx "$pid"

    tg_wait_for 30 tg_answers "$url" \
        || tg_fail_start "$STATE/logs/error.log" "nginx does not answer at $url"
}

tg_gone()
{
    ! tg_start_time "$1" >/dev/null
}

# tg_end_one NAME PID SECONDS: politely first
tg_end_one()
{
    kill -TERM "$2" 2>/dev/null || true
    tg_wait_for "$3" tg_gone "$2" && return 0
    tg_say "$1 ($2) does not end, killing it"
    kill -KILL "$2" 2>/dev/null || true
    tg_wait_for 5 tg_gone "$2" || true
}

# tg_end NAME SECONDS: ends the noted processes of that name
tg_end()
{
    local name pid start member

    [ -e "$STATE/processes" ] || return 0
    while read -r name pid start; do
        [ "$name" = "$1" ] || continue
        if [ "$name" != nginx ]; then
            if [ -n "$start" ] && [ "$(tg_start_time "$pid")" = "$start" ]; then
                tg_end_one "$name" "$pid" "$2"
            fi
            continue
        fi
        # a master takes its workers along; a graceful end, which waits for every
        # connection that has not asked for anything yet, only when it is wanted
        for member in $(tg_nginx_members "$pid"); do
            grep -qa '^nginx: master' "/proc/$member/cmdline" 2>/dev/null \
                || continue
            if [ "${TOOLGATE_QUIT_SECONDS:-0}" -gt 0 ]; then
                kill -QUIT "$member" 2>/dev/null || true
                tg_wait_for "$TOOLGATE_QUIT_SECONDS" tg_gone "$member" || true
            fi
            tg_end_one nginx "$member" "$2"
        done
        for member in $(tg_nginx_members "$pid"); do
            tg_end_one "an nginx worker" "$member" 1
        done
    done <"$STATE/processes"
}

tg_stop_all()
{
    tg_end nginx 10
    tg_end helper 30
    tg_end redis 10

    [ -z "$(tg_live_processes)" ] || return 1
    rm -f "$STATE/processes" "$STATE/nginx.pid" "$STATE/helper.pid" \
        "$STATE/redis.pid" "$RUN"/*.sock "$RUN/redis/redis.sock"
}

tg_worker_pids()
{
    pgrep -P "$1" 2>/dev/null | sort -n | tr '\n' ' ' || true
}

# new workers have been started that were not there before
tg_workers_renewed()
{
    local p

    for p in $(tg_worker_pids "$1"); do
        case " $2 " in
            *" $p "*) ;;
            *) return 0 ;;
        esac
    done
    return 1
}

# none of the workers that were there before takes new requests any more
tg_workers_leaving()
{
    local p

    for p in $1; do
        ! grep -qa '^nginx: worker process' "/proc/$p/cmdline" 2>/dev/null \
            || grep -qa 'is shutting down' "/proc/$p/cmdline" 2>/dev/null \
            || return 1
    done
}

# a bad configuration keeps the old one in force and is an error
tg_reload()
{
    local before pid

    pid=$(cat "$STATE/nginx.pid" 2>/dev/null) || pid=
    if [ -z "$pid" ] || ! tg_start_time "$pid" >/dev/null; then
        tg_die "nothing runs on $STATE"
    fi
    tg_nginx_test || tg_die "the configuration has errors, the old one stays"
    before=$(tg_worker_pids "$pid")
    kill -HUP "$pid"
    tg_wait_for 10 tg_workers_renewed "$pid" "$before" \
        || { tg_show_log "$STATE/logs/error.log"
             tg_die "the new configuration was not taken, the old one stays"; }
    # so that whoever asks next is answered by the new one
    tg_wait_for 10 tg_workers_leaving "$before" || true
}

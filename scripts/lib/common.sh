# shellcheck shell=bash
# shellcheck disable=SC2034,SC2016
# Shared by the scripts of this folder: messages, root rights, Debian packages.
# Sourced, never run. It knows nothing of what is built or started.

TG_REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TG_PROG=${0##*/}

# what the module and the helper are built with, and what a run needs
TG_BUILD_PACKAGES=(gcc make libc6-dev nginx nginx-dev libcurl4-openssl-dev
    libhiredis-dev libjansson-dev libssl-dev libpcre2-dev zlib1g-dev
    libseccomp-dev)
TG_RUN_PACKAGES=(nginx libnginx-mod-http-js redis-server ca-certificates curl
    procps tzdata util-linux)
TG_TEST_PACKAGES=(libcmocka-dev openssl perl clang libclang-rt-dev iproute2 ripgrep)

tg_say()
{
    printf '%s: %s\n' "$TG_PROG" "$*" >&2
}

tg_die()
{
    tg_say "$*"
    exit 1
}

# runs a command with root rights: as it is for root, else through sudo
tg_as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo -- "$@"
    else
        tg_die "root rights are needed for '$1': run as root, or install sudo"
    fi
}

tg_missing_packages()
{
    local p

    for p in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null) in
            i*) ;;
            *) printf '%s\n' "$p" ;;
        esac
    done
}

# The part of an installation that runs as root. Debian's nginx and redis-server
# start themselves when they are installed; policy-rc.d is the way to say no. A
# file that was there before is put back, also when apt-get fails; one of ours
# that a killed run left behind is recognised by its second line.
TG_GUARDED_INSTALL='
set -eu
guard=${TG_POLICY_FILE:-/usr/sbin/policy-rc.d}
mark="# temporary: written by the toolgate scripts"
lock=/run/toolgate-apt.lock
[ -z "${TG_POLICY_FILE:-}" ] || lock=$TG_POLICY_FILE.lock
exec 9>"$lock"
flock 9
restore()
{
    if [ -e "$guard.toolgate-saved" ]; then
        mv -f "$guard.toolgate-saved" "$guard"
    elif [ "$(sed -n 2p "$guard" 2>/dev/null)" = "$mark" ]; then
        rm -f "$guard"
    fi
}
restore
trap restore EXIT
trap "exit 130" INT TERM HUP
[ ! -e "$guard" ] || mv "$guard" "$guard.toolgate-saved"
printf "#!/bin/sh\n%s\nexit 101\n" "$mark" >"$guard"
chmod 755 "$guard"
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends "$@" 9>&- </dev/null && exit 0
apt-get update 9>&- </dev/null
apt-get install -y --no-install-recommends "$@" 9>&- </dev/null
'

# tg_need_packages NAME...: installs those that are missing, starts no service
tg_need_packages()
{
    local log missing

    mapfile -t missing < <(tg_missing_packages "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        return 0
    fi

    command -v apt-get >/dev/null 2>&1 \
        || tg_die "these Debian packages are missing, and there is no apt-get" \
                  "to install them: ${missing[*]}"

    tg_say "installing Debian packages: ${missing[*]}"
    log=$(mktemp)
    if ! tg_as_root bash -c "$TG_GUARDED_INSTALL" tg-install "${missing[@]}" \
        >"$log" 2>&1
    then
        cat "$log" >&2
        rm -f "$log"
        tg_die "apt-get could not install: ${missing[*]}"
    fi
    rm -f "$log"
}

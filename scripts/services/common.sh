# Sourced by kafka.sh, mariadb.sh, mysql.sh and s3.sh; not a program of its own.
#
# A script sets NAME and DIR through `service NAME`, defines
#   install     put the software in place; does nothing when it is there
#   launch      write the configuration, then call `spawn COMMAND...` once
#   is_ready    succeed once the server answers
#   after_start (optional) create databases, buckets ...; must be repeatable
#   show        print how to reach the server, as lines that `eval` accepts
# and ends with `main "$@"`. Several servers of one kind can run side by side, as *instances* (SERVICES_INSTANCE,
# "default" without it), so that a test may kill its own. Layout of $SERVICES_DIR:
#   pkg/NAME             what was downloaded, for all instances; kept by reset and drop
#   run/INSTANCE/NAME    one server:
#     data/   what it stores; dropped by reset
#     conf/   generated configuration, written anew by each start
#     port    its ports, chosen free at the first start and kept from then on
#     pid, server.log (server.log.1: the run before)

set -euo pipefail
export LC_ALL=C "PATH=$PATH:/usr/sbin:/sbin"
SERVICES_DIR=${SERVICES_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tidegate-services}
SERVICES_INSTANCE=${SERVICES_INSTANCE:-default}

say() { echo "$NAME: $*" >&2; }
die() { say "$*"; exit 1; }

service() {
    NAME=$1 DIR=$SERVICES_DIR/run/$SERVICES_INSTANCE/$1 PKG=$SERVICES_DIR/pkg/$1
    # Beside a `drop` of the instance's last server its folder may go between two steps of mkdir.
    local tries=0
    until mkdir -p "$PKG" "$DIR/data" "$DIR/conf" 2>/dev/null; do
        if ((++tries > 20)); then mkdir -p "$PKG" "$DIR/data" "$DIR/conf"; fi      # says why, and ends the script
    done
    DIR=$(cd "$DIR" && pwd) PKG=$(cd "$PKG" && pwd)            # absolute
}

# ports COUNT: sets PORT to the first of COUNT neighbouring free ports of 127.0.0.1, the same at every start. They are
# kept while the data is: what the server has written about itself may name them.
ports() {
    local i tries=0
    while :; do
        ((++tries <= 200)) || die "cannot write $DIR/port"
        if read -r PORT 2>/dev/null <"$DIR/port"; then return; fi
        PORT=$((20000 + (RANDOM % 2500) * 4))
        for ((i = 0; i < $1; i++)); do port_free $((PORT + i)) || continue 2; done
        # Of several first starts at the same time one chooses, and the others take its choice.
        if (set -C; echo "$PORT" >"$DIR/port") 2>/dev/null; then return; fi
        sleep 0.05
    done
}

# apt_need PROGRAM PACKAGE...: install the packages when the program is missing.
apt_need() {
    command -v "$1" >/dev/null && return
    shift
    say "installing $*"
    { apt-get install -y -q --no-install-recommends "$@" ||
      { apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; }; } \
        >"$DIR/apt.log" 2>&1 </dev/null || die "apt-get failed, see $DIR/apt.log"
}

# The pid of the running server. A zombie, or a pid that another program has
# since taken, is not our server: the start time must match as well.
server_pid() {
    local pid start now
    read -r pid start 2>/dev/null <"$DIR/pid" || return 1
    now=$(start_time "$pid") && [ "$now" = "$start" ] && echo "$pid"
}
start_time() {   # of a process, in clock ticks since boot; fails once it has ended
    local stat; stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -- ${stat##*) }                            # state $1, threads ${18}, start time ${20}
    # a zombie with other threads still holds its ports and files
    { [ "$1" != Z ] || [ "${18}" -gt 1 ]; } && echo "${20}"
}

# Start a daemon in a session of its own, detached from our lock and terminal.
spawn() {
    [ ! -f "$DIR/server.log" ] || mv -f "$DIR/server.log" "$DIR/server.log.1"
    setsid "$@" >"$DIR/server.log" 2>&1 </dev/null 9>&- &
    echo "$! $(start_time $!)" >"$DIR/pid"
}

# as_mysql env|spawn COMMAND...: as root, drop to user mysql. The capability lets
# it pass through folders such as /root, where the default SERVICES_DIR lies; it
# gives no right to write.
as_mysql() {
    local run=$1 caps="--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"; shift
    if [ "$(id -u)" = 0 ]; then
        setpriv $caps true 2>/dev/null || caps=
        set -- setpriv --reuid=mysql --regid=mysql --init-groups $caps "$@"
    fi
    "$run" "$@"
}

port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
need_ports() { local p; for p; do port_free "$p" || die "port $p is taken by another process"; done; }

wait_ready() {
    local end=$((SECONDS + ${START_TIMEOUT:-90}))
    until is_ready 2>/dev/null; do
        server_pid >/dev/null || { tail -n 20 "$DIR/server.log" >&2; die "the server died"; }
        [ $SECONDS -lt $end ] || { tail -n 20 "$DIR/server.log" >&2; end KILL 10; die "not ready in time"; }
        sleep 0.1
    done
}

# reason FILE: why a tool failed, by the end of its log. What mariadb-install-db says after its reason (manuals, mailing lists, how to
# report a bug) would cover it.
reason() {
    local said; said=$(sed '/^Installation of system tables failed/,$d' "$1" | grep -v '^[[:space:]]*$' | tail -n 20) || :
    [ -n "$said" ] || said=$(tail -n 20 "$1")
    echo "$said" >&2
}

after_start() { :; }

start() {
    if server_pid >/dev/null; then wait_ready; after_start; show; return; fi
    install_once
    launch
    wait_ready
    after_start
    show
}

# end SIGNAL SECONDS: signal the server and wait; fails when it is still there.
end() {
    local pid i; pid=$(server_pid) || { rm -f "$DIR/pid"; return 0; }
    kill -CONT "$pid" 2>/dev/null || :             # a paused server can't obey TERM
    kill "-$1" "$pid" 2>/dev/null || :
    for ((i = 0; i < $2 * 20; i++)); do
        server_pid >/dev/null || { rm -f "$DIR/pid"; return 0; }
        sleep 0.05
    done
    return 1
}
stop() { end TERM 30 || { say "ignored TERM, killing"; end KILL 10; }; }

# Verbs that change the server hold a lock, so two tests may start it at once.
locked() { exec 9>"$DIR/lock"; flock 9; "$@"; }
# What is downloaded is shared by all instances.
install_once() ( exec 8>"$PKG/lock"; flock 8; install 9>&- )

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

main() {
    local verb=${1:-help}; shift || :
    case $verb in
        start)   locked start ;;
        stop)    locked stop ;;
        kill)    locked end KILL 10 ;;             # a crash: no shutdown code runs
        pause)   kill -STOP "$(server_pid || die 'not running')" ;;
        resume)  kill -CONT "$(server_pid || die 'not running')" ;;
        restart) locked stop; start ;;
        reset)   locked stop; rm -rf "$DIR/data" "$DIR/conf"; mkdir -p "$DIR/data" "$DIR/conf" ;;
        drop)    locked stop; rm -rf "$DIR"; rmdir "${DIR%/*}" 2>/dev/null || : ;;   # the last one takes its instance along
        install) install_once ;;
        env)     show ;;
        status)  if pid=$(server_pid); then
                     echo "$NAME: running, pid $pid, $(awk '/^VmRSS/{print int($2/1024)}' "/proc/$pid/status") MiB"
                 else echo "$NAME: stopped"; return 3; fi ;;
        help|-h|--help) usage ;;
        *)       if declare -F "do_$verb" >/dev/null; then "do_$verb" "$@"; else usage; exit 2; fi ;;
    esac
}

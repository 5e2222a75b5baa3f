#!/usr/bin/env bash
# A real Oracle MySQL server for tests, on 127.0.0.1. Debian 12 has none, so its
# programs and every library they need come from Debian sid, unpacked in a folder
# of their own and started through sid's own loader: the system stays untouched.
# sid holds one version at a time (9.7.4 when this was written); see `version`.
#
#   mysql.sh start | stop | kill | restart | pause | resume | status | reset | drop | env
#   mysql.sh sql [OPTIONS]     the client as user tidegate, e.g. sql -e 'XA RECOVER'
#   mysql.sh root [OPTIONS]    the client as root, through the socket
#   mysql.sh version           what was unpacked
#
# start creates the database `tidegate` and the user `tidegate`, password `tidegate`
# (caching_sha2_password: MySQL 9 has no mysql_native_password).
# kill is kill -9; reset stops the server and drops its data.
# Environment: SERVICES_DIR, SERVICES_INSTANCE, MYSQL8_PORT (chosen free), MYSQL8_OPTS (more server options).

. "$(dirname "$(readlink -f "$0")")/common.sh"
service mysql

PORT=${MYSQL8_PORT:-}
[ -n "$PORT" ] || ports 1
SOCKET=$DIR/conf/sock
unset MYSQL_HOST MYSQL_PWD                 # the clients would obey them
[ ${#SOCKET} -le 107 ] || SOCKET=/tmp/tidegate-mysql-$PORT.sock     # limit of unix sockets
ROOT=$PKG/root

install() {
    id mysql >/dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin mysql
    [ -e "$ROOT/.complete" ] && return
    say "fetching MySQL from Debian sid"
    local apt=$PKG/apt deb mirror
    rm -rf "$apt" "$ROOT"; mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$ROOT"
    # apt with a state of its own, in which nothing is installed: it then
    # downloads the whole closure, down to libc
    : >"$apt/status"
    # sid from the mirror that this machine's own apt is set up with
    mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/\?$') || die "apt has no Debian mirror set up"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
CONF
    { APT_CONFIG=$apt/apt.conf apt-get update -q &&
      APT_CONFIG=$apt/apt.conf apt-get install -q -y --download-only --no-install-recommends \
          mysql-server-core mysql-client-core; } >"$DIR/apt.log" 2>&1 </dev/null ||
        die "apt-get failed, see $DIR/apt.log"
    for deb in "$apt"/cache/archives/*.deb; do
        case $deb in *perl*) ;; *) dpkg -x "$deb" "$ROOT" ;; esac     # scripts we don't run
    done
    (cd "$apt/cache/archives" && echo mysql-server-core_*.deb) >"$ROOT/.complete"
    rm -rf "$apt"
}

# Run one of the unpacked programs with sid's loader and libraries.
PROGRAM=("$ROOT/usr/lib64/ld-linux-x86-64.so.2" --library-path "$ROOT/usr/lib/x86_64-linux-gnu")

launch() {
    need_ports "$PORT"
    cat >"$DIR/conf/my.cnf" <<CONF
[mysqld]
basedir=$ROOT/usr
lc-messages-dir=$ROOT/usr/share/mysql
character-sets-dir=$ROOT/usr/share/mysql/charsets
plugin-dir=$ROOT/usr/lib/mysql/plugin
datadir=$DIR/data
tmpdir=$DIR/conf
socket=$SOCKET
pid-file=$DIR/conf/mysqld.pid
secure-file-priv=NULL
port=$PORT
bind-address=127.0.0.1
mysqlx=OFF
skip-name-resolve
disable-log-bin
# each commit and each XA PREPARE reaches the disk, as in production
innodb_flush_log_at_trx_commit=1
# small: a test server shares its machine
innodb_buffer_pool_size=64M
innodb_redo_log_capacity=64M
performance_schema=OFF
max_connections=200
CONF
    rm -f "$SOCKET" "$SOCKET.lock"
    [ "$(id -u)" != 0 ] || chown -R mysql: "$DIR/data" "$DIR/conf"
    if [ ! -d "$DIR/data/mysql" ]; then
        rm -rf "$DIR/data.new"; mkdir "$DIR/data.new"
        [ "$(id -u)" != 0 ] || chown mysql: "$DIR/data.new"
        as_mysql env "${PROGRAM[@]}" "$ROOT/usr/sbin/mysqld" --defaults-file="$DIR/conf/my.cnf" \
            --datadir="$DIR/data.new" --initialize-insecure >"$DIR/install-db.log" 2>&1 ||
            { reason "$DIR/install-db.log"; die "could not create the data directory"; }
        rm -rf "$DIR/data"; mv "$DIR/data.new" "$DIR/data"     # all or nothing
    fi
    as_mysql spawn "${PROGRAM[@]}" "$ROOT/usr/sbin/mysqld" --defaults-file="$DIR/conf/my.cnf" ${MYSQL8_OPTS:-}
}

client() {
    "${PROGRAM[@]}" "$ROOT/usr/bin/mysql" --no-defaults --character-sets-dir="$ROOT/usr/share/mysql/charsets" "$@"
}
do_root() { client --socket="$SOCKET" -u root "$@"; }
do_sql() { MYSQL_PWD=tidegate client -h 127.0.0.1 -P "$PORT" -u tidegate "$@" tidegate; }
do_version() { cat "$ROOT/.complete"; }

is_ready() { do_root -e 'SELECT 1' >/dev/null 2>&1; }

# PROCESS and CONNECTION_ADMIN: to look at and KILL other connections.
after_start() {
    do_root <<'SQL'
CREATE DATABASE IF NOT EXISTS tidegate;
CREATE USER IF NOT EXISTS tidegate@'%' IDENTIFIED BY 'tidegate';
GRANT ALL ON tidegate.* TO tidegate@'%';
GRANT ALL ON `tidegate\_%`.* TO tidegate@'%';
GRANT PROCESS, CONNECTION_ADMIN, XA_RECOVER_ADMIN ON *.* TO tidegate@'%';
SQL
}

show() {
    echo "export MYSQL8_URL=mysql://tidegate:tidegate@127.0.0.1:$PORT/tidegate MYSQL8_SOCKET='$SOCKET'"
}

main "$@"

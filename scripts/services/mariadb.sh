#!/usr/bin/env bash
# A real MariaDB server for tests, from Debian's packages, on 127.0.0.1.
#
#   mariadb.sh start | stop | kill | restart | pause | resume | status | reset | drop | env
#   mariadb.sh sql [OPTIONS]     the client as user tidegate, e.g. sql -e 'XA RECOVER'
#   mariadb.sh root [OPTIONS]    the client as root, through the socket
#
# start creates the database `tidegate` and the user `tidegate`, password `tidegate`.
# kill is kill -9; reset stops the server and drops its data.
# Environment: SERVICES_DIR, SERVICES_INSTANCE, MYSQL_PORT (chosen free), MYSQL_OPTS (more server options).

. "$(dirname "$(readlink -f "$0")")/common.sh"
service mariadb

PORT=${MYSQL_PORT:-}
[ -n "$PORT" ] || ports 1
SOCKET=$DIR/conf/sock
unset MYSQL_HOST MYSQL_PWD                 # the clients would obey them
[ ${#SOCKET} -le 107 ] || SOCKET=/tmp/tidegate-mariadb-$PORT.sock     # limit of unix sockets

# The -core packages hold the programs without the system service, which the
# package mariadb-server would start.
install() {
    apt_need mariadbd mariadb-server-core
    apt_need mariadb mariadb-client-core
    id mysql >/dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin mysql
}

launch() {
    need_ports "$PORT"
    cat >"$DIR/conf/my.cnf" <<CONF
[mysqld]
datadir=$DIR/data
socket=$SOCKET
pid-file=$DIR/conf/mariadbd.pid
port=$PORT
bind-address=127.0.0.1
skip-name-resolve
skip-log-bin
character-set-server=utf8mb4
# each commit and each XA PREPARE reaches the disk, as in production
innodb_flush_log_at_trx_commit=1
# small: a test server shares its machine
innodb_buffer_pool_size=64M
innodb_log_file_size=48M
key_buffer_size=1M
aria_pagecache_buffer_size=8M
max_connections=200
CONF
    rm -f "$SOCKET"
    [ "$(id -u)" != 0 ] || chown -R mysql: "$DIR/data" "$DIR/conf"
    if [ ! -d "$DIR/data/mysql" ]; then
        rm -rf "$DIR/data.new"; mkdir "$DIR/data.new"
        [ "$(id -u)" != 0 ] || chown mysql: "$DIR/data.new"
        as_mysql env mariadb-install-db --no-defaults --datadir="$DIR/data.new" \
            --auth-root-authentication-method=normal --skip-test-db >"$DIR/install-db.log" 2>&1 ||
            { reason "$DIR/install-db.log"; die "could not create the data directory"; }
        rm -rf "$DIR/data"; mv "$DIR/data.new" "$DIR/data"     # all or nothing
    fi
    as_mysql spawn mariadbd --defaults-file="$DIR/conf/my.cnf" ${MYSQL_OPTS:-}
}

do_root() { mariadb --no-defaults --socket="$SOCKET" -u root "$@"; }
do_sql() { mariadb --no-defaults -h 127.0.0.1 -P "$PORT" -u tidegate -ptidegate "$@" tidegate; }

is_ready() { do_root -e 'SELECT 1' >/dev/null 2>&1; }

# PROCESS and CONNECTION ADMIN: to look at and KILL other connections.
# XA RECOVER needs no privilege in MariaDB 10.11.
after_start() {
    do_root <<'SQL'
CREATE DATABASE IF NOT EXISTS tidegate;
CREATE USER IF NOT EXISTS tidegate@'%' IDENTIFIED BY 'tidegate';
GRANT ALL ON tidegate.* TO tidegate@'%';
GRANT ALL ON `tidegate\_%`.* TO tidegate@'%';
GRANT PROCESS, CONNECTION ADMIN ON *.* TO tidegate@'%';
SQL
}

show() {
    echo "export MYSQL_URL=mysql://tidegate:tidegate@127.0.0.1:$PORT/tidegate MYSQL_SOCKET='$SOCKET'"
}

main "$@"

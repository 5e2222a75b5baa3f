#!/usr/bin/env bash
# A real Apache Kafka broker for tests: one KRaft node on 127.0.0.1.
#
#   kafka.sh start | stop | kill | restart | pause | resume | status | reset | drop | env
#   kafka.sh topic NAME [PARTITIONS]     create a topic (no error if it exists)
#   kafka.sh produce TOPIC [OPTIONS]     console producer: a record for each input line
#   kafka.sh consume TOPIC [OPTIONS]     console consumer, read_committed, from the
#                                        start, ends after 5 s without a record
#   kafka.sh run CLASS [ARGS]            any tool, e.g. tools.TransactionsCommand
#
# kill is kill -9; reset stops the broker and drops its data.
# Environment: SERVICES_DIR, SERVICES_INSTANCE, KAFKA_PORT (chosen free), KAFKA_CONTROLLER_PORT (+1),
# KAFKA_VERSION, KAFKA_HEAP (512m), KAFKA_PROPS (more lines for server.properties),
# KAFKA_PROXY_PORT (+2) and KAFKA_PROXIED_PORT (+3): a second listener on the first,
# which tells clients to come to the second; a test's TCP proxy listens there and
# forwards to the first, so that all of a client's traffic takes the proxy.

. "$(dirname "$(readlink -f "$0")")/common.sh"
service kafka

VERSION=${KAFKA_VERSION:-4.4.0}
PORT=${KAFKA_PORT:-}
[ -n "$PORT" ] || ports 4
CONTROLLER_PORT=${KAFKA_CONTROLLER_PORT:-$((PORT + 1))}
PROXY_PORT=${KAFKA_PROXY_PORT:-$((PORT + 2))}
PROXIED_PORT=${KAFKA_PROXIED_PORT:-$((PORT + 3))}
LIB=$PKG/$VERSION
PROPS=$DIR/conf/server.properties

# The broker and its tools from Maven Central, with all that they depend on.
install() {
    apt_need java openjdk-17-jre-headless
    [ -e "$LIB/.complete" ] && return
    apt_need mvn maven
    say "fetching Kafka $VERSION from Maven Central"
    rm -rf "$LIB"; mkdir -p "$LIB"
    cat >"$LIB/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>test</groupId><artifactId>kafka</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$VERSION</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$VERSION</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.5</version></dependency>
  </dependencies>
</project>
XML
    mvn -q -B -f "$LIB/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$LIB" >"$DIR/mvn.log" 2>&1 || die "mvn failed, see $DIR/mvn.log"
    touch "$LIB/.complete"
}

java_run() {   # CLASS ARGS...: a tool, quiet but for errors
    java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$LIB/*" "$@"
}

launch() {
    need_ports "$PORT" "$CONTROLLER_PORT" "$PROXY_PORT"
    cat >"$DIR/conf/log4j2.properties" <<CONF
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c{1})%n
rootLogger.level=${KAFKA_LOG_LEVEL:-INFO}
rootLogger.appenderRef.out.ref=out
CONF
    cat >"$PROPS" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$CONTROLLER_PORT
listeners=PLAINTEXT://127.0.0.1:$PORT,PROXY://127.0.0.1:$PROXY_PORT,CONTROLLER://127.0.0.1:$CONTROLLER_PORT
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT,PROXY://127.0.0.1:$PROXIED_PORT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXY:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=$DIR/data
auto.create.topics.enable=false
# one node: everything has one replica, and few partitions keep the start short
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# tests wait less: groups form at once, timed-out transactions abort within 1 s,
# and after a kill -9 the controller lets the broker back in when its old session
# has ended (default 9 s; shorter, and a starved machine fences a live broker)
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
${KAFKA_PROPS:-}
CONF
    # the id is the base64 of 16 bytes, "tidegate-tests-1"
    [ -f "$DIR/data/meta.properties" ] || java_run kafka.tools.StorageTool format \
        --cluster-id dGlkZWdhdGUtdGVzdHMtMQ --config "$PROPS" >"$DIR/format.log" 2>&1 ||
        { cat "$DIR/format.log" >&2; die "could not format $DIR/data"; }
    # The first orderly stop leaves an archive of the loaded classes (and takes 4 s
    # for it); later starts read it and need 3 s of a core in place of 5.
    local cds=$LIB/classes.jsa
    [ -f "$cds" ] && cds=-XX:SharedArchiveFile=$cds || cds=-XX:ArchiveClassesAtExit=$cds
    spawn java "-Xmx${KAFKA_HEAP:-512m}" -Xms256m -XX:+ExitOnOutOfMemoryError "$cds" \
        -Dlog4j2.configurationFile="$DIR/conf/log4j2.properties" -cp "$LIB/*" kafka.Kafka "$PROPS"
}

is_ready() { grep -q 'Kafka Server started' "$DIR/server.log" && ! port_free "$PORT"; }

show() {
    echo "export KAFKA_BOOTSTRAP=127.0.0.1:$PORT"
    echo "export KAFKA_PROXY_TARGET=127.0.0.1:$PROXY_PORT KAFKA_PROXY_LISTEN=127.0.0.1:$PROXIED_PORT"
}

do_run() { local class=$1; shift; java_run "org.apache.kafka.$class" "$@"; }
do_topic() {
    do_run tools.TopicCommand --bootstrap-server "127.0.0.1:$PORT" --create --if-not-exists \
        --topic "$1" --partitions "${2:-1}" --replication-factor 1
}
do_produce() { local t=$1; shift; do_run tools.ConsoleProducer --bootstrap-server "127.0.0.1:$PORT" --topic "$t" "$@"; }
do_consume() {
    local t=$1; shift
    do_run tools.consumer.ConsoleConsumer --bootstrap-server "127.0.0.1:$PORT" --topic "$t" \
        --isolation-level read_committed --from-beginning --timeout-ms 5000 "$@"
}

main "$@"

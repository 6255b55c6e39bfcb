#!/usr/bin/env bash
# Puts the jars of Apache Kafka into the cache, for the interop tests that run its tools and its broker, and those of
# Kafka Streams beside them. Needs Maven.
set -euo pipefail

version=4.3.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/apache-kafka-$version

dependency() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }
logging=$(dependency org.apache.logging.log4j log4j-slf4j-impl 2.25.4)

fetch() {  # WHAT DIRECTORY JAR DEPENDENCIES: unless the jar is there already
    local libs=$cache/$2
    if [ -e "$libs/$3" ]; then
        echo "$1 $version is in $libs"
        return
    fi
    command -v mvn >/dev/null || { echo "mvn is missing: install Apache Maven to fetch $1 $version" >&2; return 2; }
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/fetching.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>moldau</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>$4</dependencies>
</project>
POM
    mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/libs"
    rm -rf "$libs"
    mv "$work/libs" "$libs"
    rm -rf "$work"
    echo "$1 $version: $(find "$libs" -name '*.jar' | wc -l) jars in $libs"
}

fetch "Apache Kafka" libs "kafka_2.13-$version.jar" "
    $(dependency org.apache.kafka kafka_2.13 "$version")
    $(dependency org.apache.kafka kafka-tools "$version")
    $logging"
# Only `make interop` needs it: without a network the rest goes on.
fetch "Kafka Streams" streams-libs "kafka-streams-$version.jar" "
    $(dependency org.apache.kafka kafka-streams "$version")
    $logging" || echo "Kafka Streams $version could not be fetched: its test is skipped" >&2

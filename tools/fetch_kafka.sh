#!/usr/bin/env bash
# Puts the jars of Apache Kafka into the cache, for the interop tests that run its tools and its broker. Needs Maven.
set -euo pipefail

version=4.3.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/apache-kafka-$version
libs=$cache/libs

if [ -e "$libs/kafka_2.13-$version.jar" ]; then
    echo "Apache Kafka $version is in $libs"
    exit 0
fi
command -v mvn >/dev/null || { echo "mvn is missing: install Apache Maven to fetch Apache Kafka $version" >&2; exit 2; }

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
dependency() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>moldau</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    $(dependency org.apache.kafka kafka_2.13 "$version")
    $(dependency org.apache.kafka kafka-tools "$version")
    $(dependency org.apache.logging.log4j log4j-slf4j-impl 2.25.4)
  </dependencies>
</project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/libs"
rm -rf "$libs"
mv "$work/libs" "$libs"
echo "Apache Kafka $version: $(find "$libs" -name '*.jar' | wc -l) jars in $libs"

#!/usr/bin/env bash
# Sees to it that there is a Java, for Spark and for Apache Kafka's own tools; says what to do where it may not install one.
command -v java >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Java (once)"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 &&
          apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null 2>&1; }
fi
command -v java >/dev/null && exit 0
echo "There is no Java here, and Spark needs 17 or newer: install it with the system's package manager" >&2
echo "(Debian: apt install default-jre-headless; Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk)." >&2
exit 1

"""The pages of `moldau help`: name, title and text of each."""

from __future__ import annotations

START = """
A broker, a topic, some records:

  moldau server                            one node on port 9092, data in ./moldau-data; Ctrl-C stops it
  moldau topic create orders -p 3          in another terminal
  printf 'bread\\nmilk\\n' | moldau produce orders
  moldau consume orders                    everything up to now; --follow waits for more

Another port or directory:    moldau server --port 19092 --data-dir /data/moldau
A cluster of three nodes:     moldau up --brokers 3
With logins and rights:       moldau up --secure --data-dir secured
Is everything well?           moldau cluster health

Any client of Apache Kafka connects to localhost:9092 and notices no difference.
See also: moldau help addresses, moldau help node, moldau help kafka
"""

ADDRESSES = """
Every command that talks to a cluster finds its brokers by the first of these that says something:

  -b, --bootstrap-server HOST:PORT[,HOST:PORT]
  --profile NAME
  MOLDAU_BOOTSTRAP_SERVER in the environment
  MOLDAU_PROFILE in the environment, the name of a profile
  the profile in use (`moldau profile use NAME`)
  localhost:9092

A broker then tells the addresses of all brokers, its advertised.listeners; those have to be reachable from here too.
An IPv6 address stands in brackets: [::1]:9092.

A profile is a client.properties file, as Kafka's tools take it, under a name:

  moldau profile create prod -b kafka-1:9092,kafka-2:9092 -X client.id=ops
  moldau profile create staging --from-file client.properties
"""

SERVER = """
`moldau server` without a file is a broker and controller in one, which formats its directory itself. `moldau server
FILE.properties` takes a server.properties as Apache Kafka has it; prepare its directories with `moldau storage format`.

Where a setting comes from, the last one wins:

  FILE.properties
  KAFKA_LOG_DIRS=/data                     log.dirs, from the environment; every setting has such a name
  --override log.dirs=/data

A setting whose name is unknown is warned of. `moldau config describe broker 1` shows what a running node uses, and
`moldau config alter broker 1 --set KEY=VALUE` changes what can be changed while it runs.

Logs go to standard error. MOLDAU_LOG_LEVEL=INFO (or DEBUG) tells more; a running node is asked for more with
`moldau config alter broker-logger 1 --set root=DEBUG`.

SIGTERM and Ctrl-C stop a node cleanly: it hands over what it leads first. kill -9 loses nothing that was acknowledged
by all in-sync replicas; a restart checks the ends of the logs.
"""

RECORDS = """
`moldau produce` turns lines into records, `moldau consume` records into lines.

Places for consume (-o to start at, -u to stop before):

  beginning, end        the first record, the end
  1500                  an offset
  -10                   the last ten of each partition
  @-1h, @-7d            an hour, a week ago
  @2026-01-31T12:00:00  a time

Formats for consume (-f):

  pretty                for people: place, time, key, value, headers
  value                 the value and a newline; the default in a pipe
  json                  one object a line; `moldau produce -f json` takes it back
  hex                   as hexdump -C
  '%k=%s\\n'             as in kcat: %s value, %k key, %h headers, %t topic, %p partition, %o offset, %T time

Keys and headers for produce: -K : splits key:value, -k KEY sets one, -H NAME=VALUE adds a header.
"""

GROUPS = """
Members of a group share the partitions of their topics, and the group remembers how far they are.

  moldau consume orders --group billing            reads as a member; what was printed is committed
  moldau group list
  moldau group describe billing --watch            state, members, lag
  moldau group reset-offsets billing -t orders --to @-1h         shows what it would do; --execute does it

In a share group every record goes to one member, whatever its partition, with a lock and an acknowledgement:

  moldau consume orders --share workers --ack accept
  moldau share describe workers
"""

LAKE = """
Topics to tables (Delta, Iceberg, Parquet) and back. Needs Java 17 or newer and the extra `spark`:

  pip install 'moldau[spark]'
  moldau load orders --to lake/orders                      rows and offsets in one commit: exactly once
  moldau lake describe lake/orders
  moldau pipeline init clicks.toml                         sources, SQL or Python steps, sinks
  moldau pipeline run clicks.toml --report clicks.html

A small run is mostly Java's start. These take half of it away where seconds matter:

  --spark-conf 'spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'

In programs: spark.read.format("moldau") has the columns and options of Spark's own Kafka connector.
"""

KAFKA = """
Kafka's own tools are here by name, with the flags and the output they have there:

  moldau kafka-topics --bootstrap-server localhost:9092 --list
  moldau kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group billing

`moldau install-kafka-names DIRECTORY` puts kafka-topics, kafka-topics.sh and the others into a directory of the PATH.

The commands of moldau work against Apache Kafka as well. Data directories go both ways: `moldau storage info` tells
whose a directory is and whether it can be opened, `moldau log verify` looks for damage.
"""

SCRIPTS = """
--format json gives every command an output for programs; with --watch it is one document a line.

Exit codes:

  0    done
  1    something went wrong; standard error says what, and what to do
  2    the command line is not right
  3    `moldau cluster health`: the cluster is not healthy
  130  Ctrl-C
  141  whoever read the output closed it

Environment:

  MOLDAU_BOOTSTRAP_SERVER  where to find a broker
  MOLDAU_PROFILE           the profile to use
  MOLDAU_LOG_LEVEL         how much a node logs: DEBUG, INFO, WARNING
  MOLDAU_DEBUG=1           shows where an unexpected error came from
  NO_COLOR                 no colour; pipes and files never get any
  XDG_CONFIG_HOME          where profiles are kept, instead of ~/.config

`moldau completion bash` (zsh, fish) prints what makes a shell complete commands, topics and groups.
"""

INSTALL = """
A wheel brings the hot modules compiled and needs no compiler:

  pip install moldau        in an environment; `pipx install moldau` gives it one of its own
  uvx moldau server         without installing anything
  python -m moldau          the same command, where its script is not on the PATH

From the sources, where there is a C compiler, they are compiled for some minutes; where there is none, or with
MOLDAU_COMPILE=0, the same code is installed interpreted within seconds. It does the same, slower. `moldau --version`
says which of the two it is.

Extras: moldau[arrow], moldau[spark], moldau[formats] (Avro, protobuf), moldau[keystores] (Java's key stores).
"""

PAGES: dict[str, tuple[str, str]] = {
    "start": ("the first steps", START),
    "install": ("wheels, sources, extras", INSTALL),
    "addresses": ("how brokers are found", ADDRESSES),
    "node": ("settings, logs and stopping of a node", SERVER),
    "records": ("places and formats of produce and consume", RECORDS),
    "groups": ("consumers that share work", GROUPS),
    "lake-tables": ("topics to tables and back, through Spark", LAKE),
    "kafka": ("Kafka's tools and Kafka's data", KAFKA),
    "scripts": ("output, exit codes and environment for programs", SCRIPTS),
}

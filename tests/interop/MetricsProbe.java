import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Prints the names of the metrics that Java's clients have once they did their work: client, group, name, tags. */
public class MetricsProbe {
    private static final String TOPIC = "metrics-probe";

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < 10; number++) {
                producer.send(new ProducerRecord<>(TOPIC, new byte[100])).get();
            }
            print("producer", producer.metrics());
        }
        for (String protocol : List.of("classic", "consumer")) {
            Map<String, Object> settings = Map.of("bootstrap.servers", servers, "group.id", "probe-" + protocol,
                "group.protocol", protocol, "auto.offset.reset", "earliest");
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(TOPIC));
                int seen = 0;
                while (seen < 10) {
                    seen += consumer.poll(Duration.ofMillis(500)).count();
                }
                consumer.commitSync();
                consumer.poll(Duration.ofMillis(500));
                print("consumer-" + protocol, consumer.metrics());
            }
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin.describeCluster().nodes().get();
            print("admin", admin.metrics());
        }
        Map<String, Object> sharing = Map.of("bootstrap.servers", servers, "group.id", "probe-share");
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(sharing, new ByteArrayDeserializer(), new ByteArrayDeserializer());
             KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers), new ByteArraySerializer(), new ByteArraySerializer())) {
            consumer.subscribe(List.of(TOPIC));
            int seen = 0;
            while (seen == 0) {
                producer.send(new ProducerRecord<>(TOPIC, new byte[100])).get();
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
                seen += records.count();
            }
            consumer.commitSync();
            print("share-consumer", consumer.metrics());
        }
        System.exit(0);
    }

    private static void print(String client, Map<MetricName, ? extends Metric> metrics) {
        TreeSet<String> lines = new TreeSet<>();
        for (MetricName name : metrics.keySet()) {
            lines.add(client + " " + name.group() + " " + name.name() + " " + String.join(",", new TreeSet<>(name.tags().keySet())));
        }
        lines.forEach(System.out::println);
        if (System.getenv("PROBE_DESCRIPTIONS") != null) {
            for (MetricName name : metrics.keySet()) {
                System.err.println(client + " " + name.group() + " " + name.name() + " | " + name.description() + " | " + metrics.get(name).metricValue());
            }
        }
    }
}

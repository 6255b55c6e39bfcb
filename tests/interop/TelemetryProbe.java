import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A producer of Java's that pushes its metrics until its standard input ends: tells its id, then sends so many records. */
public class TelemetryProbe {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "client.id", "java-probe");
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
                producer.send(new ProducerRecord<>(arguments[1], new byte[100])).get();
            }
            System.out.println(producer.clientInstanceId(Duration.ofSeconds(20)));
            System.out.flush();
            System.in.read();
        }
    }
}

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/** Takes what clients push and forgets it: with it a broker of Apache Kafka offers telemetry. */
public class TelemetryPlugin implements MetricsReporter, ClientTelemetry {
    @Override
    public void init(List<KafkaMetric> metrics) { }

    @Override
    public void metricChange(KafkaMetric metric) { }

    @Override
    public void metricRemoval(KafkaMetric metric) { }

    @Override
    public void close() { }

    @Override
    public void configure(Map<String, ?> configs) { }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> payload.data().remaining();
    }
}

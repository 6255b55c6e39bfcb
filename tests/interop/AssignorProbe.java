import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.common.*;

/**
 * Asks Apache Kafka's own assignors. Input, a line each: "topic NAME racks;racks;…" (the racks of each partition's
 * replicas, separated by commas), "member ID INSTANCE RACK topic,topic" ('-' for none), "run NAME". Output of each
 * run: "ID topic-0 topic-3" for each member, in order, and an empty line.
 */
public class AssignorProbe {
    public static void main(String[] arguments) throws Exception {
        Map<String, ConsumerPartitionAssignor> assignors = new HashMap<>();
        for (ConsumerPartitionAssignor assignor : List.of(new RangeAssignor(), new RoundRobinAssignor()))
            assignors.put(assignor.name(), assignor);
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Subscription> members = new HashMap<>();
        Map<String, Node> racks = new TreeMap<>();
        boolean finished = false;
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split(" ");
            if (finished && !words[0].equals("run")) {
                partitions.clear();
                members.clear();
                finished = false;
            }
            if (words[0].equals("topic")) {
                String[] rows = words[2].split(";");
                for (int number = 0; number < rows.length; number++) {
                    List<Node> replicas = new ArrayList<>();
                    for (String rack : rows[number].split(","))
                        replicas.add(racks.computeIfAbsent(rack, r -> new Node(racks.size(), "host", 1, r.equals("-") ? null : r)));
                    Node[] nodes = replicas.toArray(new Node[0]);
                    partitions.add(new PartitionInfo(words[1], number, nodes[0], nodes, nodes));
                }
            } else if (words[0].equals("member")) {
                Optional<String> rack = words[3].equals("-") ? Optional.empty() : Optional.of(words[3]);
                Subscription subscription = new Subscription(Arrays.asList(words[4].split(",")), null, List.of(), -1, rack);
                if (!words[2].equals("-"))
                    subscription.setGroupInstanceId(Optional.of(words[2]));
                members.put(words[1], subscription);
            } else {
                finished = true;
                Cluster cluster = new Cluster("c", racks.values(), partitions, Set.of(), Set.of());
                Map<String, Assignment> found =
                    assignors.get(words[1]).assign(cluster, new GroupSubscription(members)).groupAssignment();
                for (String member : new TreeSet<>(found.keySet())) {
                    TreeSet<String> names = new TreeSet<>();
                    found.get(member).partitions().forEach(item -> names.add(item.toString()));
                    System.out.println(member + " " + String.join(" ", names));
                }
                System.out.println();
            }
        }
    }
}

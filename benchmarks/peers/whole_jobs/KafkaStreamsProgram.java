import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Runs Kafka Streams in this JVM, as a session that gets one application after another. Each line of the standard input is an
 * application: its settings, the topics and keys of entities, and products as trees of embeds.
 *
 * An embed groups the rows below by the value of their column, as one aggregate for each value, and a foreign-key join brings the
 * aggregate to the rows above. The tables of the source topics are shared, and the rest belongs to its product.
 */
public final class KafkaStreamsProgram {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> KEY = Serdes.String();
    private static final Serde<ObjectNode> NODE = new NodeSerde();

    /** JSON objects, also in the tables between two operators, which take the serde of the settings. */
    public static final class NodeSerde extends Serdes.WrapperSerde<ObjectNode> {
        public NodeSerde() {
            super((topic, node) -> write(node), (topic, bytes) -> read(bytes));
        }
    }

    private final StreamsBuilder builder = new StreamsBuilder();
    private final Map<String, KTable<String, ObjectNode>> tables = new HashMap<>();
    private final JsonNode entities;

    private KafkaStreamsProgram(JsonNode entities) {
        this.entities = entities;
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            run(JSON.readTree(line));
        }
        System.exit(0);
    }

    private static void run(JsonNode job) {
        Properties settings = new Properties();
        job.get("settings").properties().forEach(one -> settings.put(one.getKey(), one.getValue().asText()));
        KafkaStreamsProgram program = new KafkaStreamsProgram(job.get("entities"));
        for (JsonNode product : job.get("products")) {
            program.rows(product, product.get("root").asText())
                .toStream()
                .mapValues(row -> row == null ? null : document(row, product))
                .to(product.get("product").asText(), Produced.with(KEY, NODE));
        }
        Topology topology = program.builder.build(settings);
        KafkaStreams streams = new KafkaStreams(topology, settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
            return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
        });
        streams.setStateListener((now, before) -> {
            System.err.println(settings.get("application.id") + ": " + now);
            if (now == KafkaStreams.State.RUNNING) {
                new Thread(() -> count(topology, settings)).start();
            }
        });
        streams.start();
    }

    /** Prints how many stores the topology has, and how many topics of its own the broker has. */
    private static void count(Topology topology, Properties settings) {
        Set<String> stores = new HashSet<>();
        for (TopologyDescription.Subtopology part : topology.describe().subtopologies()) {
            for (TopologyDescription.Node node : part.nodes()) {
                if (node instanceof TopologyDescription.Processor processor) {
                    stores.addAll(processor.stores());
                }
            }
        }
        try (Admin admin = Admin.create(settings)) {
            String own = settings.get("application.id") + "-";
            long topics = admin.listTopics().names().get().stream().filter(name -> name.startsWith(own)).count();
            System.err.println("topology: " + topics + " internal topics, " + stores.size() + " stores");
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    private KTable<String, ObjectNode> table(String entity) {
        String topic = entities.get(entity).get("topic").asText();
        return tables.computeIfAbsent(
            entity, name -> builder.table(topic, Consumed.with(KEY, NODE), Materialized.as(name)));
    }

    /** The rows of an entity by their key, each with what it embeds: {"row": ..., "embeds": {name: shown}}. */
    private KTable<String, ObjectNode> rows(JsonNode level, String entity) {
        KTable<String, ObjectNode> found = table(entity).mapValues(KafkaStreamsProgram::bare);
        JsonNode embeds = level.path("embed");
        for (Map.Entry<String, JsonNode> one : embeds.properties()) {
            String name = one.getKey();
            JsonNode embed = one.getValue();
            String child = embed.get("on").fieldNames().next();
            String parent = embed.get("on").get(child).asText();
            found = found.leftJoin(
                grouped(embed, child),
                row -> text(row.get("row").get(parent)),
                (row, group) -> with(row, name, listed(group, embed)));
        }
        return found;
    }

    private KTable<String, ObjectNode> grouped(JsonNode embed, String child) {
        return rows(embed, entity(embed))
            .filter((key, row) -> text(row.get("row").get(child)) != null)
            .groupBy((key, row) -> KeyValue.pair(text(row.get("row").get(child)), keyed(key, row)), Grouped.with(KEY, NODE))
            .aggregate(
                JSON::createObjectNode,
                (value, row, group) -> added(group, row),
                (value, row, group) -> removed(group, row),
                Materialized.with(KEY, NODE));
    }

    private static String entity(JsonNode embed) {
        return embed.path(embed.has("many") ? "many" : "one").asText();
    }

    /** What the level above shows of a group: a list, or its first row. */
    private JsonNode listed(ObjectNode group, JsonNode embed) {
        List<ObjectNode> rows = new ArrayList<>();
        if (group != null) {
            group.elements().forEachRemaining(row -> rows.add((ObjectNode) row));
        }
        rows.sort(order(embed));
        if (embed.has("one")) {
            return rows.isEmpty() ? NullNode.instance : shown(rows.get(0), embed);
        }
        ArrayNode list = JSON.createArrayNode();
        rows.subList(0, Math.min(rows.size(), embed.path("limit").asInt(Integer.MAX_VALUE)))
            .forEach(row -> list.add(shown(row, embed)));
        return list;
    }

    private Comparator<ObjectNode> order(JsonNode embed) {
        Comparator<ObjectNode> order = (one, other) -> 0;
        for (JsonNode term : embed.path("order_by")) {
            String column = term.asText().substring(1); // each is "-column"
            order = order.thenComparing(row -> text(row.get("row").get(column)), Comparator.nullsLast(Comparator.reverseOrder()));
        }
        for (JsonNode column : entities.get(entity(embed)).get("key")) {
            order = order.thenComparing(row -> row.get("row").get(column.asText()), KafkaStreamsProgram::compare);
        }
        return order;
    }

    private static int compare(JsonNode one, JsonNode other) {
        return one.isNumber() ? Long.compare(one.asLong(), other.asLong()) : one.asText().compareTo(other.asText());
    }

    private static JsonNode shown(ObjectNode row, JsonNode level) {
        if (level.has("value")) {
            return value(row.get("row"), level.get("value").asText());
        }
        return document(row, level);
    }

    private static ObjectNode document(ObjectNode row, JsonNode level) {
        JsonNode columns = row.get("row");
        ObjectNode document = JSON.createObjectNode();
        level.path("fields").forEach(name -> document.set(name.asText(), value(columns, name.asText())));
        document.setAll((ObjectNode) row.get("embeds"));
        return document;
    }

    private static JsonNode value(JsonNode columns, String name) {
        return columns.hasNonNull(name) ? columns.get(name) : NullNode.instance;
    }

    private static ObjectNode bare(ObjectNode columns) {
        ObjectNode row = JSON.createObjectNode();
        row.set("row", columns);
        row.set("embeds", JSON.createObjectNode());
        return row;
    }

    private static ObjectNode with(ObjectNode row, String name, JsonNode shown) {
        ObjectNode made = bare((ObjectNode) row.get("row"));
        ObjectNode embeds = (ObjectNode) made.get("embeds");
        embeds.setAll((ObjectNode) row.get("embeds"));
        embeds.set(name, shown);
        return made;
    }

    private static ObjectNode keyed(String key, ObjectNode row) {
        ObjectNode made = row.deepCopy();
        return made.put("key", key);
    }

    private static ObjectNode added(ObjectNode group, ObjectNode row) {
        return group.set(row.get("key").asText(), row);
    }

    private static ObjectNode removed(ObjectNode group, ObjectNode row) {
        group.remove(row.get("key").asText());
        return group;
    }

    private static String text(JsonNode value) {
        return value == null || value.isNull() ? null : value.asText();
    }

    private static byte[] write(ObjectNode node) {
        try {
            return node == null ? null : JSON.writeValueAsBytes(node);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static ObjectNode read(byte[] bytes) {
        try {
            return bytes == null ? null : (ObjectNode) JSON.readTree(bytes);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

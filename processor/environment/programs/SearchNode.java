import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** An OpenSearch of one node on loopback: its own main class refuses root. Arguments: the directory of its data, the port. */
public class SearchNode extends Node {
    SearchNode(Settings settings) {
        super(
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "statestore"),
            List.of(Netty4Plugin.class),
            false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0])
            .put("http.port", arguments[1])
            .put("transport.port", 0)
            .put("network.host", "127.0.0.1")
            .put("cluster.name", "statestore")
            .put("discovery.type", "single-node")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("node.store.allow_mmap", false)
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Node node = new SearchNode(settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
        node.start();
        Thread.currentThread().join();  // the threads of a node keep no process alive
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (Exception error) {
            error.printStackTrace();
        }
    }
}

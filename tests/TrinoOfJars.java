import io.trino.plugin.hive.HivePlugin;
import io.trino.plugin.iceberg.IcebergPlugin;
import io.trino.testing.DistributedQueryRunner;
import io.trino.testing.TestingSession;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** A coordinator on the port of the first argument, with the catalogs of the files that the others name. */
public class TrinoOfJars {
    public static void main(String[] args) throws Exception {
        var runner = DistributedQueryRunner.builder(TestingSession.testSessionBuilder().build())
                .setWorkerCount(0)
                .addCoordinatorProperty("http-server.http.port", args[0])
                .build();
        runner.installPlugin(new IcebergPlugin());
        runner.installPlugin(new HivePlugin());
        for (int number = 1; number < args.length; number++) {
            Path file = Path.of(args[number]);
            Properties read = new Properties();
            try (var text = Files.newBufferedReader(file)) {
                read.load(text);
            }
            Map<String, String> settings = new HashMap<>();
            for (String name : read.stringPropertyNames()) {
                settings.put(name, read.getProperty(name));
            }
            String connector = settings.remove("connector.name");
            runner.createCatalog(file.getFileName().toString().replace(".properties", ""), connector, settings);
        }
        System.out.println("READY");
        Thread.sleep(Long.MAX_VALUE);
    }
}

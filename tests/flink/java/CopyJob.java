import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.JobManagerOptions;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.ParameterTool;

/**
 * Copies all records of the topic `from` to the topic `to`, each exactly once, in a Flink of its own.
 *
 * <p>It prints "running" once the job is submitted. Its standard input takes commands: "fail" lets a task
 * fail at its next record. Any other line is the path of a directory: the job is stopped with a savepoint
 * there, "savepoint" and where that is are printed, and the process ends.
 */
public final class CopyJob {
    private CopyJob() {}

    /** Ends with code 1 if the job fails more often than the option `failures` allows. */
    public static void main(String[] arguments) {
        try {
            JobClient job = jobOf(ParameterTool.fromArgs(arguments)).executeAsync("copy");
            say("running");
            Thread commands = new Thread(() -> obey(job), "commands");
            commands.setDaemon(true);
            commands.start();
            job.getJobExecutionResult().get();
            commands.join();
        } catch (Exception error) {
            fail(error);
        }
    }

    private static StreamExecutionEnvironment jobOf(ParameterTool options) {
        StreamExecutionEnvironment flink =
                StreamExecutionEnvironment.createLocalEnvironment(
                        options.getInt("parallelism"), settingsOf(options));
        String broker = options.getRequired("broker");
        TransactionNamingStrategy naming =
                TransactionNamingStrategy.valueOf(options.getRequired("naming"));
        flink.fromSource(
                        source(broker, options.getRequired("from")),
                        WatermarkStrategy.noWatermarks(),
                        "source")
                .uid("source")
                .map(new SlowMap(options.getLong("pause-ms")))
                .uid("map")
                .sinkTo(sink(broker, options.getRequired("to"), naming))
                .uid("sink");
        return flink;
    }

    private static KafkaSource<String> source(String broker, String topic) {
        return KafkaSource.<String>builder()
                .setBootstrapServers(broker)
                .setTopics(topic)
                .setGroupId("copy")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
    }

    private static KafkaSink<String> sink(
            String broker, String topic, TransactionNamingStrategy naming) {
        return KafkaSink.<String>builder()
                .setBootstrapServers(broker)
                .setRecordSerializer(
                        KafkaRecordSerializationSchema.builder()
                                .setTopic(topic)
                                .setValueSerializationSchema(new SimpleStringSchema())
                                .build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("copy")
                .setTransactionNamingStrategy(naming)
                .build();
    }

    private static Configuration settingsOf(ParameterTool options) {
        Configuration settings = new Configuration();
        settings.set(
                CheckpointingOptions.CHECKPOINTING_INTERVAL,
                Duration.ofMillis(options.getLong("checkpoint-ms")));
        settings.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, options.getRequired("checkpoints"));
        settings.set(
                CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
                ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
        if (options.has("restore")) {
            settings.set(StateRecoveryOptions.SAVEPOINT_PATH, options.get("restore"));
        }
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(
                RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, options.getInt("failures"));
        settings.set(
                RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(200));
        keepSmall(settings);
        return settings;
    }

    /** Little memory, and loopback only. */
    private static void keepSmall(Configuration settings) {
        settings.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(8));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(16));
        settings.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(16));
        settings.set(JobManagerOptions.BIND_HOST, "127.0.0.1");
        settings.set(TaskManagerOptions.BIND_HOST, "127.0.0.1");
        settings.set(RestOptions.ADDRESS, "127.0.0.1");
        settings.set(RestOptions.BIND_ADDRESS, "127.0.0.1");
        settings.set(RestOptions.BIND_PORT, "0");
    }

    private static void obey(JobClient job) {
        try (BufferedReader commands = new BufferedReader(new InputStreamReader(System.in))) {
            String command = commands.readLine();
            while ("fail".equals(command)) {
                SlowMap.failOnce();
                command = commands.readLine();
            }
            if (command != null) {
                boolean isForGood = false; // true would tell the operators that the input has ended
                say("savepoint "
                        + job.stopWithSavepoint(isForGood, command, SavepointFormatType.CANONICAL).get());
            }
        } catch (Exception error) {
            fail(error);
        }
    }

    /** Flink's threads would keep the process alive. */
    private static void fail(Exception error) {
        error.printStackTrace();
        System.exit(1);
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}

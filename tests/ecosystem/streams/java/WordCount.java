import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts the words of the topic `streams-plaintext-input`, as the demo of Kafka's quick start does, and as
 * it, takes a file of properties.
 *
 * <p>Other than the demo it ends, with code 1, when Streams gives up.
 */
public final class WordCount {
    private WordCount() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        KafkaStreams streams = new KafkaStreams(topology(), properties(arguments[0]));
        CountDownLatch failed = new CountDownLatch(1);
        streams.setStateListener(
                (now, before) -> {
                    if (now == KafkaStreams.State.ERROR) {
                        failed.countDown();
                    }
                });
        streams.start();
        failed.await();
        Runtime.getRuntime().halt(1);
    }

    private static Properties properties(String path) throws IOException {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "streams-wordcount");
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        try (InputStream file = new FileInputStream(path)) {
            properties.load(file);
        }
        return properties;
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("streams-plaintext-input")
                .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("\\W+")))
                .groupBy((key, word) -> word)
                .count(Materialized.as("counts"))
                .toStream()
                .to("streams-wordcount-output", Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }
}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.StringSerializer;

/** Does steps of a transaction, one for each line of JSON, and answers each with a line. */
public class Application {
    private static final ObjectMapper JSON = new ObjectMapper();
    private KafkaProducer<String, String> producer;

    public static void main(String[] arguments) throws Exception {
        Application application = new Application();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(application.answer(JSON.readTree(line))));
        }
    }

    private Map<String, Object> answer(JsonNode step) throws InterruptedException {
        try {
            perform(step);
            return Map.of();
        } catch (ExecutionException failure) {
            return told(failure.getCause());
        } catch (KafkaException | IllegalStateException failure) {
            return told(failure);
        }
    }

    /** The names of an error and of its cause, and the kinds of it that an application may catch. */
    private static Map<String, Object> told(Throwable failure) {
        String name = failure.getClass().getSimpleName();
        Throwable cause = failure.getCause();
        List<String> says = new ArrayList<>();
        if (failure instanceof RetriableException) {
            says.add("RetriableException");
        }
        if (failure instanceof ApplicationRecoverableException) {
            says.add("ApplicationRecoverableException");
        }
        if (cause != null) {
            name += " of " + cause.getClass().getSimpleName();
        }
        return Map.of("error", name, "says", says);
    }

    private void perform(JsonNode step) throws ExecutionException, InterruptedException {
        switch (step.get("step").asText()) {
            case "open" -> open(step);
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(
                new ProducerRecord<>(step.get("topic").asText(), step.get("value").asText())).get();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> producer.close(Duration.ZERO);
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    private void open(JsonNode step) {
        producer = new KafkaProducer<>(Map.of(
            "bootstrap.servers", step.get("servers").asText(),
            "transactional.id", step.get("transactional_id").asText(),
            "max.block.ms", step.get("patience_ms").asInt(),
            "reconnect.backoff.max.ms", 500), new StringSerializer(), new StringSerializer());
        producer.initTransactions();
    }
}

package greeting;

import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.stereotype.Component;

/** Answers each name of the topic `names` with a greeting. */
@Component
public class GreetingListener {
    private final KafkaTemplate<String, String> template;

    public GreetingListener(KafkaTemplate<String, String> template) {
        this.template = template;
    }

    @KafkaListener(id = "greeter", topics = "names")
    public void greet(String name) {
        template.send("greetings", "hello " + name);
    }
}

package greeting;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Runs what is in its package; arguments are properties of Spring Boot. */
@SpringBootApplication
public class ListenerApplication {
    public static void main(String[] arguments) {
        SpringApplication.run(ListenerApplication.class, arguments);
    }
}

package greeting;

import java.util.function.Function;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** Answers a name with a greeting; the properties say from which topic to which. */
@SpringBootApplication
public class FunctionApplication {
    public static void main(String[] arguments) {
        SpringApplication.run(FunctionApplication.class, arguments);
    }

    @Bean
    public Function<String, String> greet() {
        return name -> "hello " + name;
    }
}

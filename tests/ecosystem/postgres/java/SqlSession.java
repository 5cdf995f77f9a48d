import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;

/** Executes each line of its input as SQL, and answers with a line: "done". The argument is a URL of JDBC. */
public final class SqlSession {
    private static final int TRIES = 300;
    private static final long PAUSE_MS = 200;

    private SqlSession() {}

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = connected(arguments[0]);
                Statement statement = connection.createStatement()) {
            say("connected");
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                statement.execute(line);
                say("done");
            }
        }
    }

    /** The server may not be ready yet. */
    private static Connection connected(String url) throws SQLException, InterruptedException {
        for (int tries = 1; ; tries++) {
            try {
                return DriverManager.getConnection(url);
            } catch (SQLException error) {
                if (tries == TRIES) {
                    throw error;
                }
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    private static void say(String word) throws IOException {
        System.out.println(word);
        System.out.flush();
    }
}

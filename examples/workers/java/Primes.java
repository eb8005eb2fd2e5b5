import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.LongStream;

/**
 * Writes the prime numbers of a range into PostgreSQL, page by page: the command of a WorkerPool. ../README.md says
 * what it reads and writes. It needs Gson and PostgreSQL's JDBC driver.
 */
public final class Primes {
    /** ../job.yaml fails the job on this exit code, because no later attempt can help. */
    private static final int BAD_PAYLOAD = 65;
    private static final int PAUSE_MILLISECONDS = 500;

    private static final Gson GSON = new Gson();
    private static final Map<String, String> ENV = System.getenv();
    private static final String JOB = ENV.get("HOLDFAST_JOB_UID");
    private static final long ATTEMPT = Long.parseLong(ENV.get("HOLDFAST_ATTEMPT"));

    /** The range, and how many numbers are one page. */
    record Payload(long from, long to, long pageSize) {
        boolean isUsable() {
            return 1 <= from && from <= to && to <= 1_000_000_000 && 1 <= pageSize && pageSize <= 100_000;
        }
    }

    record Message(boolean pause, boolean stop) {}

    record Result(long primes, long upTo) {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Payload payload = null;
        try {
            payload = GSON.fromJson(new String(System.in.readAllBytes(), StandardCharsets.UTF_8), Payload.class);
        } catch (JsonParseException error) {
            fail(BAD_PAYLOAD, "bad payload: " + error.getMessage());
        }
        if (payload == null || !payload.isUsable()) {
            fail(BAD_PAYLOAD, "bad payload: it needs 1 <= from <= to <= 1000000000 and 1 <= pageSize <= 100000");
        }
        try (Connection database = connect()) {
            Result result = work(database, payload);
            Files.writeString(Path.of(ENV.get("HOLDFAST_RESULT_FILE")), GSON.toJson(result));
        } catch (SQLException error) {
            fail(1, "database: " + error.getMessage());
        }
    }

    private static void fail(int code, String why) {
        System.err.println(why);
        System.exit(code);
    }

    /** PGHOST and some other variables of libpq say where the database is. */
    private static Connection connect() throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", ENV.get("PGUSER"));
        properties.setProperty("password", ENV.getOrDefault("PGPASSWORD", ""));
        String url = "jdbc:postgresql://%s:%s/%s".formatted(
                ENV.get("PGHOST"), ENV.getOrDefault("PGPORT", "5432"), ENV.get("PGDATABASE"));
        Connection database = DriverManager.getConnection(url, properties);
        database.setAutoCommit(false);
        return database;
    }

    private static Result work(Connection database, Payload payload)
            throws SQLException, IOException, InterruptedException {
        String checkpoint = ENV.getOrDefault("HOLDFAST_CHECKPOINT", "");
        long done = checkpoint.isEmpty() ? payload.from() - 1 : Long.parseLong(checkpoint);
        while (done < payload.to()) {
            long end = Math.min(done + payload.pageSize(), payload.to());
            Object[] numbers = LongStream.rangeClosed(done + 1, end).filter(Primes::isPrime).boxed().toArray();
            writePage(database, numbers);
            done = end;
            tellAgent("checkpoint", Long.toString(done));
            tellAgent("progress", done + " of " + payload.to());
            if (done < payload.to() && !mayGoOn(done)) {
                break;
            }
        }
        return new Result(count(database), done);
    }

    /**
     * One transaction. It starts with the fence, so a replaced attempt cannot write. A page may be written twice: a
     * page whose checkpoint was lost comes again.
     */
    private static void writePage(Connection database, Object[] numbers) throws SQLException {
        try (var fence = database.prepareStatement("SELECT holdfast_fence(?::uuid, ?)");
                var insert = database.prepareStatement("""
                        INSERT INTO primes (job, number, attempt)
                        SELECT ?::uuid, unnest(?::bigint[]), ? ON CONFLICT DO NOTHING""")) {
            fence.setString(1, JOB);
            fence.setLong(2, ATTEMPT);
            fence.execute();
            insert.setString(1, JOB);
            insert.setArray(2, database.createArrayOf("bigint", numbers));
            insert.setLong(3, ATTEMPT);
            insert.execute();
        }
        database.commit();
    }

    private static long count(Connection database) throws SQLException {
        try (var query = database.prepareStatement("SELECT count(*) FROM primes WHERE job = ?::uuid")) {
            query.setString(1, JOB);
            try (var rows = query.executeQuery()) {
                rows.next();
                return rows.getLong(1);
            }
        }
    }

    private static boolean isPrime(long number) {
        for (long factor = 2; factor * factor <= number; factor++) {
            if (number % factor == 0) {
                return false;
            }
        }
        return number > 1;
    }

    /** A report that fails costs at most repeated work. The agent program prints why it failed. */
    private static void tellAgent(String... words) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(words));
        command.add(0, ENV.getOrDefault("AGENT_PROGRAM", "/holdfast/agent"));
        new ProcessBuilder(command).inheritIO().start().waitFor();
    }

    /** Waits while the job's message says pause. False: the message says stop. */
    private static boolean mayGoOn(long done) throws IOException, InterruptedException {
        while (true) {
            Message message = readMessage();
            if (message.stop() || !message.pause()) {
                return !message.stop();
            }
            // A pause is no hang, so it reports progress too.
            tellAgent("progress", "paused at " + done);
            Thread.sleep(PAUSE_MILLISECONDS);
        }
    }

    /** An empty one if the job's message is no JSON object of these fields. */
    private static Message readMessage() {
        Message message = null;
        try {
            message = GSON.fromJson(Files.readString(Path.of(ENV.get("HOLDFAST_MESSAGE_FILE"))), Message.class);
        } catch (IOException | JsonParseException ignored) {
            // Such a message is for somebody else.
        }
        return message == null ? new Message(false, false) : message;
    }
}

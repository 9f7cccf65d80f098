import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Files;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/**
 * Tomcat with one servlet, and three clients that ask it for ever. A line "count" on stdin prints how many answers
 * they have had and the JVM's clock.
 */
public class ServletLoop {
    static final LongAdder answers = new LongAdder();

    static class Page extends HttpServlet {
        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            TreeMap<String, String> sorted = new TreeMap<>();
            request.getHeaderNames().asIterator().forEachRemaining(n -> sorted.put(n, request.getHeader(n)));
            for (int i = 0; i < 100; i++) sorted.put("key" + i * 7919 % 100, "value" + i);
            response.setContentType("text/plain");
            PrintWriter out = response.getWriter();
            sorted.forEach((k, v) -> out.printf("%s=%s%n", k, v));
        }
    }

    static void client(int port) {
        byte[] buffer = new byte[8192];
        for (;;) {
            try {
                HttpURLConnection c = (HttpURLConnection) new URL("http://127.0.0.1:" + port + "/page").openConnection();
                try (InputStream in = c.getInputStream()) {
                    while (in.read(buffer) >= 0) { }
                }
                answers.increment();
            } catch (IOException e) {
                // a full backlog: again
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("kindling-tomcat").toString());
        tomcat.setPort(0);
        tomcat.getConnector();
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "page", new Page());
        context.addServletMappingDecoded("/page", "page");
        tomcat.start();
        int port = tomcat.getConnector().getLocalPort();
        for (int i = 0; i < 3; i++) new Thread(() -> client(port), "client-" + i).start();
        System.out.println("READY");
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        for (String word; (word = words.readLine()) != null;)
            if (word.equals("count")) System.out.println("COUNT " + answers.sum() + " " + System.nanoTime());
    }
}

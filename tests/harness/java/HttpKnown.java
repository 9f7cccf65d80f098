import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * HttpKnown platform|virtual THREADS: the JDK's HTTP server, without any tracing of its own, and clients that ask it all
 * the time. A request for /N, whose traceparent has the trace id N + 1, is worked on by the method burn_N. Ends with its stdin.
 */
public class HttpKnown {
    static volatile long sink;

    static void spin(int ms) {
        long end = System.nanoTime() + ms * 1_000_000L;
        while (System.nanoTime() < end)
            sink += sink * 31 + 7;
    }

    static void burn_0() { spin(8); }
    static void burn_1() { spin(8); }
    static void burn_2() { spin(8); }
    static void burn_3() { spin(8); }

    static void burn(int n) {
        switch (n) {
            case 0: burn_0(); break;
            case 1: burn_1(); break;
            case 2: burn_2(); break;
            default: burn_3();
        }
    }

    static ExecutorService workers(String kind, int threads) throws Exception {
        if (kind.equals("virtual")) // of JDK 21
            return (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        return Executors.newFixedThreadPool(threads);
    }

    /** A plain socket, because the tracer would add its own spans to HTTP clients that it knows. */
    static void ask(int port, int n) throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write(String.format("GET /%d HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"
                    + "traceparent: 00-%032x-%016x-01\r\n\r\n", n, n + 1, n + 1).getBytes(StandardCharsets.US_ASCII));
            InputStream in = socket.getInputStream();
            while (in.read() >= 0)
                ;
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[1]);
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            burn(Integer.parseInt(exchange.getRequestURI().getPath().substring(1)));
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.setExecutor(workers(args[0], threads));
        server.start();
        for (int i = 0; i < threads; i++) {
            int first = i;
            Thread client = new Thread(() -> {
                try {
                    for (int n = first;; n++)
                        ask(server.getAddress().getPort(), n % 4);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }, "client-" + i);
            client.setDaemon(true);
            client.start();
        }
        System.out.println("READY");
        while (System.in.read() >= 0)
            ;
        System.exit(0);
    }
}

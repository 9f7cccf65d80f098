import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;

/** Sends RATE requests a second to a port, over connections that stay open: PoolClient PORT RATE
 * SECONDS. */
public class PoolClient {
    static final int CONNECTIONS = 24;
    static final byte[] REQUEST = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes();
    static final AtomicLong done = new AtomicLong();

    /** Reads one answer, which has a length or comes in chunks. */
    static void answer(InputStream in, byte[] buffer) throws Exception {
        int n = 0;
        while (true) {
            int got = in.read(buffer, n, buffer.length - n);
            if (got <= 0) throw new IllegalStateException("the server ends");
            n += got;
            String text = new String(buffer, 0, n, "ISO-8859-1").toLowerCase();
            int head = text.indexOf("\r\n\r\n"), length = text.indexOf("content-length:");
            if (head < 0) continue;
            if (length < 0 && text.endsWith("0\r\n\r\n")) return;
            if (length < 0) continue;
            int end = text.indexOf("\r\n", length);
            if (n >= head + 4 + Integer.parseInt(text.substring(length + 15, end).trim())) return;
        }
    }

    static void connection(int port, long every, long begin, long end) {
        byte[] buffer = new byte[8192];
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setTcpNoDelay(true);
            InputStream in = socket.getInputStream();
            OutputStream out = socket.getOutputStream();
            for (long next = begin; next < end && System.nanoTime() < end; next += every) {
                long wait = next - System.nanoTime();
                if (wait > 0) Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
                out.write(REQUEST);
                answer(in, buffer);
                done.incrementAndGet();
            }
        } catch (Exception e) {
            System.out.println("FAILED " + e);
        }
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        long every = CONNECTIONS * 1_000_000_000L / Integer.parseInt(args[1]), begin = System.nanoTime();
        long end = begin + Long.parseLong(args[2]) * 1_000_000_000L;
        Thread[] threads = new Thread[CONNECTIONS];
        for (int i = 0; i < CONNECTIONS; i++) {
            long first = begin + i * every / CONNECTIONS;
            threads[i] = new Thread(() -> connection(port, every, first, end));
            threads[i].start();
        }
        for (Thread t : threads) t.join();
        System.out.println("DONE " + done + " " + (System.nanoTime() - begin));
    }
}

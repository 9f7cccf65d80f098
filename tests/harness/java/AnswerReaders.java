import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;

/** Threads reader-0, reader-1, ... that read answers of a server, each of which takes 12 ms, until `over`. */
class AnswerReaders {
    static final AtomicLong reading = new AtomicLong(); // ns
    static volatile boolean over;

    static void read(Socket socket) {
        try {
            while (!over) {
                long asked = System.nanoTime();
                socket.getOutputStream().write(1);
                socket.getInputStream().read();
                reading.addAndGet(System.nanoTime() - asked);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void answer(Socket socket) {
        try {
            for (int c; (c = socket.getInputStream().read()) >= 0; ) {
                Thread.sleep(12);
                socket.getOutputStream().write(c);
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static Thread begin(String name, Runnable task) {
        Thread t = new Thread(task, name);
        t.setDaemon(true);
        t.start();
        return t;
    }

    /** timeoutMs: of the readers' sockets; 0 = none. */
    static Thread[] begin(int readers, int timeoutMs) throws IOException {
        Thread[] threads = new Thread[readers];
        ServerSocket server = new ServerSocket(0, Math.max(1, readers), InetAddress.getLoopbackAddress());
        for (int i = 0; i < readers; i++) {
            Socket client = new Socket(server.getInetAddress(), server.getLocalPort()), accepted = server.accept();
            client.setSoTimeout(timeoutMs);
            begin("answers-" + i, () -> answer(accepted));
            threads[i] = begin("reader-" + i, () -> read(client));
        }
        return threads;
    }
}

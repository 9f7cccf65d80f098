import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;

/**
 * COMPUTERS threads compute, so that each waits most of the time for a CPU; READERS threads read answers of a server,
 * each of which takes 12 ms. Prints READY; when it reads a line it prints how many nanoseconds the readers read, and
 * all that took.
 */
public class BusyReaders {
    static final AtomicLong reading = new AtomicLong();
    static volatile boolean over;
    static volatile long result;

    static void compute() {
        for (long x = 1; !over; result = x)
            for (int i = 0; i < 100000; i++) x = x * 31 + i;
    }

    static void read(Socket socket) {
        try {
            while (!over) {
                long asked = System.nanoTime();
                socket.getOutputStream().write(1);
                socket.getInputStream().read();
                reading.addAndGet(System.nanoTime() - asked);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
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

    public static void main(String[] args) throws Exception {
        int computers = Integer.parseInt(args[0]), readers = Integer.parseInt(args[1]);
        ServerSocket server = new ServerSocket(0, readers, InetAddress.getLoopbackAddress());
        Thread[] threads = new Thread[readers];
        long begin = System.nanoTime();
        for (int i = 0; i < readers; i++) {
            Socket client = new Socket(server.getInetAddress(), server.getLocalPort()), accepted = server.accept();
            begin("answers-" + i, () -> answer(accepted));
            threads[i] = begin("reader-" + i, () -> read(client));
        }
        for (int i = 0; i < computers; i++) begin("computer-" + i, BusyReaders::compute);
        System.out.println("READY");
        System.in.read();
        over = true;
        for (Thread t : threads) t.join();
        System.out.println(reading + " " + (System.nanoTime() - begin));
    }
}

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/**
 * WORKERS threads wait for permits of a rate limiter, which has one for each of them every 10 ms; READERS threads read
 * answers of a server, each of which takes 12 ms, with a timeout. Prints READY; when it reads a line it prints how many
 * nanoseconds the workers waited, the readers read, and all that took.
 */
public class RateLimited {
    static final AtomicLong waiting = new AtomicLong(), reading = new AtomicLong();
    static final Semaphore permits = new Semaphore(0, true);
    static volatile boolean over;

    static void work() {
        while (!over) {
            long asked = System.nanoTime();
            permits.acquireUninterruptibly();
            waiting.addAndGet(System.nanoTime() - asked);
        }
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

    static void limit(int workers) {
        try {
            for (;; permits.release(workers)) Thread.sleep(10);
        } catch (InterruptedException e) {
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
        int workers = Integer.parseInt(args[0]), readers = Integer.parseInt(args[1]);
        ServerSocket server = new ServerSocket(0, readers, InetAddress.getLoopbackAddress());
        Thread[] threads = new Thread[workers + readers];
        long begin = System.nanoTime();
        for (int i = 0; i < readers; i++) {
            Socket client = new Socket(server.getInetAddress(), server.getLocalPort()), accepted = server.accept();
            client.setSoTimeout(30000);
            begin("answers-" + i, () -> answer(accepted));
            threads[workers + i] = begin("reader-" + i, () -> read(client));
        }
        for (int i = 0; i < workers; i++) threads[i] = begin("worker-" + i, RateLimited::work);
        begin("limiter", () -> limit(workers));
        System.out.println("READY");
        System.in.read();
        over = true;
        for (Thread t : threads) t.join();
        System.out.println(waiting + " " + reading + " " + (System.nanoTime() - begin));
    }
}

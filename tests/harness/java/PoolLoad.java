import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;

/**
 * A server whose pool of threads is idle most of the time, and a little contention that it knows exactly:
 * of every PERIOD requests one holds a lock for some ms, and another one waits for it, never more at once;
 * by turns a Mutex and a monitor. "go" begins with that; "stop" ends it and prints waits and their time, by the waiter's clock.
 */
public class PoolLoad {
    static final int PERIOD = 40, WORKERS = 16;
    static final long PATIENCE_NS = 200_000_000L, COUNTED_NS = 1_000_000L;

    /** A lock for one thread at a time; waiting threads park with this object as the blocker. */
    static final class Mutex extends AbstractQueuedSynchronizer {
        @Override protected boolean tryAcquire(int unused) { return compareAndSetState(0, 1); }
        @Override protected boolean tryRelease(int unused) { setState(0); return true; }
    }

    static final class Monitor { }

    /** The waits for one lock, as the waiters measured them. */
    static final class Waits {
        final AtomicLong n = new AtomicLong(), ns = new AtomicLong();

        void add(long waited) {
            if (waited < COUNTED_NS) return;
            n.incrementAndGet();
            ns.addAndGet(waited);
        }
    }

    static final Mutex mutex = new Mutex();
    static final Monitor monitor = new Monitor();
    static final Waits mutexWaits = new Waits(), monitorWaits = new Waits();
    static final AtomicLong requests = new AtomicLong();
    static volatile boolean scripted;

    /** Stages of a round: it has not begun, a thread is about to take the lock, it holds the
     * lock, another one waits for it. */
    static final int FREE = 0, COMING = 1, HELD = 2, AWAITED = 3;
    static final AtomicInteger state = new AtomicInteger();
    static volatile long round;

    static void hold() throws InterruptedException {
        long end = System.nanoTime() + PATIENCE_NS;
        state.set(HELD);
        while (state.get() == HELD && System.nanoTime() < end) Thread.sleep(1);
        if (!state.compareAndSet(HELD, FREE)) Thread.sleep(4 + round % 9);
    }

    static void holder() throws InterruptedException {
        round++;
        if (round % 2 == 0) {
            mutex.acquire(1);
            hold();
            mutex.release(1);
        } else {
            synchronized (monitor) {
                hold();
            }
        }
    }

    static void waiter() {
        long begin = System.nanoTime();
        if (round % 2 == 0) {
            mutex.acquire(1);
            mutexWaits.add(System.nanoTime() - begin);
            mutex.release(1);
        } else {
            synchronized (monitor) {
                monitorWaits.add(System.nanoTime() - begin);
            }
        }
        state.set(FREE);
    }

    /** Handles a request in a thread of the pool; returns the answer. */
    static byte[] request() {
        long n = requests.getAndIncrement();
        try {
            if (state.get() == HELD && state.compareAndSet(HELD, AWAITED)) waiter();
            else if (scripted && n % PERIOD == 0 && state.compareAndSet(FREE, COMING)) holder();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        long sum = n;
        for (int i = 0; i < 2000; i++) sum = sum * 31 + i;
        return Long.toString(sum).getBytes();
    }

    /** The conversation with the test; the caller has opened the port. */
    static void run(int port) throws Exception {
        System.out.println("READY");
        System.out.println("PORT " + port);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("end");) {
            scripted = line.equals("go");
            if (scripted) continue;
            Thread.sleep(2 * PATIENCE_NS / 1_000_000);
            System.out.println("TRUTH " + requests + " " + mutexWaits.n + " " + mutexWaits.ns + " " + monitorWaits.n + " " + monitorWaits.ns);
        }
        System.exit(0);
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(WORKERS));
        server.createContext("/", exchange -> {
            byte[] answer = request();
            exchange.sendResponseHeaders(200, answer.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(answer);
            }
        });
        server.start();
        run(server.getAddress().getPort());
    }
}

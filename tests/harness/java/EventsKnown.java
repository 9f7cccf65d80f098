import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Waits and allocations that are known. READY, then for every line "go": 20 waits for a monitor and 20
 * for a ReentrantLock, each held for 20 ms by another thread, and 256 MiB in arrays of 1,000 bytes, while
 * the workers of a pool wait for work; then KNOWN with the sums as the program saw them. "end" ends.
 */
public class EventsKnown {
    static final int WAITS = 20, HOLD_MS = 20, ARRAYS = 268435;
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static volatile boolean held;
    static volatile Object sink;

    static void nap(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void holdMonitor() {
        synchronized (monitor) {
            held = true;
            nap(HOLD_MS);
        }
    }

    static void holdLock() {
        lock.lock();
        try {
            held = true;
            nap(HOLD_MS);
        } finally {
            lock.unlock();
        }
    }

    static long waitForMonitor() {
        long begin = System.nanoTime();
        synchronized (monitor) {
            return System.nanoTime() - begin;
        }
    }

    static long waitForLock() {
        long begin = System.nanoTime();
        lock.lock();
        try {
            return System.nanoTime() - begin;
        } finally {
            lock.unlock();
        }
    }

    static long waits(boolean park) throws InterruptedException {
        long sum = 0;
        for (int i = 0; i < WAITS; i++) {
            held = false;
            Thread holder = new Thread(park ? EventsKnown::holdLock : EventsKnown::holdMonitor, "holder");
            holder.start();
            while (!held) nap(1);
            sum += park ? waitForLock() : waitForMonitor();
            holder.join();
        }
        return sum;
    }

    static void allocate() {
        for (int i = 0; i < ARRAYS; i++) sink = new byte[1000 - 16];
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        Thread feeder = new Thread(() -> {
            for (;;) {
                pool.execute(() -> sink = "work");
                nap(50);
            }
        }, "feeder");
        feeder.setDaemon(true);
        feeder.start();
        System.out.println("READY");
        for (int c = 0, last = '\n'; (c = System.in.read()) > 0; last = c) {
            if (c == 'e' && last == '\n') break;
            if (c != '\n') continue;
            long monitorNs = waits(false), lockNs = waits(true);
            allocate();
            System.out.println("KNOWN " + WAITS + " " + monitorNs + " " + WAITS + " " + lockNs + " " + ARRAYS * 1000L);
        }
        System.out.println("END");
        pool.shutdownNow();
        pool.awaitTermination(1, TimeUnit.SECONDS);
        System.exit(0);
    }
}

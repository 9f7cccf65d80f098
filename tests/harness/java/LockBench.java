import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.AbstractOwnableSynchronizer;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that do nothing but lock, park or yield: LockBench MODE.
 *
 *   uncontended      two threads, each with a monitor and a ReentrantLock of its own
 *   monitors, locks  eight threads fight over two of them, microseconds each
 *   holds            eight threads over two monitors, held for 0.02 to 20 ms: waits of every length
 *   permit           one thread parks with a permit at hand, for a lock that it owns: no wait at all
 *   pingpong         two threads, each unparks the other and parks
 *   parked           5,000 threads in a ring, parked but for the two that are just unparked
 *   yield            virtual threads that do nothing but yield
 *
 * Prints READY; a line "count" on stdin prints how many operations are done and the clock; "end" ends it.
 */
public class LockBench {
    static final int APART = 32;
    static final AtomicLongArray done = new AtomicLongArray(8 * APART);
    static volatile long sink;

    static long work(long seed, int n) {
        for (int i = 0; i < n; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    static void uncontended(int id) {
        Object monitor = new Object();
        ReentrantLock lock = new ReentrantLock();
        long x = id;
        for (long n = 1; ; n++) {
            synchronized (monitor) {
                x = work(x, 20);
            }
            lock.lock();
            x = work(x, 20);
            lock.unlock();
            sink = x;
            done.lazySet(id * APART, n);
        }
    }

    static void monitors(int id, Object monitor) {
        long x = id;
        for (long n = 1; ; n++) {
            synchronized (monitor) {
                x = work(x, 500);
            }
            x = work(x, 500);
            sink = x;
            done.lazySet(id * APART, n);
        }
    }

    static void locks(int id, ReentrantLock lock) {
        long x = id;
        for (long n = 1; ; n++) {
            lock.lock();
            x = work(x, 500);
            lock.unlock();
            x = work(x, 500);
            sink = x;
            done.lazySet(id * APART, n);
        }
    }

    /** Holds locks for times whose logarithm is evenly distributed; the thread works a little in
     * between. */
    static void holds(int id, Object monitor) {
        long x = id;
        for (long n = 1; ; n++) {
            x = work(x, 1);
            long hold = (long) (20_000 * Math.pow(1000, (x >>> 40) / (double) (1 << 24)));
            synchronized (monitor) {
                long until = System.nanoTime() + hold;
                while (System.nanoTime() < until) Thread.yield();
            }
            sink = work(x, 100_000);
            done.lazySet(id * APART, n);
        }
    }

    static class Mine extends AbstractOwnableSynchronizer {
        Mine() {
            setExclusiveOwnerThread(Thread.currentThread());
        }
    }

    static void permits(int id) {
        Thread self = Thread.currentThread();
        Object mine = new Mine();
        for (long n = 1; ; n++) {
            LockSupport.unpark(self);
            LockSupport.park(mine);
            done.lazySet(id * APART, n);
        }
    }

    static Thread[] ring;
    static volatile boolean[] token;

    static void pass(int id) {
        for (;;) {
            while (!token[id]) LockSupport.park();
            token[id] = false;
            int next = (id + 1) % ring.length;
            token[next] = true;
            LockSupport.unpark(ring[next]);
            done.lazySet(id % 8 * APART, done.get(id % 8 * APART) + 1);
        }
    }

    /** @threads threads pass tokens around: two tokens among many threads, one between two. */
    static void ring(int threads) {
        ring = new Thread[threads];
        token = new boolean[threads];
        for (int i = 0; i < threads; i++) {
            int id = i;
            ring[i] = new Thread(null, () -> pass(id), "ring-" + i, 128 << 10);
            ring[i].setDaemon(true);
        }
        for (Thread t : ring) t.start();
        for (int i = 0; i < threads; i += Math.max(2, threads / 2)) {
            token[i] = true;
            LockSupport.unpark(ring[i]);
        }
    }

    static void yields(int id) {
        for (long n = 1; ; n++) {
            Thread.yield();
            done.lazySet(id * APART, n);
        }
    }

    static void start(String mode) {
        Object[] monitors = {new Object(), new Object()};
        ReentrantLock[] locks = {new ReentrantLock(), new ReentrantLock()};
        if (mode.equals("parked") || mode.equals("pingpong")) {
            ring(mode.equals("parked") ? 5000 : 2);
            return;
        }
        int threads = mode.equals("uncontended") ? 2 : mode.equals("yield") ? 4 : mode.equals("permit") ? 1 : 8;
        for (int i = 0; i < threads; i++) {
            int id = i;
            Thread t = LockKnown.thread("bench-" + i, mode.equals("yield"), () -> {
                if (mode.equals("uncontended")) uncontended(id);
                else if (mode.equals("monitors")) monitors(id, monitors[id % 2]);
                else if (mode.equals("locks")) locks(id, locks[id % 2]);
                else if (mode.equals("holds")) holds(id, monitors[id % 2]);
                else if (mode.equals("yield")) yields(id);
                else if (mode.equals("permit")) permits(id);
                else throw new IllegalArgumentException(mode);
            });
            if (!mode.equals("yield")) t.setDaemon(true);
            t.start();
        }
    }

    public static void main(String[] args) throws Exception {
        boolean started = !args[0].equals("yield"); // the JVM's first virtual threads begin at the first line of input
        if (started) start(args[0]);
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null && !line.equals("end"); line = in.readLine()) {
            if (!started) start(args[0]);
            started = true;
            long sum = 0;
            for (int i = 0; i < 8; i++) sum += done.get(i * APART);
            System.out.println("count " + sum + " " + System.nanoTime());
        }
        System.out.println("END");
        System.exit(0);
    }
}

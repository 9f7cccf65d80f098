import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that switch all the time (HandOff PAIRS): one of a pair hands numbers to the other, each with some
 * microseconds of work, and every 64th rests for a millisecond and a half. Same words as Work.
 */
public class HandOff {
    static final int APART = 32;
    static AtomicLongArray done;
    static volatile long sink;

    static long work(long seed) {
        for (int i = 0; i < 2000; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    static void give(SynchronousQueue<Long> to) throws InterruptedException {
        for (long n = 1; ; n++) {
            to.put(work(n));
            if (n % 64 == 0) LockSupport.parkNanos(1_500_000);
        }
    }

    static void take(int pair, SynchronousQueue<Long> from) throws InterruptedException {
        for (long n = 1; ; n++) {
            sink = work(from.take());
            done.lazySet(pair * APART, n);
        }
    }

    interface Body {
        void run() throws InterruptedException;
    }

    static void start(String name, Body body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        int pairs = Integer.parseInt(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        done = new AtomicLongArray(pairs * APART);
        for (int i = 0; i < pairs; i++) {
            int pair = i;
            SynchronousQueue<Long> queue = new SynchronousQueue<>();
            start("give-" + pair, () -> give(queue));
            start("take-" + pair, () -> take(pair, queue));
        }
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("end"); ) {
            long sum = 0;
            for (int i = 0; i < pairs; i++) sum += done.get(i * APART);
            System.out.println("COUNT " + sum + " " + System.nanoTime());
        }
        System.out.println("END");
    }
}

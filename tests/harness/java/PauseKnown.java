import java.util.ArrayList;
import java.util.List;

/**
 * Stops its own world: collections of a heap with much in it, and stack traces of many deep threads.
 * PauseKnown ROUNDS: READY; a line on stdin; ROUNDS collections and 2 x ROUNDS stack traces, with pauses
 * between them; for each "T gc|stacks BEFORE AFTER" (System.nanoTime()); END. The JVM's own log tells when
 * the world stood still (tests/jvm/pauses.py).
 */
public class PauseKnown {
    static final int SLEEPERS = 60, DEPTH = 150, MIB = 25, BETWEEN_MS = 30;
    static volatile long sink;
    static Object[] kept;

    static void deep(int left) throws InterruptedException {
        if (left > 0)
            deep(left - 1);
        else
            Thread.sleep(1 << 30);
    }

    static void start(String name, Runnable r) {
        Thread t = new Thread(r, name);
        t.setDaemon(true);
        t.start();
    }

    /** Works and sleeps in turn, so that a pause meets it running, or delays its waking up. */
    static void work() {
        try {
            for (;;) {
                long until = System.nanoTime() + 400_000;
                while (System.nanoTime() < until)
                    sink++;
                Thread.sleep(1);
            }
        } catch (InterruptedException e) {
            return;
        }
    }

    static void sleepDeep() {
        try {
            deep(DEPTH);
        } catch (InterruptedException e) {
            return;
        }
    }

    static Object[] fill(int mib) {
        List<Object[]> list = new ArrayList<>();
        for (int i = 0; i < mib * 1024; i++) {
            Object[] one = new Object[64];
            for (int k = 0; k < 32; k++)
                one[k] = new int[4];
            list.add(one);
        }
        return list.toArray();
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        kept = fill(MIB);
        for (int i = 0; i < SLEEPERS; i++)
            start("known-deep-" + i, PauseKnown::sleepDeep);
        start("known-work-1", PauseKnown::work);
        start("known-work-2", PauseKnown::work);
        System.out.println("READY");
        System.in.read();
        StringBuilder times = new StringBuilder();
        for (int i = 0; i < rounds; i++) {
            long before = System.nanoTime();
            System.gc();
            times.append("T gc ").append(before).append(' ').append(System.nanoTime()).append('\n');
            Thread.sleep(BETWEEN_MS);
            for (int k = 0; k < 2; k++) {
                before = System.nanoTime();
                sink += Thread.getAllStackTraces().size();
                times.append("T stacks ").append(before).append(' ').append(System.nanoTime()).append('\n');
                Thread.sleep(BETWEEN_MS);
            }
        }
        Thread.sleep(300);
        System.out.print(times);
        System.out.println("END");
        System.in.read();
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * CPU of known shares: every group burns in a method of its own and counts its own thread's clock.
 * All of them want 2.8 CPUs, or with -DdividedBy=N an Nth of that; then they burn by their CPU clocks, so that
 * they get nearly as much on a busy machine.
 * Prints READY; a line "mark" on stdin prints the CPU of each group so far; "end" ends it.
 */
public class KnownShares {
    static final Map<String, AtomicLong> CPU = new LinkedHashMap<>();
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long sink;
    static volatile boolean running = true;
    static final int dividedBy = Integer.getInteger("dividedBy", 1);

    static final int SPINS = dividedBy == 1 ? 2000 : 10000; // reading a CPU clock takes longer

    static long now() {
        return dividedBy == 1 ? System.nanoTime() : THREADS.getCurrentThreadCpuTime();
    }

    static long spin(long n) {
        long x = n;
        for (int i = 0; i < SPINS; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    // one method for each group, so that a profile by method can be compared with the clocks
    static void full(long until) { while (now() < until) sink += spin(until); }
    static void half(long until) { while (now() < until) sink += spin(until); }
    static void tenth(long until) { while (now() < until) sink += spin(until); }
    static void deepLeaf(long until) { while (now() < until) sink += spin(until); }
    static void deep(int depth, long until) { if (depth == 0) deepLeaf(until); else deep(depth - 1, until); }
    static void shortLived(long until) { while (now() < until) sink += spin(until); }
    static void allocating(long until) {
        while (now() < until) {
            byte[][] junk = new byte[64][];
            for (int i = 0; i < junk.length; i++) junk[i] = new byte[256];
            sink += junk.length;
        }
    }

    interface Burn { void until(long nanos); }

    static void group(String name, int percent, Burn burn) {
        AtomicLong cpu = new AtomicLong();
        CPU.put(name, cpu);
        Thread t = new Thread(() -> {
            while (running) {
                burn.until(now() + percent * 200_000L / dividedBy);
                cpu.set(THREADS.getCurrentThreadCpuTime());
                if (percent < 100 * dividedBy) sleep((100 * dividedBy - percent) * 200_000L / dividedBy);
            }
        }, "group-" + name);
        t.setDaemon(true);
        t.start();
    }

    static void sleep(long nanos) {
        try { Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000)); } catch (InterruptedException e) { running = false; }
    }

    static void shortLivedThreads() {
        AtomicLong cpu = new AtomicLong();
        CPU.put("short", cpu);
        Thread spawner = new Thread(() -> {
            while (running) {
                Thread t = new Thread(() -> {
                    shortLived(now() + 3_000_000L);
                    cpu.addAndGet(THREADS.getCurrentThreadCpuTime());
                }, "short-lived");
                t.start();
                try { t.join(); Thread.sleep(10L * dividedBy - 3); } catch (InterruptedException e) { return; }
            }
        }, "spawner");
        spawner.setDaemon(true);
        spawner.start();
    }

    public static void main(String[] args) throws Exception {
        group("full", 100, KnownShares::full);
        group("half", 50, KnownShares::half);
        group("tenth", 10, KnownShares::tenth);
        group("deep", 50, u -> deep(300, u));
        group("allocating", 40, KnownShares::allocating);
        shortLivedThreads();
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("end"); ) {
            if (!line.equals("mark")) continue;
            StringBuilder s = new StringBuilder("MARK");
            CPU.forEach((name, cpu) -> s.append(' ').append(name).append('=').append(cpu.get()));
            System.out.println(s);
        }
        System.out.println("END");
    }
}

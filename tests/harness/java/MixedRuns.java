import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Random;

/**
 * Threads that mix short and long runs, each length in a method of its own that counts its CPU time by the
 * thread's clock. "periodic" repeats the same runs of 0.2, 0.5, 2, 6 and 20 ms; "random" has them in random order,
 * from half to one and a half times as long. A millisecond of sleep follows each.
 * Prints READY; a line "mark" on stdin prints the CPU of each method so far; "end" ends it.
 */
public class MixedRuns {
    static final int[] MICROS = { 200, 500, 2000, 6000, 20000 };
    static final int[] TIMES = { 50, 20, 5, 2, 1 };
    static final String[] NAMES = { "run200us", "run500us", "run2ms", "run6ms", "run20ms" };
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long sink;

    static long spin(long x) {
        for (int i = 0; i < 200; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static long now() { return THREADS.getCurrentThreadCpuTime(); }
    static void burn(long nanos) {
        long until = System.nanoTime() + nanos;
        while (System.nanoTime() < until) sink += spin(until);
    }

    // one method for each length; reading the clocks is part of it, as it is part of the measured time
    static long run200us(long nanos) { long begin = now(); burn(nanos); return now() - begin; }
    static long run500us(long nanos) { long begin = now(); burn(nanos); return now() - begin; }
    static long run2ms(long nanos) { long begin = now(); burn(nanos); return now() - begin; }
    static long run6ms(long nanos) { long begin = now(); burn(nanos); return now() - begin; }
    static long run20ms(long nanos) { long begin = now(); burn(nanos); return now() - begin; }

    static long run(int kind, long nanos) {
        switch (kind) {
        case 0: return run200us(nanos);
        case 1: return run500us(nanos);
        case 2: return run2ms(nanos);
        case 3: return run6ms(nanos);
        default: return run20ms(nanos);
        }
    }

    static class Runs extends Thread {
        final long[] cpu = new long[MICROS.length];
        final boolean random;

        Runs(String name, boolean random) {
            super(name);
            this.random = random;
            setDaemon(true);
        }

        synchronized void add(int kind, long ns) { cpu[kind] += ns; }
        synchronized void print(StringBuilder to) {
            for (int i = 0; i < cpu.length; i++) to.append(' ').append(getName()).append('/').append(NAMES[i]).append('=').append(cpu[i]);
        }

        void once(int kind, double factor) throws InterruptedException {
            add(kind, MixedRuns.run(kind, (long) (MICROS[kind] * 1000L * factor)));
            Thread.sleep(1);
        }

        @Override public void run() {
            Random dice = new Random(4711);
            int all = 0;
            for (int n : TIMES) all += n;
            try {
                while (true) {
                    if (!random) {
                        for (int kind = 0; kind < TIMES.length; kind++)
                            for (int i = 0; i < TIMES[kind]; i++) once(kind, 1);
                        continue;
                    }
                    int at = dice.nextInt(all), kind = 0;
                    while (at >= TIMES[kind]) at -= TIMES[kind++];
                    once(kind, 0.5 + dice.nextDouble());
                }
            } catch (InterruptedException e) {
                // the end
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Runs[] threads = { new Runs("periodic", false), new Runs("random", true) };
        for (Runs t : threads) t.start();
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("end"); ) {
            if (!line.equals("mark")) continue;
            StringBuilder s = new StringBuilder("MARK");
            for (Runs t : threads) t.print(s);
            System.out.println(s);
        }
        System.out.println("END");
    }
}

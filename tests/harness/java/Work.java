import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The same work over and over in N threads (Work N): maps, strings, sorting, recursion, some garbage;
 * no lock, no pause, no chance. Prints READY; a line "count" on stdin prints how many operations are
 * done and the JVM's clock; "end" ends it.
 */
public class Work {
    static final int APART = 32; // padding: counters of two threads share no cache line
    static AtomicLongArray done;
    static volatile long sink;

    static int height(int n, int salt) {
        return n == 0 ? salt & 1 : 1 + Math.max(height(n - 1, salt * 31), n > 4 ? height(n - 4, salt * 17) : 0);
    }

    static long maps(long seed) {
        Map<String, Integer> words = new HashMap<>();
        TreeMap<Integer, Integer> order = new TreeMap<>();
        long sum = 0;
        for (int i = 0; i < 64; i++) {
            words.merge("word" + (seed >>> 8) % 37 + i % 11, i, Integer::sum);
            order.put((int) (seed * (i + 1) >>> 40), i);
        }
        for (Map.Entry<String, Integer> e : words.entrySet()) sum += e.getKey().length() * e.getValue();
        for (int v : order.values()) sum = sum * 31 + v;
        return sum;
    }

    static long sorted(long seed) {
        long[] x = new long[256];
        for (int i = 0; i < x.length; i++) {
            seed = seed * 6364136223846793005L + 1442695040888963407L;
            x[i] = seed;
        }
        Arrays.sort(x);
        return x[0] ^ x[128] ^ x[255];
    }

    static long operation(long seed) {
        return maps(seed) + sorted(seed) + height(18, (int) seed);
    }

    static void work(int thread) {
        long seed = thread + 1, sum = 0;
        for (long n = 1; ; n++) {
            sum += operation(seed);
            if (n % 1024 == 0) {
                seed = thread + 1; // every thread repeats the same 1024 operations
                sink = sum;
            } else {
                seed = seed * 6364136223846793005L + 1442695040888963407L;
            }
            done.lazySet(thread * APART, n);
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        done = new AtomicLongArray(threads * APART);
        for (int i = 0; i < threads; i++) {
            int thread = i;
            Thread t = new Thread(() -> work(thread), "work-" + i);
            t.setDaemon(true);
            t.start();
        }
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("end"); ) {
            if (!line.equals("count")) continue;
            long sum = 0, now = System.nanoTime();
            for (int i = 0; i < threads; i++) sum += done.get(i * APART);
            System.out.println("COUNT " + sum + " " + now);
        }
        System.out.println("END");
    }
}

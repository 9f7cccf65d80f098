import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLongArray;

/** Threads that do the same small piece of work over and over; "mark" prints how many pieces so far. */
public class Throughput {
    static volatile long sink;

    static long recursion(int depth, long x) {
        return depth == 0 ? x : recursion(depth - 1, x * 31 + depth) ^ x;
    }

    static void piece(TreeMap<Integer, byte[]> tree, int i) {
        long x = i;
        for (int k = 0; k < 200; k++) x = recursion(20, x);
        tree.put((int) (x & 0x3ff), new byte[128]);
        sink += x + tree.size();
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args.length > 0 ? args[0] : "2");
        AtomicLongArray pieces = new AtomicLongArray(threads * 16);
        for (int t = 0; t < threads; t++) {
            int mine = t * 16;
            Thread thread = new Thread(() -> {
                TreeMap<Integer, byte[]> tree = new TreeMap<>();
                for (int i = 0;; i++) {
                    piece(tree, i);
                    pieces.lazySet(mine, i);
                }
            }, "worker-" + t);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("end");) {
            long sum = 0;
            for (int t = 0; t < threads; t++) sum += pieces.get(t * 16);
            System.out.println("MARK pieces=" + sum + " nanos=" + System.nanoTime());
        }
    }
}

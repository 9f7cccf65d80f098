import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Random;

/**
 * Signals that HotSpot itself lives on: implicit null checks, stack banging, division by zero, polls; and
 * classes that are unloaded, threads that come and go. WalkHazard SECONDS (- = until its input ends) counts
 * what it provoked and what it saw: prints OK, or WRONG and ends with 1.
 */
public class WalkHazard {
    static volatile long sink;
    static volatile long end;
    static final long[] wrong = new long[6];

    static class Node {
        int value;
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass(null, b, 0, b.length);
        }
    }

    public static class Passing {
        public static int sum(int x) {
            int s = 0;
            for (int i = 0; i < 2000; i++) s += i * x;
            return s;
        }
    }

    static int read(Node n) {
        return n.value + 1;
    }

    static int overflow(int depth) {
        return overflow(depth + 1) + 1;
    }

    static int divide(int a, int b) {
        return a / b;
    }

    static int unwind(int depth) {
        if (depth == 0) throw new RuntimeException("deep");
        try {
            return unwind(depth - 1) + 1;
        } finally {
            sink++;
        }
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread start(String name, long stack, int index, Body body) {
        Thread t = new Thread(null, () -> {
            try {
                while (System.nanoTime() < end) body.run();
            } catch (Throwable e) {
                e.printStackTrace();
                wrong[index]++;
            }
        }, name, stack);
        t.start();
        return t;
    }

    static void nulls() {
        Node node = new Node();
        for (int i = 0; i < 5000; i++) {
            boolean want = i % 7 == 0, got = false;
            try {
                sink += read(want ? null : node);
            } catch (NullPointerException e) {
                got = true;
            }
            if (want != got) wrong[0]++;
        }
    }

    static void overflows() {
        boolean got = false;
        try {
            sink += overflow(0);
        } catch (StackOverflowError e) {
            got = true;
        }
        if (!got) wrong[1]++;
    }

    static void divisions() {
        for (int i = 0; i < 5000; i++) {
            boolean want = i % 11 == 0, got = false;
            try {
                sink += divide(i, want ? 0 : 3);
            } catch (ArithmeticException e) {
                got = true;
            }
            if (want != got) wrong[2]++;
        }
    }

    static void unloads(byte[] bytes, int[] rounds) throws Exception {
        Method m = new Loader().define(bytes).getMethod("sum", int.class);
        for (int i = 0; i < 300; i++) sink += (Integer) m.invoke(null, i);
        if (++rounds[0] % 200 == 0) System.gc();
    }

    static void churn() throws Exception {
        Thread t = new Thread(() -> {
            long s = 0;
            for (int i = 0; i < 20000; i++) s += i;
            sink += s;
        });
        t.start();
        t.join();
    }

    static void garbage(Random random) {
        Object[] objects = new Object[1000];
        for (int i = 0; i < 1000; i++) objects[i] = new byte[random.nextInt(500)];
        sink += objects.length;
        try {
            unwind(random.nextInt(40));
        } catch (RuntimeException e) {
            sink++;
        }
    }

    static void untilInputEnds() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (java.io.IOException e) {
                e.printStackTrace();
            }
            end = System.nanoTime();
        });
        watch.setDaemon(true);
        watch.start();
    }

    public static void main(String[] args) throws Exception {
        end = System.nanoTime() + (args[0].equals("-") ? 3600 : Long.parseLong(args[0])) * 1_000_000_000L;
        if (args[0].equals("-")) untilInputEnds();
        System.out.println("READY");
        byte[] buffer = new byte[10000];
        int n;
        try (InputStream in = WalkHazard.class.getResourceAsStream("WalkHazard$Passing.class")) {
            n = in.read(buffer);
        }
        byte[] passing = Arrays.copyOf(buffer, n);
        int[] rounds = new int[1];
        Random random = new Random(1);
        Thread[] threads = {
            start("nulls", 0, 0, WalkHazard::nulls),
            start("overflows", 512 * 1024, 1, WalkHazard::overflows),
            start("divisions", 0, 2, WalkHazard::divisions),
            start("unloads", 0, 3, () -> unloads(passing, rounds)),
            start("churn", 0, 4, WalkHazard::churn),
            start("garbage", 0, 5, () -> garbage(random)),
        };
        for (Thread t : threads) t.join();
        boolean ok = Arrays.stream(wrong).sum() == 0;
        System.out.println(ok ? "OK" : "WRONG " + Arrays.toString(wrong));
        System.exit(ok ? 0 : 1);
    }
}

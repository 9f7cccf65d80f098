/**
 * Java threads that call a Go library by JNI: WalkGo LIBRARY SECONDS LATE. Each result is checked; HotSpot's
 * own signals go on meanwhile. The library is loaded LATE ms after READY, when a profiler may be there before
 * Go, or before READY where that is 0. Prints OK, or WRONG and ends with 1.
 */
public class WalkGo {
    static volatile long sink, wrong;
    static long end;

    static native long faults(long rounds);

    static native long recursion(long depth);

    static native long crowd(long workers);

    static native long nap(long microseconds);

    static class Node {
        int value;
    }

    static int read(Node n) {
        return n.value + 1;
    }

    static void expect(String what, long want, long got) {
        if (want == got) return;
        synchronized (WalkGo.class) {
            wrong++;
        }
        System.out.println(what + ": " + got + " instead of " + want);
    }

    static void nulls() {
        Node node = new Node();
        long caught = 0;
        for (int i = 0; i < 3500; i++) {
            try {
                sink += read(i % 7 == 0 ? null : node);
            } catch (NullPointerException e) {
                caught++;
            }
        }
        expect("nulls", 500, caught);
    }

    static int overflow(int depth) {
        return overflow(depth + 1) + 1;
    }

    static void overflows() {
        try {
            expect("overflow", 0, overflow(0));
        } catch (StackOverflowError e) {
            sink++;
        }
    }

    static void churn() throws Exception {
        Thread t = new Thread(() -> expect("faults of a new thread", 15, faults(100)));
        t.start();
        t.join();
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread start(String name, Body body) {
        Thread t = new Thread(null, () -> {
            try {
                while (System.nanoTime() < end) body.run();
            } catch (Throwable e) {
                e.printStackTrace();
                wrong++;
            }
        }, name, 512 * 1024);
        t.start();
        return t;
    }

    public static void main(String[] args) throws Exception {
        end = System.nanoTime() + (long) (Double.parseDouble(args[1]) * 1e9);
        int late = Integer.parseInt(args[2]);
        if (late == 0) System.load(args[0]);
        System.out.println("READY");
        if (late > 0) {
            Thread.sleep(late);
            System.load(args[0]);
        }
        long sum = crowd(8);
        Thread[] threads = {
            start("go-faults", () -> expect("faults", 1000, faults(7000))),
            start("go-recursion", () -> expect("recursion", 5500, recursion(5000))),
            start("go-crowd", () -> expect("crowd", sum, crowd(8))),
            start("go-nap", () -> expect("nap", 300, nap(300))),
            start("java-nulls", WalkGo::nulls),
            start("java-overflows", WalkGo::overflows),
            start("churn", WalkGo::churn),
        };
        for (Thread t : threads) t.join();
        System.out.println(wrong == 0 ? "OK" : "WRONG " + wrong);
        System.exit(wrong == 0 ? 0 : 1);
    }
}

/**
 * Virtual threads that sleep in deep recursion and go on working: their upper frames are thawed, the
 * lower ones are still in chunks. Every sample taken in leaf() has DEPTH + 1 frames of down() below it.
 * "busy": other threads make garbage that lives a while, so that the collector moves objects all the time.
 */
public class WalkVirtual {
    static volatile long sink;
    static final int[] DEPTHS = {5, 60, 200};

    static void leaf(boolean sleep) throws InterruptedException {
        spin();
        if (sleep) Thread.sleep(1);
        spin();
    }

    static void spin() {
        long x = 0;
        for (int i = 0; i < 300_000; i++) x += i * 31L ^ x >> 3;
        sink += x;
    }

    static int down(int depth, boolean sleep) throws InterruptedException {
        if (depth == 0) {
            leaf(sleep);
            return 0;
        }
        return down(depth - 1, sleep) + 1;
    }

    static void work(int kind) {
        try {
            for (;;) sink += down(DEPTHS[kind % 3], kind % 2 == 0);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static volatile Object[] kept = new Object[60_000];

    static void churn(int seed) {
        int x = seed;
        for (;;) {
            x = x * 1103515245 + 12345;
            kept[(x >>> 8) % kept.length] = new byte[(x >>> 16) % 3000];
            if ((x & 0xfff) == 0) sink++;
        }
    }

    static void collect() {
        try {
            for (;;) {
                Thread.sleep(100);
                System.gc();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void platform(Runnable body) {
        Thread t = new Thread(body);
        t.setDaemon(true);
        t.start();
    }

    /** Thread.ofVirtual().name(name).start(body), compiled for JDK 8. */
    static void start(String name, Runnable body) throws Exception {
        Class<?> type = Class.forName("java.lang.Thread$Builder$OfVirtual");
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        builder = type.getMethod("name", String.class).invoke(builder, name);
        type.getMethod("start", Runnable.class).invoke(builder, body);
    }

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        for (int i = 0; i < 30; i++) {
            int kind = i;
            start("virtual-" + DEPTHS[kind % 3] + "-" + i, () -> work(kind));
        }
        if (args.length > 0 && args[0].equals("busy")) {
            platform(() -> churn(1));
            platform(WalkVirtual::collect);
        }
        Thread.sleep(1_000_000);
    }
}

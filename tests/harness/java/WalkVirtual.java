/**
 * Virtual threads that sleep in deep recursion and go on working: their upper frames are thawed, the
 * lower ones are still in chunks. Every sample taken in leaf() has DEPTH + 1 frames of down() below it.
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
        Thread.sleep(1_000_000);
    }
}

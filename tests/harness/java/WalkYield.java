/**
 * Virtual threads that do little but yield, 3 to 60 frames deep: most samples fall where their frames are frozen or
 * thawed. Every sample that has yielding() on it has DEPTH + 1 frames of down() below it. With the argument "late" no
 * thread yields in the first LATE_S seconds, so an agent finds virtual threads before the JVM has made the code of
 * Continuation.doYield.
 */
public class WalkYield {
    static volatile long sink;
    static final int[] DEPTHS = {3, 12, 60};
    static final long LATE_S = 3;
    static volatile boolean late;

    static void yielding() {
        for (int i = 0; i < 50; i++) {
            Thread.yield();
        }
        long x = 0;
        for (int i = 0; i < 2000; i++) x += i * 31L ^ x >> 3;
        sink += x;
    }

    static int down(int depth) {
        if (depth == 0) {
            yielding();
            return 0;
        }
        return down(depth - 1) + 1;
    }

    static void work(int depth) {
        while (late) sink++;
        for (;;) sink += down(depth);
    }

    public static void main(String[] args) throws Exception {
        late = args.length > 0 && args[0].equals("late");
        System.out.println("READY");
        for (int i = 0; i < 12; i++) {
            int depth = DEPTHS[i % 3];
            WalkVirtual.start("virtual-" + depth + "-" + i, () -> work(depth));
        }
        Thread.sleep(LATE_S * 1000);
        late = false;
        Thread.sleep(1_000_000);
    }
}

/** Depth N: N compiled frames of recursion, below which a loop runs for a while, again and again. */
public class Depth {
    static volatile long sink;

    static long down(int n, long x) {
        if (n == 0) return spin(x);
        return down(n - 1, x * 3 + 1) ^ n; // work after the call, so that the frame stays
    }

    static long spin(long x) {
        for (int i = 0; i < 200_000; i++) x = x * 31 + (x >> 5);
        return x;
    }

    public static void main(String[] args) {
        int depth = Integer.parseInt(args[0]);
        System.out.println("READY");
        new Thread(() -> {
            for (;;) sink += down(depth, sink);
        }, "deep").start();
    }
}

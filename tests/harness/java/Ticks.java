/** Prints numbered lines to stdout and stderr for ten minutes, and works a little in between. */
public class Ticks {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        for (int i = 0; i < 15000; i++) {
            long until = System.nanoTime() + 8_000_000L;
            while (System.nanoTime() < until) sink += i;
            System.out.println("line " + i);
            System.err.println("error line " + i);
            Thread.sleep(32);
        }
    }
}

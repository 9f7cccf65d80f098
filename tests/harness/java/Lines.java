/** Prints the same lines in every run, to stdout and stderr, and works in between. */
public class Lines {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        for (int i = 0; i < 60; i++) {
            long until = System.nanoTime() + 100_000_000L;
            while (System.nanoTime() < until) sink += KnownShares.spin(i);
            System.out.println("line " + i);
            System.err.println("error line " + i);
        }
    }
}

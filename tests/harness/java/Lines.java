/** Prints the same lines in every run, to stdout and stderr, and works in between: the second
 * half of them after a line on stdin, or its end. */
public class Lines {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        int n = args.length > 0 ? Integer.parseInt(args[0]) : 60;
        for (int i = 0; i < n; i++) {
            if (i == n / 2)
                for (int c = 0; c != '\n' && c != -1; ) c = System.in.read();
            long until = System.nanoTime() + 100_000_000L;
            while (System.nanoTime() < until) sink += KnownShares.spin(i);
            System.out.println("line " + i);
            System.err.println("error line " + i);
        }
    }
}

/**
 * Threads that run for some milliseconds each, one after the other: BriefRuns MILLIS. Their names are longer than the
 * kernel keeps. READY on stdout; it ends with stdin.
 */
public class BriefRuns {
    static final String NAME = "request-of-a-customer-whose-name-no-kernel-would-keep-\u00e9\u4e2d-";
    static volatile double sink;

    static void run(long millis) {
        long end = System.nanoTime() + millis * 1000000;
        double x = 1;
        while (System.nanoTime() < end) x = Math.sqrt(x + 1.5);
        sink = x;
    }

    public static void main(String[] args) throws Exception {
        long millis = Long.parseLong(args[0]);
        Thread runs = new Thread(() -> {
            for (int i = 0; ; i++) {
                Thread t = new Thread(() -> run(millis), NAME + i);
                t.setDaemon(true);
                t.start();
                try {
                    t.join();
                } catch (InterruptedException e) {
                    return;
                }
            }
        }, "starts");
        runs.setDaemon(true);
        runs.start();
        System.out.println("READY");
        while (System.in.read() >= 0) { }
    }
}

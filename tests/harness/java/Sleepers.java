/** Prints READY; then THREADS threads sleep for MS milliseconds at a time. It ends when it reads a line. */
public class Sleepers {
    static void sleep(long ms) {
        try {
            for (;;) Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        long ms = Long.parseLong(args[1]);
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Thread thread = new Thread(() -> sleep(ms), "sleeper");
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("READY");
        System.in.read();
    }
}

/** Sleepers THREADS MS [TIMES]. Prints READY; then THREADS threads sleep for MS milliseconds at a time; after TIMES times
 * another one takes a thread's place. It ends when it reads a line. */
public class Sleepers {
    static void sleep(long ms, long times) {
        try {
            for (long i = 0; i < times; i++) Thread.sleep(ms);
            begin(ms, times);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void begin(long ms, long times) {
        Thread thread = new Thread(() -> sleep(ms, times), "sleeper");
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        long ms = Long.parseLong(args[1]), times = args.length > 2 ? Long.parseLong(args[2]) : Long.MAX_VALUE;
        for (int i = 0; i < Integer.parseInt(args[0]); i++) begin(ms, times);
        System.out.println("READY");
        System.in.read();
    }
}

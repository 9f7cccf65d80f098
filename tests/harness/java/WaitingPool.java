import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Prints READY; then the thread "owner" gives each of WORKERS workers a short task and sleeps for 20 ms, again and
 * again: most times off the CPU are waits for work. When it reads a line it prints how often "owner" slept and for how
 * many nanoseconds it did all that.
 */
public class WaitingPool {
    static volatile boolean over;
    static volatile long sink;
    static long sleeps, ns;

    static void task() {
        long sum = sink;
        for (int i = 0; i < 1000; i++) sum += sum * 31 + i;
        sink = sum;
    }

    static void own(ExecutorService pool, int workers) {
        long begin = System.nanoTime();
        try {
            for (; !over; sleeps++) {
                for (int i = 0; i < workers; i++) pool.execute(WaitingPool::task);
                Thread.sleep(20);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        ns = System.nanoTime() - begin;
    }

    public static void main(String[] args) throws Exception {
        int workers = Integer.parseInt(args[0]);
        ExecutorService pool = Executors.newFixedThreadPool(workers);
        Thread owner = new Thread(() -> own(pool, workers), "owner");
        owner.start();
        System.out.println("READY");
        System.in.read();
        over = true;
        owner.join();
        pool.shutdown();
        System.out.println(sleeps + " " + ns);
    }
}

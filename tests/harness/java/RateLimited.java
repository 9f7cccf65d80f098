import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

/**
 * WORKERS threads wait for permits of a rate limiter, which has one for each of them every 10 ms; READERS threads read
 * answers, with a timeout. Prints READY; when it reads a line it prints how many nanoseconds the workers waited, the
 * readers read, and all that took.
 */
public class RateLimited {
    static final AtomicLong waiting = new AtomicLong();
    static final Semaphore permits = new Semaphore(0, true);

    static void work() {
        while (!AnswerReaders.over) {
            long asked = System.nanoTime();
            permits.acquireUninterruptibly();
            waiting.addAndGet(System.nanoTime() - asked);
        }
    }

    static void limit(int workers) {
        try {
            for (;; permits.release(workers)) Thread.sleep(10);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        int workers = Integer.parseInt(args[0]), readers = Integer.parseInt(args[1]);
        Thread[] waiters = new Thread[workers];
        long begin = System.nanoTime();
        Thread[] threads = AnswerReaders.begin(readers, 30000);
        for (int i = 0; i < workers; i++) waiters[i] = AnswerReaders.begin("worker-" + i, RateLimited::work);
        AnswerReaders.begin("limiter", () -> limit(workers));
        System.out.println("READY");
        System.in.read();
        AnswerReaders.over = true;
        for (Thread t : waiters) t.join();
        for (Thread t : threads) t.join();
        System.out.println(waiting + " " + AnswerReaders.reading + " " + (System.nanoTime() - begin));
    }
}

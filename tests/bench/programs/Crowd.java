import java.util.Random;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Crowd THREADS MEAN_MS: threads that wait nearly all the time, each for a random time of 0.1 to 1.9 times the mean: a
 * quarter of them sleep, park, wait for a notification, and poll a queue. It ends with its input.
 */
public class Crowd {
    static void await(int how, long ms, Object monitor, LinkedBlockingQueue<Object> queue) throws InterruptedException {
        switch (how) {
            case 0:
                Thread.sleep(ms);
                break;
            case 1:
                LockSupport.parkNanos(monitor, ms * 1_000_000);
                break;
            case 2:
                synchronized (monitor) {
                    monitor.wait(ms);
                }
                break;
            default:
                queue.poll(ms, TimeUnit.MILLISECONDS);
        }
    }

    static void live(int number, int mean) {
        Random random = new Random(number);
        Object monitor = new Object();
        LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();

        try {
            for (;;) await(number % 4, mean / 10 + random.nextInt(mean * 9 / 5), monitor, queue);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]), mean = Integer.parseInt(args[1]);

        for (int i = 0; i < threads; i++) {
            int number = i;
            Thread t = new Thread(() -> live(number, mean), "waits-" + i);
            t.setDaemon(true);
            t.start();
        }
        System.out.println("READY");
        System.in.read();
    }
}

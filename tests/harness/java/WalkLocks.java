import java.util.concurrent.locks.ReentrantLock;

/** One method that locks, and three above it: a stack with the code of a lock has all of them
 * below it. */
public class WalkLocks {
    static volatile int sink;

    static void three(ReentrantLock lock) {
        lock.lock();
        try {
            sink++;
        } finally {
            lock.unlock();
        }
    }

    static void two(ReentrantLock lock) {
        three(lock);
        sink++;
    }

    static void one(ReentrantLock lock) {
        two(lock);
        sink++;
    }

    static void work(ReentrantLock lock) {
        for (int i = 0; i < 1000; i++) one(lock);
    }

    public static void main(String[] args) throws InterruptedException {
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                ReentrantLock lock = new ReentrantLock();
                for (;;) work(lock);
            });
            threads[i].start();
        }
        System.out.println("READY");
    }
}

import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A new lock for every operation. Pairs: one thread makes a lock, holds it and shows it to the other, who
 * waits for it; for milliseconds (told) or microseconds (only counted). One thread takes new locks that
 * nobody else sees. Prints its operations at each line on stdin.
 */
public class LockChurn {
    static class Monitor {
    }

    static class Pair {
        final boolean monitor;
        final long hold_us;
        volatile Object shown;
        volatile long waits;

        Pair(boolean monitor, long hold_us) {
            this.monitor = monitor;
            this.hold_us = hold_us;
        }

        void show(Object lock) {
            shown = lock;
            if (hold_us >= 1000) {
                LockKnown.sleep(hold_us / 1000);
                return;
            }
            long until = System.nanoTime() + hold_us * 1000;
            while (System.nanoTime() < until) continue;
        }

        void make() {
            for (;;) {
                if (monitor) {
                    Object lock = new Monitor();
                    synchronized (lock) {
                        show(lock);
                    }
                } else {
                    Lock lock = new ReentrantLock();
                    lock.lock();
                    show(lock);
                    lock.unlock();
                }
                if (hold_us < 1000) LockKnown.nap();
            }
        }

        void wait_() {
            Object last = null;
            for (;;) {
                Object lock = shown;
                if (lock == last) {
                    if (hold_us >= 1000) LockKnown.nap();
                    else Thread.yield();
                    continue;
                }
                last = lock;
                if (monitor) {
                    synchronized (lock) {
                        waits++;
                    }
                } else {
                    ((Lock) lock).lock();
                    waits++;
                    ((Lock) lock).unlock();
                }
                if (hold_us < 1000) LockKnown.nap();
            }
        }
    }

    static volatile long alone;

    static void alone() {
        for (;;) {
            for (int i = 0; i < 1000; i++) {
                Object lock = new Monitor();
                synchronized (lock) {
                    alone++;
                }
                Lock other = new ReentrantLock();
                other.lock();
                other.unlock();
            }
            LockKnown.nap();
        }
    }

    public static void main(String[] args) throws Exception {
        Pair[] pairs = {new Pair(true, 2000), new Pair(true, 2000), new Pair(false, 2000), new Pair(false, 2000),
                        new Pair(true, 100), new Pair(false, 100)};
        for (int i = 0; i < pairs.length; i++) {
            Pair pair = pairs[i];
            LockKnown.thread("maker-" + i, false, pair::make).start();
            LockKnown.thread("waiter-" + i, false, pair::wait_).start();
        }
        LockKnown.thread("alone", false, LockChurn::alone).start();
        System.out.println("READY");
        while (System.in.read() == '\n') {
            StringBuilder line = new StringBuilder("CHURN");
            for (Pair pair : pairs) line.append(' ').append(pair.waits);
            System.out.println(line.append(' ').append(alone));
        }
        System.out.println("END");
        System.exit(0);
    }
}
